//! Compiles every algorithm of `congestion/` and writes the table of built-ins: a new file there needs no change here.
//! Where there is a clang they are compiled for BPF as well; without one the kernel's are compiled when they are
//! loaded.

#[path = "src/clang.rs"]
mod clang;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// As `compile::FLAGS` for a user's own file, and warnings are errors.
const FLAGS: [&str; 6] = [
    "-nostdinc",
    "-ffreestanding",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
    "-Werror=float-conversion",
];

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let sources = manifest.join("../../congestion").canonicalize().expect("congestion/ lies beside crates/");
    println!("cargo:rerun-if-changed={}", sources.display());
    println!("cargo:rerun-if-changed=src/layout.c");
    println!("cargo:rerun-if-changed=src/clang.rs");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CLANG");

    let algorithms = algorithms_of(&sources);
    for (stem, path) in &algorithms {
        compiler(&sources).define("CC_SYMBOL", format!("cc_algorithm_{stem}").as_str()).file(path).compile(stem);
    }
    compiler(&sources).file("src/layout.c").compile("cc_layout");
    fs::write(out.join("builtin.rs"), table(&algorithms)).expect("OUT_DIR can be written");
    fs::write(out.join("builtin_bpf.rs"), objects(&sources, &out, &algorithms)).expect("OUT_DIR can be written");
}

/// Compiles the algorithms for BPF into `out`, and returns the table of the objects.
fn objects(sources: &Path, out: &Path, algorithms: &[(String, PathBuf)]) -> String {
    let compiler = clang::find();
    let said = compiler.as_ref().map(|(_, said)| said.as_str());
    let mut text = format!("/// The clang of the build script.\nconst COMPILER: Option<&str> = {said:?};\n\n");
    text.push_str("/// What it made of each file of `congestion/`.\nconst OBJECTS: &[(&str, &[u8])] = &[\n");
    for (stem, _) in algorithms {
        let Some((clang, _)) = &compiler else { break };
        let object = out.join(format!("{stem}.bpf.o"));
        let object = object.to_str().expect("a UTF-8 path");
        let name = format!("./{stem}.c");
        let made = clang::command(clang, sources, &name, object.as_ref()).output().expect("it ran a moment ago");
        if made.status.success() {
            writeln!(text, "    ({stem:?}, include_bytes!({object:?})),").expect("a string");
        } else {
            // No reason to build nothing at all: loading it says the same, and better.
            let first = String::from_utf8_lossy(&made.stderr).lines().next().unwrap_or_default().to_owned();
            println!("cargo:warning={clang} makes no BPF object of {stem}.c, and this build has none: {first}");
        }
    }
    text.push_str("];\n");
    text
}

/// The C files of the folder, by name: their order is that of the built-ins.
fn algorithms_of(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).expect("congestion/ can be read") {
        let path = entry.expect("congestion/ can be read").path();
        if path.extension().is_some_and(|e| e == "c") {
            let stem = path.file_stem().and_then(|s| s.to_str()).expect("a UTF-8 name").to_owned();
            let plain = stem.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            assert!(plain, "{}: a file's name is the algorithm's: a-z, 0-9 and _", path.display());
            found.push((stem, path));
        }
    }
    found.sort();
    found
}

fn compiler(include: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build.include(include).std("c11").opt_level(2).extra_warnings(true).warnings_into_errors(true);
    for flag in FLAGS {
        build.flag(flag);
    }
    // Floating point then is an error of the compiler, even where no variable is declared. Not every processor has it.
    if matches!(env::var("CARGO_CFG_TARGET_ARCH").as_deref(), Ok("x86_64" | "aarch64")) {
        build.flag_if_supported("-mgeneral-regs-only");
    }
    build
}

fn table(algorithms: &[(String, PathBuf)]) -> String {
    let mut text = String::from("extern \"C\" {\n");
    for (stem, _) in algorithms {
        writeln!(text, "    static cc_algorithm_{stem}: RawAlgorithm;").expect("a string");
    }
    text.push_str("}\n\n/// Descriptor and text of each file of `congestion/`.\n");
    text.push_str("fn compiled_in() -> Vec<(*const RawAlgorithm, &'static str)> {\n    vec![\n");
    for (stem, path) in algorithms {
        let path = path.to_str().expect("a UTF-8 path");
        writeln!(text, "        (std::ptr::addr_of!(cc_algorithm_{stem}), include_str!({path:?})),").expect("a string");
    }
    text.push_str("    ]\n}\n");
    text
}
