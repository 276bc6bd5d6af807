//! A user's own C file on a connection.

use crate::streams::{content, pair};
use congestion::Algorithm;
use quic::{Control, Settings};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::Command;
use std::thread;

const OWN: &str = r#"
#include "cc.h"

CC_PARAMS((first, 77, 2, 1000, 1, "segments", "window from the start"));

static void own_init(struct cc_sock *sk)
{
	cc_set_snd_cwnd(sk, (u32)cc_param(sk, first));
}

static u32 own_ssthresh(struct cc_sock *sk)
{
	return (u32)cc_param(sk, first);
}

static void own_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)sk, (void)ack, (void)acked;
}

CC_ALGORITHM(own, "a window that stays", "a test",
	(init, own_init),
	(ssthresh, own_ssthresh),
	(cong_avoid, own_cong_avoid),
	(undo_cwnd, cc_undo_cwnd));
"#;

fn compiled(code: &str) -> Algorithm {
    let folder = std::env::temp_dir().join(format!("elephan-quic-own-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("own.c");
    std::fs::write(&file, code).expect("a file");
    let algorithm = congestion::compile(&file).expect("it compiles");
    std::fs::remove_dir_all(&folder).expect("removed");
    algorithm
}

/// Tells the test below that it is the process which is to end.
const FAULTS: &str = "ELEPHAN_TEST_HOOK_FAULTS";

#[test]
fn a_hook_that_faults_ends_the_process_with_a_line_that_names_it() {
    if std::env::var_os(FAULTS).is_some() {
        let wrong = OWN.replace("(void)sk, (void)ack, (void)acked;", "*(volatile u32 *)0 = ack + acked + cc_lost(sk);");
        let algorithm = compiled(&wrong).shown_as("congestion control own");
        let settings = Settings::new(Control::new(&algorithm, &BTreeMap::new()).expect("its defaults"));
        let (_listened, mut connected) = pair(&settings);
        connected.write_all(&content(2_000_000, 9)).expect("written");
        return;
    }
    let test = "own_file::a_hook_that_faults_ends_the_process_with_a_line_that_names_it";
    let done = Command::new(std::env::current_exe().expect("this test has a file"))
        .args(["--exact", test, "--nocapture"])
        .env(FAULTS, "1")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    let begin = "error: congestion control own: hook cong_avoid of a QUIC connection at 0.";
    let end = " s: accesses memory that is not its own, at address 0x0 (SIGSEGV)";
    assert!(said.lines().any(|line| line.starts_with(begin) && line.ends_with(end)), "{said}");
}

#[test]
fn a_file_of_ones_own_sets_the_window() {
    let algorithm = compiled(OWN);
    let settings =
        Settings::new(Control::new(&algorithm, &BTreeMap::from([("first".to_owned(), 50)])).expect("within its range"));
    assert!(Control::new(&algorithm, &BTreeMap::from([("first".to_owned(), 1)])).is_err());
    let (mut listened, mut connected) = pair(&settings);
    let data = content(2_000_000, 9);
    let sent = data.clone();
    let handle = connected.handle();
    let writing = thread::spawn(move || {
        connected.write_all(&sent).expect("written");
        connected
    });
    let mut got = vec![0; data.len()];
    listened.read_exact(&mut got).expect("read");
    assert!(got == data);
    drop(writing.join().expect("no panic"));
    // As many bytes as before where the path took larger packets on the way, in whole packets of the new size.
    let facts = handle.facts();
    let (from, to) = (50 * 1_200 - u64::from(facts.payload_bytes), 50 * 1_200);
    assert!((from..=to).contains(&facts.window_bytes), "{facts:?}");
}
