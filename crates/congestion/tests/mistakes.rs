//! The usual mistakes: each is reported with its line and with what would be right, by either compiler.

use congestion::{compile, compile_and_warn, compile_bpf, CompileError, Problem};
use std::fs;
use std::path::PathBuf;

/// Line numbers matter here: they are counted from `#include`.
const MINE: &str = r#"#include "cc.h"

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
	cc_reno_cong_avoid(sk, acked);
}

CC_ALGORITHM(mine, "for the test", "this file",
	(ssthresh, mine_ssthresh),
	(cong_avoid, mine_cong_avoid),
	(undo_cwnd, cc_undo_cwnd));
"#;

fn changed(old: &str, new: &str) -> String {
    let code = MINE.replacen(old, new, 1);
    assert_ne!(code, MINE, "{old:?} is not in the file");
    code
}

fn natively<T>(name: &str, code: &str, compiled: impl Fn(&std::path::Path) -> T) -> T {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("mistake-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("cargo's folder for tests can be written");
    let path = folder.join("mine.c");
    fs::write(&path, code).expect("cargo's folder for tests can be written");
    let result = compiled(&path);
    fs::remove_dir_all(&folder).expect("the folder is still there");
    result
}

/// The first problem of a file, as the native compiler and as clang for BPF tell it.
fn first_problems(name: &str, code: &str) -> Vec<(Problem, String)> {
    let first = |error: CompileError| {
        let problem = error.problems().into_iter().next();
        (problem.unwrap_or_else(|| panic!("{name}: nothing was made out of:\n{error}")), error.to_string())
    };
    let error = natively(name, code, compile).expect_err("not a usable algorithm");
    let mut all = vec![first(error)];
    match compile_bpf("mine.c".as_ref(), code, None) {
        Err(CompileError::NoClang) => crate::skip::skipped_for_kernel("clang is not installed"),
        // Mistakes that only the linker or the loader sees.
        Ok(_) => {}
        Err(error) => all.push(first(error)),
    }
    all
}

#[track_caller]
fn expect(name: &str, code: &str, line: usize, what: &str, hint: &str) {
    for (problem, text) in first_problems(name, code) {
        assert_eq!(problem.line, Some(line), "{name}: {text}");
        assert!(text.contains(&format!("mine.c:{line}: ")), "{name}: {text}");
        assert!(problem.what.contains(what), "{name}: no {what:?} in {problem:?}");
        let given = problem.hint.clone().unwrap_or_default();
        assert!(given.contains(hint), "{name}: no {hint:?} in {problem:?}");
        assert!(!text.contains("env.h") && !text.contains("CC_EACH"), "{name}: {text}");
    }
}

#[test]
fn floating_point_has_its_line_and_a_way_out() {
    for (name, new) in [("cast", "(double)2 / 1000"), ("converted", "0.5"), ("suffix", "0.5f")] {
        let code = changed("(u64)cc_param(sk, keep) / 1000", new);
        expect(&format!("float_{name}"), &code, 12, "floating point", "a half is x / 2");
    }
    expect("float_variable", &changed("(void)ack;", "(void)ack;\n\tdouble x;"), 18, "floating point", "Integers only");
}

#[test]
fn another_header_and_the_library_are_named() {
    let code = changed("#include \"cc.h\"", "#include \"cc.h\"\n#include <stdlib.h>");
    expect("header", &code, 2, "there is no header stdlib.h", "includes cc.h and nothing else");
    let code = changed("(void)ack;", "extern int rand(void);\n\tacked += (u32)rand() + ack;");
    expect("library", &code, 18, "rand is not there", "no library functions");
    expect("call", &changed("(void)ack;", "memset(sk, 0, ack);"), 17, "no function is called memset", "no library");
}

#[test]
fn a_missing_semicolon_or_brace_is_called_that() {
    expect("semicolon", &changed("(void)ack;", "(void)ack"), 17, "expected ';'", "A semicolon is missing");
    expect("last", &changed("acked);\n}", "acked)\n}"), 19, "expected ';'", "A semicolon is missing");
    for (problem, _) in first_problems("brace", &changed("acked);\n}", "acked);\n")) {
        assert!(problem.hint.is_some_and(|hint| hint.contains("brace } is missing")) || problem.line == Some(22));
    }
}

#[test]
fn an_unknown_parameter_is_reported_with_those_there_are() {
    let code = changed("cc_param(sk, keep)", "cc_param(sk, kep)");
    expect("parameter", &code, 12, "no parameter is called kep", "CC_PARAMS declares keep.");
    let code = changed("500, 1, 999", "1500, 1, 999");
    expect("range", &code, 3, "parameter keep: min <= default <= max", "all integers");
    let code = MINE.lines().filter(|line| !line.contains("CC_PARAMS")).collect::<Vec<_>>().join("\n");
    expect("undeclared", &code, 11, "no parameter is called keep", "declares no parameters");
}

#[test]
fn a_state_too_large_is_reported_with_the_limit() {
    let code = changed("u64 acks;", "u64 acks; u64 more[13];");
    expect("fat", &code, 8, "at most 104 bytes", "u32 for windows");
    expect("no_state", &changed("CC_STATE(struct mine);", ""), 18, "no function is called cc_state", "CC_STATE(struct");
}

#[test]
fn a_hook_that_is_missing_unknown_or_of_another_form_is_reported() {
    let natively_only = |name: &str, code: &str, line: usize, parts: [&str; 2]| {
        let text = natively(name, code, compile).expect_err("not a usable algorithm").to_string();
        assert!(text.contains(&format!("mine.c:{line}: ")), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    let code = changed(",\n\t(undo_cwnd, cc_undo_cwnd)", "");
    natively_only("no_undo", &code, 22, ["it lacks the hook undo_cwnd", "cc_undo_cwnd of cc.h will do"]);
    let code = changed("\t(cong_avoid, mine_cong_avoid),\n", "");
    natively_only("no_growth", &code, 22, ["lets the window grow", "Linux requires one"]);
    let code = changed("(cong_avoid, mine", "(cong_avoidance, mine");
    natively_only(
        "unknown_hook",
        &code,
        24,
        ["no hook is called cong_avoidance; did you mean", "Hooks are init, ssthresh"],
    );
    let code = changed("mine_ssthresh(struct", "mine_ssthresh(u32 x, struct");
    natively_only("signature", &code, 23, ["for the hook ssthresh has other arguments", "u32 f(struct cc_sock *sk)"]);
    expect("misspelt", &changed("mine_cong_avoid),", "mine_congavoid),"), 24, "mine_cong", "");
}

#[test]
fn what_compiles_but_may_divide_by_zero_is_warned_of() {
    let code = changed("(void)ack;", "acked += 10 / ack;");
    let (_, warnings) = natively("division", &code, compile_and_warn).expect("it compiles");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!((warnings[0].line, &*warnings[0].what), (Some(17), "divides by ack: may that be 0?"));
    let (_, none) = natively("sound", MINE, compile_and_warn).expect("it compiles");
    assert_eq!(none, []);
    let (_, unused) = natively("unused", &changed("\t(void)ack;\n", ""), compile_and_warn).expect("it compiles");
    assert!(unused.len() == 1 && unused[0].what.contains("unused parameter 'ack'"), "{unused:?}");
}

#[test]
fn signed_division_is_refused_for_bpf_with_a_way_out() {
    let code = changed("(void)ack;", "acked += (u32)((int)ack / (int)acked);");
    match compile_bpf("mine.c".as_ref(), &code, None) {
        Err(CompileError::NoClang) => crate::skip::skipped_for_kernel("clang is not installed"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("mine.c:17: signed division") && text.contains("Divide u64"), "{text}");
        }
        Ok(_) => panic!("BPF has no signed division before cpu v4"),
    }
}

#[test]
fn many_problems_are_counted_and_the_first_are_shown() {
    let code = changed("(void)ack;", "a();\n\tb();\n\tc();\n\td();\n\te();\n\t(void)ack;");
    let text = natively("many", &code, compile).expect_err("not C").to_string();
    assert!(text.ends_with("and 2 more, which may follow from these"), "{text}");
    assert_eq!(text.matches("no function is called").count(), 3, "{text}");
}
