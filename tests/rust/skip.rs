//! A skipped test, counted as one: libtest knows only tests that are ignored when they are built.
//!
//! A test that lacks something calls [`skipped`] and returns. scripts/check.py finds the line and moves the test from
//! those that passed to those that were skipped. Included by path, since a test of a crate without I/O may not depend
//! on it otherwise.

use std::io::Write;

/// Reports that the running test, or part of it, was skipped for a requirement that any machine can have.
pub fn skipped(why: &str) {
    // libtest names a test's thread after the test. The output bypasses the harness, which swallows that of a passing
    // test.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("unnamed");
    // One write, so that tests that run at once do not mix their lines.
    let line = format!("SKIPPED {}::{test}: {why}\n", env!("CARGO_CRATE_NAME"));
    std::io::stderr().write_all(line.as_bytes()).expect("stderr can be written");
}

/// As [`skipped`], for what the kernel's tests need: a failure where .ci/run found all of it (tests/conftest.py).
#[allow(dead_code, reason = "crates without kernel tests include this file too")]
pub fn skipped_for_kernel(why: &str) {
    let required = std::env::var_os("ELEPHAN_REQUIRE_KERNEL").is_some_and(|value| value == "1");
    assert!(!required, "ELEPHAN_REQUIRE_KERNEL=1, and yet: {why}");
    skipped(why);
}
