//! Ends whose peer does not keep to the protocol, or is a stranger: they lose their copy, and nothing else.

use crate::ends::Pair;
use crate::folders::Folder;
use copy::{
    CopyOptions, EndReport, EndSpec, Entry, EntryKind, FaultKind, FrameHead, Identity, Message, Outcome, Piece, Side,
    SourcesShape, Stamp, Want, WantChunks, WireEntry, PROTOCOL,
};
use copy_net::{run_end, Control, CopyError, ErrorKind};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::time::Duration;

/// Time within which an end has to end.
const PATIENCE: Duration = Duration::from_secs(30);
const SESSION: u64 = 5;

/// A real end, which listens, and what a peer of its own making needs to reach it.
struct Real {
    spec: EndSpec,
    control: Arc<Control>,
    port: u16,
    ended: Receiver<Result<EndReport, CopyError>>,
}

impl Real {
    fn start(spec: EndSpec) -> Real {
        let spec = EndSpec { side: Side::Listen, peer: None, ..spec };
        let (control, (give, port), (end, ended)) = (Arc::new(Control::default()), channel(), channel());
        let (own, steered) = (spec.clone(), control.clone());
        std::thread::spawn(move || {
            let result = run_end(&own, &steered, &mut |event| {
                if let copy::Event::Listening { port } = event {
                    let _ = give.send(port);
                }
            });
            let _ = end.send(result);
        });
        let port = port.recv_timeout(PATIENCE).unwrap();
        Real { spec, control, port, ended }
    }

    /// Without TLS: what is tested comes behind it.
    fn receiver(to: &Path, options: CopyOptions) -> Real {
        Real::start(EndSpec { tls: None, ..Pair::new(&["/hostile"], to, options).receive })
    }

    fn sender(from: &str, to: &Path, options: CopyOptions) -> Real {
        Real::start(EndSpec { tls: None, ..Pair::new(&[from], to, options).send })
    }

    fn end(&self) -> Result<EndReport, CopyError> {
        self.ended.recv_timeout(PATIENCE).expect("it hangs")
    }

    fn connection(&self, is_data: bool, stream: u32) -> TcpStream {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut greeting = copy::unhex(&self.spec.token).unwrap();
        greeting.push(u8::from(is_data));
        greeting.extend(SESSION.to_be_bytes());
        greeting.extend(stream.to_be_bytes());
        connection.write_all(&greeting).unwrap();
        connection
    }

    /// The connection for messages, with the greetings done.
    fn peer(&self) -> Peer {
        let is_sender = self.spec.role == copy::Role::Receive;
        let mut peer = Peer(self.connection(false, 0));
        let mut accepted = [0];
        peer.0.read_exact(&mut accepted).unwrap();
        assert_eq!(accepted, [1]);
        let hello = Message::Hello {
            protocol: PROTOCOL,
            copy: self.spec.copy.clone(),
            is_sender,
            options: serde_json::to_string(&self.spec.options).unwrap(),
            shape: is_sender.then_some(SourcesShape::Tree),
            resumed_bytes: 0,
        };
        peer.say(&hello);
        assert!(matches!(peer.hear(), Message::Hello { .. }));
        peer
    }
}

/// The test's own end.
struct Peer(TcpStream);

impl Peer {
    fn say(&mut self, message: &Message) {
        let mut bytes = vec![];
        message.encode(&mut bytes);
        self.0.write_all(&bytes).unwrap();
    }

    /// The next message but pings and progress.
    fn hear(&mut self) -> Message {
        self.try_hear().unwrap()
    }

    fn try_hear(&mut self) -> std::io::Result<Message> {
        loop {
            let mut length = [0; 4];
            self.0.read_exact(&mut length)?;
            let mut body = vec![0; u32::from_be_bytes(length) as usize];
            self.0.read_exact(&mut body)?;
            match Message::decode(&body).unwrap() {
                Message::Ping | Message::Pong | Message::Durable { .. } => {}
                message => return Ok(message),
            }
        }
    }

    /// Outcomes of so many entries, in order; files that are wanted are sent as empty ones.
    fn outcomes(&mut self, real: &Real, count: usize) -> Vec<Outcome> {
        let mut all = std::collections::BTreeMap::new();
        let mut data = real.connection(true, 0);
        while all.len() < count {
            match self.try_hear() {
                Ok(Message::Concluded(some)) => all.extend(some),
                Ok(Message::Wants(wants)) => wants.iter().for_each(|want| {
                    let head = FrameHead { number: want.number, generation: 0, chunk: 0, length: 0 };
                    data.write_all(&head.encode()).unwrap();
                    data.write_all(blake3::hash(b"").as_bytes()).unwrap();
                }),
                Ok(_) => {}
                Err(error) => panic!("{error}: {:?}", real.end()),
            }
        }
        all.into_values().collect()
    }
}

/// Time for the real end to come to what it was sent.
pub fn pause(time: Duration) {
    let (_open, never) = channel::<()>();
    assert!(never.recv_timeout(time).is_err());
}

fn entry(path: &[&str], kind: EntryKind) -> WireEntry {
    let size = if let EntryKind::File { size, .. } = kind { size } else { 0 };
    let path = path.iter().map(|name| name.as_bytes().to_vec()).collect();
    let identity = Identity { size, ..Identity::default() };
    let (modified, xattrs) = (Stamp::default(), vec![]);
    let entry = Entry { path, kind, mode: 0o755, uid: 0, gid: 0, modified, xattrs, identity };
    WireEntry { entry, first: None, content_left_out: false, is_source_link: false }
}

fn file(path: &[&str], size: u64) -> WireEntry {
    entry(path, EntryKind::File { size, extents: None })
}

fn is_fault(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Fault { kind: FaultKind::Unwritable, .. })
}

#[test]
fn nothing_is_written_behind_a_link_nor_linked_out_of_the_state_folder() {
    let folder = Folder::new("hostile-paths");
    let (to, outside) = (folder.join("to"), folder.join("outside"));
    fs::create_dir(&outside).unwrap();
    let real = Real::receiver(&to, CopyOptions::default());
    let mut peer = real.peer();
    let state = [".elephan-copy", &real.spec.copy, "journal"].map(|name| name.as_bytes().to_vec());
    let mut link = entry(&["stolen"], EntryKind::HardLink { to: 0 });
    link.first = Some(state.to_vec());
    let entries = vec![
        entry(&["out"], EntryKind::Symlink { target: folder.text("outside").into_bytes() }),
        file(&["out", "file"], 0),
        entry(&["out", "folder"], EntryKind::Folder),
        file(&["nowhere", "file"], 0),
        entry(&[".elephan-copy"], EntryKind::Folder),
        file(&[".elephan-copy", "x"], 0),
        link,
        file(&[], 0),
    ];
    let count = entries.len();
    peer.say(&Message::Entries { first: 0, entries });
    // Files without a folder are asked for: their parts cannot be begun, or have no place.
    let outcomes = peer.outcomes(&real, count);
    assert!(matches!(outcomes[0], Outcome::Done { .. }));
    assert!(outcomes[1..].iter().all(is_fault), "{outcomes:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(!to.join("stolen").exists());
    peer.say(&Message::End { entries: 1, complete: true });
    assert_eq!(real.end().unwrap_err().kind, ErrorKind::Protocol);
}

#[test]
fn entries_out_of_order_and_files_without_end_end_the_copy() {
    let folder = Folder::new("hostile-entries");
    let refused = |message: &Message| {
        let real = Real::receiver(&folder.join("to"), CopyOptions::default());
        let mut peer = real.peer();
        peer.say(message);
        assert_eq!(real.end().unwrap_err().kind, ErrorKind::Protocol, "{message:?}");
    };
    for first in [1, u64::MAX] {
        refused(&Message::Entries { first, entries: vec![file(&["a"], 0), file(&["b"], 0)] });
    }
    refused(&Message::Entries { first: 0, entries: vec![file(&["a"], copy::FILE_MAX + 1)] });
    refused(&Message::Entries { first: 0, entries: vec![file(&["..", "a"], 1)] });
    refused(&Message::Entries { first: 0, entries: vec![file(&["a/b"], 1)] });
    refused(&Message::Entries { first: 0, entries: vec![file(&["a\0"], 1)] });
    refused(&Message::End { entries: 1, complete: true });
}

#[test]
fn a_number_of_a_stream_is_used_once() {
    let folder = Folder::new("hostile-streams");
    let real = Real::receiver(&folder.join("to"), CopyOptions::default());
    let mut peer = real.peer();
    let _first = real.connection(true, 7);
    pause(Duration::from_millis(200));
    let mut second = real.connection(true, 7);
    assert!(matches!(second.read(&mut [0]), Ok(0) | Err(_)), "the second is closed");
    peer.say(&Message::Abort { kind: 0, text: "enough".into() });
    // The first is still open at this end, and nobody waits for it.
    assert!(real.end().is_err());
}

#[test]
fn a_file_whose_hash_is_never_right_is_left_out() {
    let folder = Folder::new("hostile-hash");
    let real = Real::receiver(&folder.join("to"), CopyOptions::default());
    let mut peer = real.peer();
    peer.say(&Message::Entries { first: 0, entries: vec![file(&["a"], 4)] });
    assert!(matches!(peer.hear(), Message::Wants(_)));
    let mut data = real.connection(true, 0);
    let mut frame = FrameHead { number: 0, generation: 0, chunk: 0, length: 4 }.encode().to_vec();
    frame.extend(Piece::Data(4).encode());
    frame.extend(b"data");
    frame.extend(blake3::hash(b"data").as_bytes());
    data.write_all(&frame).unwrap();
    let mut mismatches = 0;
    loop {
        peer.say(&Message::FileHash { number: 0, generation: 0, hash: [0; 32] });
        match peer.hear() {
            Message::Mismatch { .. } if mismatches < 1000 => mismatches += 1,
            Message::Concluded(all) => break assert!(is_fault(&all[0].1)),
            other => panic!("{other:?} after {mismatches}"),
        }
    }
    assert!(!folder.join("to/a").exists());
    real.control.stop.store(true, Relaxed);
    assert_eq!(real.end().unwrap_err().kind, ErrorKind::Stopped);
}

#[test]
fn wants_beyond_a_file_end_the_copy() {
    let folder = Folder::new("hostile-wants");
    let options = CopyOptions { chunk_bytes: Some(4096), ..CopyOptions::default() };
    // The number of chunks is a multiple of the blocks that hashes are kept in.
    fs::write(folder.join("from"), vec![1; 256 * 4096]).unwrap();
    let from = folder.text("from");
    let compare = |begin, hashes| WantChunks::Compare { begin, hashes };
    let wrong = [
        vec![compare(256, vec![])],
        vec![compare(255, vec![[0; 32]; 2])],
        vec![compare(u64::MAX, vec![[0; 32]])],
        vec![compare(0, vec![[0; 32]]), compare(0, vec![[0; 32]])],
        vec![WantChunks::Runs(vec![(0, 257)])],
        vec![WantChunks::Runs(vec![(256, 257)])],
    ];
    for all in wrong {
        let real = Real::sender(&from, &folder.join("to"), options.clone());
        let mut peer = real.peer();
        while !matches!(peer.hear(), Message::Entries { .. }) {}
        let wants = all.iter().map(|chunks| Want { number: 0, generation: 0, more: true, chunks: chunks.clone() });
        peer.say(&Message::Wants(wants.collect()));
        assert_eq!(real.end().unwrap_err().kind, ErrorKind::Protocol, "{all:?}");
    }
}

#[test]
fn a_stranger_who_drips_bytes_into_the_handshake_keeps_nobody() {
    let folder = Folder::new("hostile-drip");
    let pair = Pair::new(&["/hostile"], &folder.join("to"), CopyOptions::default());
    let real = Real::start(pair.receive.clone());
    let is_over = Arc::new(AtomicBool::new(false));
    let (ended, mut stranger) = (is_over.clone(), TcpStream::connect(("127.0.0.1", real.port)).unwrap());
    let drip = std::thread::spawn(move || {
        // A record of TLS with 16,000 bytes of a ClientHello.
        let mut bytes = vec![22, 3, 1, 0x3e, 0x80, 1, 0, 0x3e, 0x7c];
        bytes.resize(16_005, 0);
        for byte in bytes {
            if ended.load(Relaxed) || stranger.write_all(&[byte]).is_err() {
                return;
            }
            pause(Duration::from_millis(20));
        }
    });
    pause(Duration::from_millis(500));
    real.control.stop.store(true, Relaxed);
    assert_eq!(real.end().unwrap_err().kind, ErrorKind::Stopped);
    is_over.store(true, Relaxed);
    drip.join().unwrap();
}

#[test]
fn a_mirror_removes_deep_folders() {
    let folder = Folder::new("hostile-deep");
    fs::create_dir(folder.join("from")).unwrap();
    fs::create_dir_all(folder.join("to").join("d/".repeat(1500))).unwrap();
    let options = CopyOptions { mirror: true, max_removals: Some(1500), ..CopyOptions::default() };
    let ended = Pair::new(&[&folder.text("from/")], &folder.join("to"), options).run();
    assert_eq!(ended.receive.unwrap().removed, 1500);
    assert!(!folder.join("to/d").exists());
}

#[test]
fn states_are_for_their_user_alone() {
    let folder = Folder::new("hostile-modes");
    fs::write(folder.join("from"), "a").unwrap();
    let report = Pair::new(&[&folder.text("from")], &folder.join("to"), CopyOptions::default()).run().receive.unwrap();
    let copies = Path::new(&report.manifest).ancestors().find(|path| path.ends_with("copies")).unwrap();
    assert_eq!(fs::metadata(copies).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_destination_inside_of_its_source_is_left_out() {
    let folder = Folder::new("hostile-inside");
    fs::create_dir_all(folder.join("from/to")).unwrap();
    fs::write(folder.join("from/file"), "a").unwrap();
    let ended = Pair::new(&[&folder.text("from")], &folder.join("from/to"), CopyOptions::default()).run();
    let faults = ended.send.unwrap().faults;
    assert_eq!((faults.len(), faults[0].path.as_str()), (1, "from/to"));
    assert_eq!(fs::read(folder.join("from/to/from/file")).unwrap(), b"a");
    assert_eq!(fs::read_dir(folder.join("from/to/from/to")).unwrap().count(), 0);
}

#[test]
fn strangers_who_say_nothing_keep_nobody_out() {
    let folder = Folder::new("hostile-idle");
    fs::write(folder.join("from"), "a").unwrap();
    let idle = std::sync::Mutex::new(vec![]);
    let mut pair = Pair::new(&[&folder.text("from")], &folder.join("to"), CopyOptions::default());
    // Before the strangers' time is over.
    (pair.send.connect_s, pair.receive.connect_s) = (5.0, 5.0);
    let ended = pair.run_watched(&|event| {
        if let copy::Event::Listening { port } = event {
            let some = (0..64).map(|_| TcpStream::connect(("127.0.0.1", *port)).unwrap());
            idle.lock().unwrap().extend(some);
        }
    });
    assert!(ended.receive.is_ok() && ended.send.is_ok());
}
