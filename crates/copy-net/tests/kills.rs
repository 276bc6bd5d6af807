//! Worse interruptions of a copy: an end that is killed, a full disk, a path that is down and comes back. The same
//! command goes on, and sends nothing again that was acknowledged, but at most one chunk per stream.

use crate::folders::{listing, Folder};
use crate::power_cut::ends::{attempt, own_state_home, spec, Ends};
use crate::power_cut::mount::private_mounts;
use copy::{CopyOptions, EndReport, EndSpec, Event, Role, Side};
use copy_net::{run_end, Control, ErrorKind};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const CHUNK: u32 = 65_536;
const STREAMS: u64 = 2;
/// Of all sources together.
const TOTAL: u64 = 6_000_000 + 200 * 5000;

fn options() -> CopyOptions {
    CopyOptions { chunk_bytes: Some(CHUNK), ..CopyOptions::default() }
}

/// One large file and many small ones.
fn sources(folder: &Folder) {
    fs::create_dir_all(folder.join("from/small")).unwrap();
    let large: Vec<u8> = (0..6_000_000_u64).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(folder.join("from/large"), large).unwrap();
    for index in 0..200_u32 {
        let content: Vec<u8> = (0..5000_u32).map(|at| (at * 7 + index) as u8).collect();
        fs::write(folder.join(&format!("from/small/{index}")), content).unwrap();
    }
}

/// Not a test of its own: an end in a process that another test kills. Its specification is in the file COPY_END.
#[test]
#[ignore = "run by the tests of this file"]
fn an_end_in_its_own_process() {
    let Some(path) = std::env::var_os("COPY_END") else { return };
    let spec: EndSpec = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    // The harness has written the test's name without an end of line.
    let tell = |text: String| writeln!(std::io::stdout(), "\n@{text}").unwrap();
    let report = run_end(&spec, &Control::default(), &mut |event| tell(serde_json::to_string(&event).unwrap()));
    tell(format!("report {}", serde_json::to_string(&report.map_err(|error| error.text)).unwrap()));
}

struct End {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl End {
    fn start(folder: &Folder, spec: &EndSpec) -> End {
        let path = folder.join(&format!("{:?}.json", spec.role));
        fs::write(&path, serde_json::to_string(spec).unwrap()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::an_end_in_its_own_process", "--ignored", "--nocapture"])
            .env("COPY_END", path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        End { child, lines }
    }

    /// The next thing that it tells; None: it has ended.
    fn next(&mut self) -> Option<String> {
        self.lines.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix('@').map(str::to_owned))
    }

    fn event(&mut self) -> Option<Event> {
        self.next().and_then(|line| serde_json::from_str(&line).ok())
    }

    fn report(mut self) -> Result<EndReport, String> {
        let mut report = Err("it ended without a report".to_owned());
        while let Some(line) = self.next() {
            if let Some(text) = line.strip_prefix("report ") {
                report = serde_json::from_str(text).unwrap();
            }
        }
        self.child.wait().unwrap();
        report
    }
}

fn both(folder: &Folder, copy: &str, rate_bps: Option<u64>) -> (End, End) {
    let receive = EndSpec {
        destination: Some(folder.text("to")),
        silence_s: 2.0,
        ..spec(Role::Receive, Side::Listen, copy, &options())
    };
    let mut receiver = End::start(folder, &receive);
    let port = loop {
        if let Event::Listening { port } = receiver.event().expect("it listens") {
            break port;
        }
    };
    let send = EndSpec {
        sources: vec![folder.text("from/")],
        port,
        rate_bps,
        silence_s: 2.0,
        ..spec(Role::Send, Side::Connect, copy, &options())
    };
    (End::start(folder, &send), receiver)
}

fn a_killed_end(kill_receiver: bool) {
    own_state_home();
    let folder = Folder::new("killed");
    sources(&folder);
    let copy = if kill_receiver { "a1".repeat(16) } else { "a2".repeat(16) };
    let mut acknowledged = 0;
    for share in [TOTAL / 20, TOTAL / 5] {
        // 1 MB/s leaves seconds between the share and the end.
        let (mut sender, mut receiver) = both(&folder, &copy, Some(8_000_000));
        while let Some(event) = sender.event() {
            if let Event::Progress { durable_bytes, .. } = event {
                acknowledged = durable_bytes.max(acknowledged);
                if durable_bytes >= share {
                    break;
                }
            }
        }
        assert!(acknowledged >= share, "it was killed on its way");
        let (killed, left) = if kill_receiver { (&mut receiver, sender) } else { (&mut sender, receiver) };
        killed.child.kill().unwrap();
        killed.child.wait().unwrap();
        // The other end notices that it is alone.
        left.report().unwrap_err();
    }
    let (sender, receiver) = both(&folder, &copy, None);
    let (sender, receiver) = (sender.report().unwrap(), receiver.report().unwrap());
    assert_eq!(sender.root, receiver.root);
    assert_eq!(listing(&folder.join("from")), listing(&folder.join("to")));
    assert_at_most(sender.sent_bytes, acknowledged);
}

fn assert_at_most(sent: u64, acknowledged: u64) {
    let more = u64::from(CHUNK) * STREAMS;
    assert!(sent + acknowledged <= TOTAL + more, "{sent} sent, {acknowledged} acknowledged of {TOTAL}");
}

#[test]
fn a_receiver_that_is_killed_goes_on_where_it_was() {
    a_killed_end(true);
}

#[test]
fn a_sender_that_is_killed_goes_on_where_it_was() {
    a_killed_end(false);
}

#[test]
fn a_full_disk_stops_cleanly_with_what_is_needed_and_goes_on_when_there_is_room() {
    if !rustix::process::geteuid().is_root() {
        return crate::skip::skipped("mounting a small disk needs root");
    }
    let full = || {
        assert!(private_mounts(), "root may have its own mounts");
        let folder = Folder::new("full");
        sources(&folder);
        let disk = folder.join("disk");
        fs::create_dir(&disk).unwrap();
        let mount = |flags, size: &std::ffi::CStr| match flags {
            0 => rustix::mount::mount("tmpfs", &disk, "tmpfs", rustix::mount::MountFlags::empty(), size),
            _ => rustix::mount::mount_remount(&disk, rustix::mount::MountFlags::empty(), size),
        };
        mount(0, c"size=3m").unwrap();
        let run = || {
            let copy = "a3".repeat(16);
            for _ in 0..100 {
                let from = [folder.text("from/")];
                let ends = attempt(&from, &folder.text("disk/to"), &copy, &options(), &|_| (), &|_| false);
                // A process that another test forks holds the lock until it executes its program.
                match &ends.receiver {
                    Err(error) if error.kind == ErrorKind::Busy => crate::hostile::pause(Duration::from_millis(100)),
                    _ => return ends,
                }
            }
            panic!("the lock is never free");
        };
        let ends = run();
        let error = ends.receiver.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Full, "{}", error.text);
        assert!(error.text.contains("bytes more needed"), "{}", error.text);
        let error = ends.sender.unwrap_err();
        assert!(error.text.contains("full"), "{:?} {}", error.kind, error.text);
        let acknowledged = ends.acknowledged;
        mount(1, c"size=30m").unwrap();
        let Ends { sender, receiver, .. } = run();
        assert!(receiver.is_ok(), "{receiver:?}");
        assert_eq!(listing(&folder.join("from")), listing(&disk.join("to")));
        assert_at_most(sender.unwrap().sent_bytes, acknowledged);
    };
    std::thread::spawn(full).join().unwrap();
}

#[test]
fn a_path_that_is_down_for_longer_than_the_ends_wait_is_no_loss() {
    if !rustix::process::geteuid().is_root() {
        return crate::skip::skipped("a network namespace needs root");
    }
    let down = || {
        // SAFETY: only this thread's network becomes its own; the threads of the ends come from it.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.unwrap();
        let loopback = |state: &str| {
            let done = Command::new("ip").args(["link", "set", "lo", state]).status().unwrap();
            assert!(done.success(), "ip link set lo {state}");
        };
        loopback("up");
        let folder = Folder::new("down");
        sources(&folder);
        let is_up = std::sync::atomic::AtomicBool::new(true);
        let run = |rate_bps| {
            let tune = move |spec: &mut EndSpec| {
                spec.silence_s = 2.0;
                spec.rate_bps = rate_bps;
            };
            let watch = |event: &Event| {
                let acknowledged = matches!(event, Event::Progress { durable_bytes, .. } if *durable_bytes > TOTAL / 4);
                if rate_bps.is_some() && acknowledged && is_up.swap(false, std::sync::atomic::Ordering::Relaxed) {
                    loopback("down");
                }
                false
            };
            let copy = "a4".repeat(16);
            attempt(&[folder.text("from/")], &folder.text("to"), &copy, &options(), &tune, &watch)
        };
        let first = run(Some(30_000_000));
        assert_eq!(first.sender.unwrap_err().kind, ErrorKind::Peer);
        assert_eq!(first.receiver.unwrap_err().kind, ErrorKind::Peer);
        assert!(first.acknowledged > TOTAL / 4);
        loopback("up");
        let second = run(None);
        assert!(second.receiver.is_ok(), "{:?}", second.receiver);
        assert_eq!(listing(&folder.join("from")), listing(&folder.join("to")));
        assert_at_most(second.sender.unwrap().sent_bytes, first.acknowledged);
    };
    std::thread::spawn(down).join().unwrap();
}
