//! Copies that are stopped, cut, damaged, steered; sources that change meanwhile; strangers at the port.

use crate::copies::{agree, noise, same, tree};
use crate::ends::{Ended, Pair};
use crate::folders::Folder;
use crate::relay::Faults;
use copy::{CopyOptions, Event, FaultKind, Steering, TransportSpec};
use copy_net::ErrorKind;
use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const CHUNK: u32 = 65_536;

fn options() -> CopyOptions {
    CopyOptions { chunk_bytes: Some(CHUNK), ..CopyOptions::default() }
}

#[test]
fn a_stopped_copy_goes_on_without_sending_again_what_is_durable() {
    let folder = Folder::new("resume");
    fs::create_dir(folder.join("from")).unwrap();
    const SIZE: usize = 8_000_000;
    fs::write(folder.join("from/large"), noise(1, SIZE)).unwrap();
    let (from, to) = (folder.text("from/"), folder.join("to"));
    let mut durable = 0;
    let mut sent = 0;
    for round in 0..2 {
        let mut pair = Pair::new(&[&from], &to, options());
        if round % 2 == 1 {
            pair = pair.turned();
        }
        pair.send.rate_bps = Some(20_000_000);
        let seen = AtomicU64::new(0);
        let ended = pair.run_watched(&|event| {
            if let Event::Progress { durable_bytes, .. } = event {
                seen.fetch_max(*durable_bytes, Relaxed);
                if *durable_bytes > durable + 1_000_000 {
                    pair.receive_control.stop.store(true, Relaxed);
                }
            }
        });
        assert_eq!(ended.receive.unwrap_err().kind, ErrorKind::Stopped);
        assert!(ended.send.is_err());
        assert!(!to.join("large").exists());
        durable = seen.load(Relaxed);
        sent += ended
            .send_events
            .iter()
            .rev()
            .find_map(|event| match event {
                Event::Progress { sent_bytes, .. } => Some(*sent_bytes),
                _ => None,
            })
            .unwrap();
    }
    assert!(durable > 2_000_000 && sent >= durable);
    let ended = Pair::new(&[&from], &to, options()).run();
    let report = agree(&ended);
    assert!(report.sent_bytes <= SIZE as u64 - durable, "{} of {SIZE}, {durable} durable", report.sent_bytes);
    assert_eq!(report.sent_bytes + report.reused_bytes, SIZE as u64);
    same(&folder.join("from"), &to);
}

/// The sender's last `wanted_bytes`.
fn wanted(ended: &Ended) -> u64 {
    let last = ended.send_events.iter().rev().find_map(|event| match event {
        Event::Progress { wanted_bytes, .. } => Some(*wanted_bytes),
        _ => None,
    });
    last.unwrap()
}

#[test]
fn only_chunks_that_differ_are_sent() {
    let folder = Folder::new("delta");
    fs::create_dir(folder.join("from")).unwrap();
    let mut content = noise(1, 3_000_000);
    fs::write(folder.join("from/large"), &content).unwrap();
    let (from, to) = (folder.text("from/"), folder.join("to"));
    agree(&Pair::new(&[&from], &to, options()).run());
    content[1_000_000] ^= 1;
    content.extend(noise(2, 50_000));
    fs::write(folder.join("from/large"), &content).unwrap();
    let ended = Pair::new(&[&from], &to, CopyOptions { verify_read: true, ..options() }).run();
    let report = agree(&ended);
    assert!(report.sent_bytes <= 3 * u64::from(CHUNK), "{}", report.sent_bytes);
    // Equal chunks are not wanted, though the file as a whole differs.
    assert_eq!(wanted(&ended), report.sent_bytes);
    same(&folder.join("from"), &to);
    let ended = Pair::new(&[&from], &to, CopyOptions { checksum: true, ..options() }).run();
    assert_eq!(agree(&ended).sent_bytes, 0);
    assert!(!fs::read_to_string(&agree(&ended).manifest).unwrap().contains("large\t3050000\t-"));
}

#[test]
fn streams_that_are_cut_are_made_again() {
    let folder = Folder::new("cut");
    tree(&folder.join("from"));
    let faults = Arc::new(Faults::default());
    faults.cut_after.store(700_000, Relaxed);
    faults.cuts.store(5, Relaxed);
    for turned in [false, true] {
        let to = folder.join(&format!("to-{turned}"));
        let pair = Pair::new(&[&folder.text("from/")], &to, options()).through(faults.clone());
        let ended = if turned { pair.turned() } else { pair }.run();
        let report = agree(&ended);
        assert!(turned || report.retries > 0);
        same(&folder.join("from"), &to);
    }
}

#[test]
fn a_damaged_chunk_is_sent_again() {
    let folder = Folder::new("damaged");
    fs::create_dir(folder.join("from")).unwrap();
    fs::write(folder.join("from/large"), noise(1, 3_000_000)).unwrap();
    let faults = Arc::new(Faults::default());
    faults.damage_at.store(30_000, Relaxed);
    let mut pair = Pair::new(&[&folder.text("from/")], &folder.join("to"), options()).through(faults);
    // Without TLS, which would end the stream.
    (pair.send.tls, pair.receive.tls) = (None, None);
    let ended = pair.run();
    assert_eq!(agree(&ended).retries, 1);
    same(&folder.join("from"), &folder.join("to"));
}

#[test]
fn a_source_that_changes_is_begun_anew_or_left_out() {
    let folder = Folder::new("changes");
    fs::create_dir(folder.join("from")).unwrap();
    fs::write(folder.join("from/a"), noise(1, 1_000_000)).unwrap();
    fs::write(folder.join("from/b"), noise(2, 100)).unwrap();
    let from = folder.text("from/");
    for always in [false, true] {
        let to = folder.join(&format!("to-{always}"));
        let mut pair = Pair::new(&[&from], &to, options());
        pair.send.rate_bps = Some(6_000_000);
        pair.send.progress_ms = 20;
        // Buffered data are read at once.
        if let TransportSpec::Tcp { send_buffer_bytes, .. } = &mut pair.send.transport {
            *send_buffer_bytes = Some(100_000);
        }
        let changed = AtomicBool::new(false);
        let ended = pair.run_watched(&|event| {
            if let Event::Progress { sent_bytes: 1.., .. } = event {
                if always || !changed.swap(true, Relaxed) {
                    // In place: a file that is empty for a moment is whole at that moment.
                    let file = fs::OpenOptions::new().write(true).open(folder.join("from/a")).unwrap();
                    file.write_all_at(&noise(3, 1_000_000), 0).unwrap();
                }
            }
        });
        let report = agree(&ended);
        if always {
            let faults: Vec<_> = report.faults.iter().map(|fault| (&*fault.path, fault.kind)).collect();
            assert_eq!(faults, [("a", FaultKind::Changed)]);
            assert_eq!(ended.send.as_ref().unwrap().faults, report.faults);
            assert!(!to.join("a").exists() && to.join("b").exists());
        } else {
            assert!(report.retries > 0 || ended.send.as_ref().unwrap().retries > 0);
            same(&folder.join("from"), &to);
        }
    }
}

#[test]
fn streams_and_rate_change_while_it_runs() {
    let folder = Folder::new("steer");
    fs::create_dir(folder.join("from")).unwrap();
    fs::write(folder.join("from/large"), noise(1, 6_000_000)).unwrap();
    for turned in [false, true] {
        let to = folder.join(&format!("to-{turned}"));
        let mut pair = Pair::new(&[&folder.text("from/")], &to, options());
        pair.send.streams = 1;
        pair.receive.streams = 1;
        pair.send.rate_bps = Some(10_000_000);
        let pair = if turned { pair.turned() } else { pair };
        let most = Mutex::new(0);
        agree(&pair.run_watched(&|event| {
            if let Event::Progress { streams, sent_bytes: 1.., .. } = event {
                let mut most = most.lock().unwrap();
                *most = (*most).max(streams.len());
                let rate_bps = Some(if *most >= 5 { 0 } else { 10_000_000 });
                *pair.send_control.steering.lock().unwrap() = Steering { streams: Some(5), rate_bps };
            }
        }));
        assert_eq!(*most.lock().unwrap(), 5);
        same(&folder.join("from"), &to);
    }
}

#[test]
fn a_path_that_is_silent_ends_the_copy_and_stop_ends_it_at_once() {
    let folder = Folder::new("silent");
    fs::create_dir(folder.join("from")).unwrap();
    fs::write(folder.join("from/large"), noise(1, 30_000_000)).unwrap();
    for stops in [false, true] {
        let faults = Arc::new(Faults::default());
        let to = folder.join(&format!("to-{stops}"));
        let mut pair = Pair::new(&[&folder.text("from/")], &to, options()).through(faults.clone());
        (pair.send.silence_s, pair.receive.silence_s) = (1.0, 1.0);
        pair.send.rate_bps = Some(40_000_000);
        let ended = pair.run_watched(&|event| {
            if let Event::Progress { sent_bytes: 1.., .. } = event {
                faults.is_held.store(true, Relaxed);
                pair.send_control.stop.store(stops, Relaxed);
                pair.receive_control.stop.store(stops, Relaxed);
            }
        });
        faults.is_held.store(false, Relaxed);
        let expected = if stops { ErrorKind::Stopped } else { ErrorKind::Peer };
        assert_eq!([ended.send.unwrap_err().kind, ended.receive.unwrap_err().kind], [expected; 2]);
    }
}
