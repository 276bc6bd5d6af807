//! A user's own file: works, or says what is wrong in the compiler's words.

use crate::common::parameters;
use congestion::{compile, Algorithm, CompileError, Controller, RateSample};
use std::fs;
use std::path::PathBuf;

const MINE: &str = r#"
#include "cc.h"

CC_PARAMS((keep, 500, 1, 999, 1000, "1", "share of the window kept after a loss"));

struct mine {
	u64 acks;
};
CC_STATE(struct mine);

static u32 mine_ssthresh(struct cc_sock *sk)
{
	return (u32)cc_max(cc_snd_cwnd(sk) * (u64)cc_param(sk, keep) / 1000, 2);
}

static void mine_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	cc_state(sk)->acks++;
	if (!cc_is_cwnd_limited(sk))
		return;
	if (cc_in_slow_start(sk))
		acked = cc_slow_start(sk, acked);
	if (acked)
		cc_cong_avoid_ai(sk, cc_snd_cwnd(sk), acked);
}

CC_ALGORITHM(mine, "for the test", "this file",
	(ssthresh, mine_ssthresh),
	(cong_avoid, mine_cong_avoid),
	(undo_cwnd, cc_undo_cwnd));
"#;

/// Writes `code` to a file of this name and compiles it.
fn compiled(name: &str, code: &str) -> Result<Algorithm, CompileError> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("own-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("cargo's folder for tests can be written");
    let path = folder.join(format!("{name}.c"));
    fs::write(&path, code).expect("cargo's folder for tests can be written");
    let result = compile(&path);
    fs::remove_dir_all(&folder).expect("the folder is still there");
    result
}

/// The error of `MINE` with `old` replaced by `new`, as text.
#[track_caller]
fn refused(name: &str, old: &str, new: &str) -> String {
    let code = MINE.replace(old, new);
    assert_ne!(code, MINE, "{old:?} is not in the file");
    compiled(name, &code).expect_err("not a usable algorithm").to_string()
}

#[track_caller]
fn mentions(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in:\n{text}");
}

#[test]
fn a_file_of_ones_own_is_an_algorithm_like_any_other() {
    let mine = compiled("mine", MINE).expect("it compiles");
    assert_eq!((mine.name(), mine.summary(), mine.source()), ("mine", "for the test", "this file"));
    assert_eq!(mine.params()[0].text(mine.params()[0].default), "0.5");
    assert_eq!(mine.code(), MINE);
    let mut control = Controller::new(&mine, &parameters(&[("keep", 250)])).expect("in range");
    // The code stays loaded as long as a flow runs it.
    drop(mine);
    control.sock_mut().snd_cwnd = 100;
    control.sock_mut().is_cwnd_limited = 1;
    control.init();
    assert_eq!(control.ssthresh(), 25);
    control.cong_avoid(0, 7);
    assert_eq!((control.sock().snd_cwnd, control.sock().private[0]), (107, 1));
}

#[test]
fn the_example_in_the_header_is_an_algorithm() {
    let header = congestion::HEADERS[0].1;
    let lines = header.lines().skip_while(|l| *l != " *\t#include \"cc.h\"");
    let example = lines.take_while(|l| !l.starts_with(" * Rules")).map(|l| l.trim_start_matches(" *"));
    let example: Vec<_> = example.map(|l| l.strip_prefix('\t').unwrap_or(l)).collect();
    let mine = compiled("example", &example.join("\n")).expect("it compiles");
    assert_eq!((mine.name(), mine.params().len()), ("mine", 1));
}

#[test]
fn algorithms_and_flows_may_go_to_another_thread() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Algorithm>();
    sent::<Controller>();
}

#[test]
fn an_edited_file_is_another_algorithm() {
    let first = compiled("edited", MINE).expect("it compiles");
    let second = compiled("edited", &MINE.replace("for the test", "edited")).expect("it compiles");
    assert_eq!((first.summary(), second.summary()), ("for the test", "edited"));
}

#[test]
fn every_hook_and_accessor_works_natively() {
    let everything = compiled("everything", include_str!("c/everything.c")).expect("it compiles");
    assert!(everything.has_cong_control() && everything.needs_ecn());
    assert_eq!(everything.hooks().len(), 11);
    let mut control = Controller::new(&everything, &parameters(&[("first_window", 7)])).expect("in range");
    control.init();
    assert_eq!(control.sock().snd_cwnd, 7);
    assert_eq!(control.min_tso_segs(), Some(1));
    control.set_state(congestion::CaState::Recovery);
    control.cwnd_event(congestion::CaEvent::TxStart);
    control.in_ack_event(congestion::ack_flags::ECE);
    control.pkts_acked(&Default::default());
    control.cong_control(1, 2, &RateSample { delivered: 3, ..RateSample::default() });
    assert_eq!(control.ssthresh(), 2);
    assert_eq!(control.undo_cwnd(), 8, "cong_control grows by one");
    control.release();
}

#[test]
fn a_mistake_is_shown_in_the_compilers_words() {
    let text = refused("mistake", "acked = cc_slow_start", "aked = cc_slow_start");
    mentions(&text, "mistake.c: does not compile:");
    mentions(&text, "aked");
    mentions(&text, "undeclared");
    mentions(&refused("unknown_call", "cc_cong_avoid_ai", "cc_cong_avoid_it"), "cc_cong_avoid_it");
}

#[test]
fn floating_point_is_refused_in_every_disguise() {
    let old = "cc_snd_cwnd(sk) * (u64)cc_param(sk, keep) / 1000, 2)";
    for (name, new) in [
        ("declared", "(double)cc_snd_cwnd(sk), 2)"),
        ("converted", "cc_snd_cwnd(sk) * 0.5, 2)"),
        ("cast", "(u64)(cc_snd_cwnd(sk) * 0.5f), 2)"),
    ] {
        mentions(&refused(&format!("float_{name}"), old, new), "does not compile");
    }
}

#[test]
fn other_headers_and_libraries_are_refused() {
    mentions(&refused("header", "#include \"cc.h\"", "#include \"cc.h\"\n#include <stdlib.h>"), "stdlib.h");
    let call = "extern int rand(void);\n\tacked += (u32)rand();\n\t(void)ack;";
    let text = refused("library", "(void)ack;", call);
    mentions(&text, "rand");
    mentions(&text, "no library functions");
}

#[test]
fn the_limits_of_the_kernel_hold() {
    mentions(&refused("fat", "u64 acks;", "u64 acks; u64 more[13];"), "at most 104 bytes");
    mentions(&refused("range", "500, 1, 999", "1500, 1, 999"), "min <= default <= max");
    mentions(&refused("no_undo", ",\n\t(undo_cwnd, cc_undo_cwnd)", ""), "Linux requires both");
    mentions(&refused("no_growth", "(cong_avoid, mine_cong_avoid),", ""), "Linux requires one");
    mentions(&refused("capital", "CC_ALGORITHM(mine", "CC_ALGORITHM(Mine"), "a-z");
    mentions(
        &refused("signature", "static u32 mine_ssthresh(struct", "static u32 mine_ssthresh(u32 x, struct"),
        "ssthresh",
    );
    let at = MINE.find("CC_ALGORITHM").expect("it is there");
    mentions(&compiled("empty", &MINE[..at]).expect_err("no algorithm").to_string(), "no CC_ALGORITHM");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let text = compile(&PathBuf::from("no/such.c")).expect_err("it is not there").to_string();
    mentions(&text, "no/such.c: cannot read");
}
