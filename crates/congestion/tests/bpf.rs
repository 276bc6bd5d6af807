//! The same files, compiled by clang for BPF. crates/bpf/tests puts them through the kernel's verifier and to work.
//!
//! Without clang nothing is compiled, with a word on stderr.

use congestion::{builtin, builtin_object, builtin_objects_compiler, compile_bpf, CompileError};
use std::path::Path;

/// A file with every hook and every accessor.
const EVERYTHING: &str = include_str!("c/everything.c");

#[test]
fn the_kernels_name_fits_and_can_be_told_apart() {
    // `elephan_` and seven characters of the name; the bytes lie in the object's .struct_ops section.
    for (name, kernel_name) in [("reno", "elephan_reno"), ("storage_friendly", "elephan_storage")] {
        let code = congestion::find(name).expect("built in").code().to_owned();
        let bytes = match compile_bpf(format!("{name}.c").as_ref(), &code, None) {
            Err(CompileError::NoClang) => {
                return crate::skip::skipped_for_kernel("clang is not installed (or set CLANG): nothing was compiled")
            }
            made => made.expect("it compiles").bytes,
        };
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
        Err(CompileError::NoClang) => {
            return crate::skip::skipped_for_kernel("clang is not installed (or set CLANG): nothing was compiled")
        }
        first => assert!(first.expect("it compiles") == everything("/there/everything.c").expect("it compiles")),
    }
    if builtin_objects_compiler().is_none() {
        return crate::skip::skipped_for_kernel(
            "there was no clang when this was built: no objects of the built-in algorithms to compare",
        );
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
