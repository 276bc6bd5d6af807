//! Compiling leaves nothing on disk, whether it succeeds or not. A file of its own: no other test compiles beside it.

use congestion::compile;
use std::path::Path;
use std::{env, fs, process};

fn ours() -> usize {
    let prefix = format!("elephan-cc-{}-", process::id());
    let entries = fs::read_dir(env::temp_dir()).expect("the folder for temporary files can be read");
    entries.filter_map(Result::ok).filter(|e| e.file_name().to_string_lossy().starts_with(&prefix)).count()
}

#[test]
fn nothing_is_left_behind() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let everything = compile(&folder.join("tests/c/everything.c")).expect("it compiles");
    assert_eq!(ours(), 0);
    compile(&folder.join("build.rs")).expect_err("not C");
    assert_eq!(ours(), 0);
    assert_eq!(everything.name(), "everything");
}
