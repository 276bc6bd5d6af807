//! The same files, for the running kernel: compiled by clang for BPF, through this kernel's verifier, at work in its
//! TCP.
//!
//! What a machine lacks is said on stderr, and the part that needs it is skipped: clang; for the kernel's part also
//! libbpf's headers, root, BTF and a kernel recent enough. Nothing stays behind: programs and registration belong to a
//! process that ends.

use congestion::{builtin, builtin_object, builtin_objects_compiler, compile_bpf, CompileError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, process};

/// A folder for one test, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bpf-{test}-{}", process::id()));
        fs::create_dir_all(&path).expect("cargo's folder for tests can be written");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Past the test harness, which swallows what a passing test prints.
fn skipped(why: &str) {
    // As tests/conftest.py has it for the tests in Python.
    let required = std::env::var_os("ELEPHAN_REQUIRE_KERNEL").is_some_and(|value| value == "1");
    assert!(!required, "ELEPHAN_REQUIRE_KERNEL=1, and yet: {why}");
    writeln!(std::io::stderr(), "SKIPPED part of the BPF tests: {why}").expect("stderr can be written");
}

/// Compiles `code` for BPF; `kernel_name` is what the kernel is to call it. None, with a word on why, without clang.
fn object(folder: &Folder, stem: &str, code: &str, kernel_name: Option<&str>) -> Option<PathBuf> {
    let compiled = match compile_bpf(format!("{stem}.c").as_ref(), code, kernel_name) {
        Err(CompileError::NoClang) => {
            skipped("clang is not installed (or set CLANG): nothing was compiled for BPF");
            return None;
        }
        other => other.unwrap_or_else(|error| panic!("{error}")),
    };
    assert_eq!(compiled.warnings, [], "{stem}");
    let object = folder.0.join(format!("{stem}.o"));
    fs::write(&object, compiled.bytes).expect("it can be written");
    Some(object)
}

/// May load BPF and make a network namespace: root in a container often may not.
fn privileged() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let (net_admin, sys_admin) = (1 << 12, 1 << 21);
    bits & net_admin != 0 && bits & sys_admin != 0
}

/// The kernel is at least this version; if not, says that `what` is skipped.
fn kernel_since(version: (u32, u32), what: &str) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    let running = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if running < version {
        skipped(&format!("Linux {}.{} or later, this is {}: {what}", version.0, version.1, release.trim()));
    }
    running >= version
}

/// Registration by a link, which ends with its process, came with 6.4; cong_control's arguments with 6.10.
const LINKS: (u32, u32) = (6, 4);
const CONG_CONTROL: (u32, u32) = (6, 10);

/// The program that loads an object, built from c/probe.c; None, with a word on why, where this machine cannot.
fn probe(folder: &Folder) -> Option<PathBuf> {
    if !privileged() {
        skipped("needs root with CAP_SYS_ADMIN and CAP_NET_ADMIN: nothing was put through the kernel's verifier");
        return None;
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        skipped("this kernel has no BTF: nothing was put through its verifier");
        return None;
    }
    let program = folder.0.join("probe");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/probe.c");
    let built = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-o"])
        .args([program.as_os_str(), source.as_os_str(), "-lbpf".as_ref(), "-pthread".as_ref()])
        .output()
        .expect("cc runs");
    if !built.status.success() {
        let text = String::from_utf8_lossy(&built.stderr).into_owned();
        assert!(text.contains("bpf/bpf.h") || text.contains("-lbpf"), "probe.c: {text}");
        skipped("libbpf's headers (libbpf-dev) are not installed: nothing was put through the kernel's verifier");
        return None;
    }
    Some(program)
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const EVERYTHING: &str = include_str!("c/everything.c");

/// Each algorithm with its text; also the file that uses every accessor and every hook.
fn all() -> Vec<(String, String)> {
    let mut all: Vec<_> = builtin().iter().map(|a| (a.name().to_owned(), a.code().to_owned())).collect();
    if kernel_since(CONG_CONTROL, "the file with every hook was not loaded") {
        all.push(("everything".to_owned(), EVERYTHING.to_owned()));
    }
    all
}

/// A name that no other process and no other test gives an algorithm: at most 15 characters.
fn kernel_name(number: usize) -> String {
    format!("cct{}_{number}", process::id())
}

#[test]
fn every_algorithm_passes_this_kernels_verifier() {
    let folder = Folder::new("verifier");
    for (name, code) in all() {
        let Some(object) = object(&folder, &name, &code, None) else { return };
        let Some(probe) = probe(&folder) else { return };
        let output = Command::new(&probe).arg(object).output().expect("the probe runs");
        assert!(output.status.success(), "{name}: {}", text(&output));
        assert!(text(&output).starts_with("verified "), "{name}: {}", text(&output));
    }
}

#[test]
fn every_algorithm_carries_data_in_this_kernels_tcp() {
    if !kernel_since(LINKS, "no data was carried under an algorithm") {
        return;
    }
    let folder = Folder::new("carries");
    for (number, (name, code)) in all().into_iter().enumerate() {
        let kernel_name = kernel_name(number);
        let Some(object) = object(&folder, &name, &code, Some(&kernel_name)) else { return };
        let Some(probe) = probe(&folder) else { return };
        let bytes = "20000000";
        let output = Command::new(&probe).arg(object).args(["--carry", &kernel_name, bytes]).output();
        let said = text(&output.expect("the probe runs"));
        assert!(said.contains(&format!("carried {bytes} bytes under {kernel_name}")), "{name}: {said}");
        assert!(!registered().contains(&kernel_name), "{name} is still registered");
    }
}

#[test]
fn a_parameter_set_at_load_time_reaches_the_kernel() {
    if !kernel_since(CONG_CONTROL, "the file with every hook was not loaded") {
        return;
    }
    let folder = Folder::new("parameter");
    for (window, number) in [("33", 90), ("7", 91)] {
        let kernel_name = kernel_name(number);
        let Some(object) = object(&folder, "everything", EVERYTHING, Some(&kernel_name)) else { return };
        let Some(probe) = probe(&folder) else { return };
        let set = format!("first_window={window}");
        let output = Command::new(&probe).arg(object).args(["--carry", &kernel_name, "1000", &set]).output();
        let said = text(&output.expect("the probe runs"));
        assert!(said.contains(&format!("first window {window},")), "{said}");
    }
}

#[test]
fn what_fails_leaves_nothing_registered() {
    if !kernel_since(CONG_CONTROL, "the file with every hook was not loaded") {
        return;
    }
    let folder = Folder::new("fails");
    let kernel_name = kernel_name(92);
    let Some(object) = object(&folder, "everything", EVERYTHING, Some(&kernel_name)) else { return };
    let Some(probe) = probe(&folder) else { return };
    // Registered under one name, asked for by another: it fails after the registration.
    let output = Command::new(&probe).arg(object).args(["--carry", "no_such_name", "1000"]).output();
    let output = output.expect("the probe runs");
    assert!(!output.status.success());
    assert!(text(&output).contains("setsockopt(TCP_CONGESTION)"), "{}", text(&output));
    assert!(!registered().contains(&kernel_name));
}

#[test]
fn the_verifier_refuses_what_a_native_build_would_run() {
    // So that a pass means something: a loop without a bound is caught.
    if !kernel_since(CONG_CONTROL, "the file with every hook was not loaded") {
        return;
    }
    let folder = Folder::new("refuses");
    let endless = EVERYTHING.replace(
        "static u32 every_min_tso_segs(struct cc_sock *sk)\n{\n",
        "static u32 every_min_tso_segs(struct cc_sock *sk)\n{\n\twhile (cc_snd_cwnd(sk))\n\t\tcc_state(sk)->acks++;\n",
    );
    assert_ne!(endless, EVERYTHING);
    let Some(object) = object(&folder, "endless", &endless, None) else { return };
    let Some(probe) = probe(&folder) else { return };
    let output = Command::new(&probe).arg(object).output().expect("the probe runs");
    assert!(!output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("infinite loop"), "{}", text(&output));
}

/// The kernel's list of algorithms.
fn registered() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default()
}

#[test]
fn the_kernels_name_fits_and_can_be_told_apart() {
    // `elephan_` and seven characters of the name; the bytes lie in the object's .struct_ops section.
    let folder = Folder::new("name");
    for (name, kernel_name) in [("reno", "elephan_reno"), ("storage_friendly", "elephan_storage")] {
        let code = congestion::find(name).expect("built in").code().to_owned();
        let Some(object) = object(&folder, name, &code, None) else { return };
        let bytes = fs::read(object).expect("clang wrote it");
        let mut ended = kernel_name.as_bytes().to_vec();
        ended.push(0);
        assert!(bytes.windows(ended.len()).any(|w| w == ended), "{kernel_name}");
    }
}

#[test]
fn the_same_source_gives_the_same_object_wherever_it_lies() {
    // Each compilation has a folder of its own, another one each time; the build script's was congestion/.
    let everything = |path: &str| compile_bpf(path.as_ref(), EVERYTHING, None).map(|object| object.bytes);
    match everything("here/everything.c") {
        Err(CompileError::NoClang) => return skipped("clang is not installed (or set CLANG): nothing was compiled"),
        first => assert!(first.expect("it compiles") == everything("/there/everything.c").expect("it compiles")),
    }
    if builtin_objects_compiler().is_none() {
        return skipped("there was no clang when this was built: no objects of the built-in algorithms to compare");
    }
    for algorithm in builtin() {
        let anew = compile_bpf(format!("{}.c", algorithm.name()).as_ref(), algorithm.code(), None);
        let anew = anew.unwrap_or_else(|error| panic!("{error}")).bytes;
        let built = builtin_object(algorithm.name()).unwrap_or_else(|| panic!("{}: no object", algorithm.name()));
        assert!(built == anew, "{}: {} bytes, {} anew", algorithm.name(), built.len(), anew.len());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/congestion lies in it");
        let folder = folder.to_str().expect("a UTF-8 path").as_bytes();
        assert!(!built.windows(folder.len()).any(|bytes| bytes == folder), "{}", algorithm.name());
    }
}
