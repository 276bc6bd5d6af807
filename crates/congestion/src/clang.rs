//! The call of clang that compiles an algorithm for BPF: one command for the build script and for a user's own file.
//!
//! The same source and the same clang give the same bytes, wherever they lie: names are relative to the folder that
//! clang works in, and what it notes for debuggers as that folder is ".".

use std::env;
use std::path::Path;
use std::process::Command;

/// As bpf/env.h says.
const FLAGS: [&str; 18] = [
    "-target",
    "bpf",
    "-mcpu=v3",
    "-g",
    "-O2",
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-nostdinc",
    "-ffreestanding",
    "-fwrapv",
    "-Werror=float-conversion",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-fno-crash-diagnostics",
    // Two words: the form with "=" came with 13.
    "-fdebug-compilation-dir",
    ".",
    "-c",
];

/// Versions of clang that are looked for under their own names; BTF for struct_ops came with 11.
const VERSIONS: std::ops::RangeInclusive<u32> = 11..=25;

/// The compiler: `$CLANG`, `clang` or `clang-N`, the first that knows BPF, and what it says of its version.
pub(crate) fn find() -> Option<(String, String)> {
    let numbered = VERSIONS.rev().map(|version| format!("clang-{version}"));
    let version = |name: String| {
        let answer = Command::new(&name).args(["-target", "bpf", "--version"]).output();
        let answer = answer.ok().filter(|output| output.status.success())?;
        let said = String::from_utf8_lossy(&answer.stdout).lines().next().unwrap_or_default().to_owned();
        Some((name, said))
    };
    env::var("CLANG").into_iter().chain(["clang".to_owned()]).chain(numbered).find_map(version)
}

/// The command that compiles the file `name` of `folder`, in which cc.h lies too, to `object`, an absolute path.
pub(crate) fn command(clang: &str, folder: &Path, name: &str, object: &Path) -> Command {
    let mut command = Command::new(clang);
    command.args(FLAGS).args(["-I.", name, "-o"]).arg(object).current_dir(folder).env("LC_ALL", "C");
    command
}
