//! An algorithm compiled for BPF: what the running kernel loads. Loading it is another's business.

use crate::clang;
use crate::compile::{self, CompileError, WorkDir};
use crate::compiler::{run, Finished};
use crate::diagnose::{self, Grade};
use crate::problem::Problem;
use std::ffi::OsStr;
use std::path::Path;
use std::{fs, io};

include!(concat!(env!("OUT_DIR"), "/builtin_bpf.rs"));

/// The purpose of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BpfBuild {
    /// To carry connections.
    Kernel,
    /// The same, and every hook records its arguments and what it left (bpf/record.h).
    Record,
    /// No congestion control: each hook a program of its own, over a sender in memory (bpf/step.h).
    Step,
}

/// An object file for the kernel.
pub struct BpfObject {
    /// The ELF file.
    pub bytes: Vec<u8>,
    /// The compiler, as it is called.
    pub clang: String,
    /// Its warnings.
    pub warnings: Vec<Problem>,
}

/// Compiles the text `code` of the file `path` for BPF. `kernel_name` is what the kernel is to call the algorithm, at
/// most 15 characters; without it, as bpf/env.h says. The compiler is `$CLANG`, `clang` or `clang-N`. Nothing stays on
/// disk.
///
/// # Errors
/// No clang, no room to work in, or clang refuses.
pub fn compile_bpf(path: &Path, code: &str, kernel_name: Option<&str>) -> Result<BpfObject, CompileError> {
    compile_bpf_as(BpfBuild::Kernel, path, code, kernel_name)
}

/// The same, for another purpose.
///
/// # Errors
/// As [`compile_bpf`].
pub fn compile_bpf_as(
    build: BpfBuild,
    path: &Path,
    code: &str,
    kernel_name: Option<&str>,
) -> Result<BpfObject, CompileError> {
    compile::must_include_cc_h_alone(path, code)?;
    let (clang, _) = clang::find().ok_or(CompileError::NoClang)?;
    let failed = |doing: &str, error: io::Error| CompileError::Environment {
        path: path.to_owned(),
        doing: doing.to_owned(),
        error,
    };
    let work = WorkDir::new().map_err(|e| failed("create a folder for temporary files", e))?;
    // A copy, under its own name: the kernel's verifier shows that name, and no cc.h beside the original is taken.
    let name = path.file_name().unwrap_or(OsStr::new("algorithm.c"));
    let object = work.0.join("algorithm.o");
    work.write_headers()
        .and_then(|()| fs::write(work.0.join(name), code))
        .map_err(|e| failed("write temporary files", e))?;
    // With "./" in front, so that no name is taken for an option.
    let file = format!("./{}", name.to_string_lossy());
    let mut command = clang::command(&clang, &work.0, &file, &object);
    command.args(kernel_name.map(|name| format!("-DCC_BPF_NAME=\"{name}\""))).args(match build {
        BpfBuild::Kernel => None,
        BpfBuild::Record => Some("-DCC_RECORD"),
        BpfBuild::Step => Some("-DCC_STEP"),
    });
    let Finished { status, text } = run(&mut command, &work.0).map_err(|e| failed(&format!("run {clang}"), e))?;
    if !status.success() {
        let problems = diagnose::problems(&text, &file, code, Grade::Error);
        let text = text.replace(&file, &path.display().to_string());
        return Err(CompileError::Compiler { path: path.to_owned(), problems, text });
    }
    let bytes = fs::read(&object).map_err(|e| failed("read what clang wrote", e))?;
    Ok(BpfObject { bytes, clang, warnings: diagnose::problems(&text, &file, code, Grade::Warning) })
}

/// The object of the built-in algorithm `name`, made when this library was; None when there was no clang then.
pub fn builtin_object(name: &str) -> Option<&'static [u8]> {
    OBJECTS.iter().find(|(of, _)| *of == name).map(|(_, bytes)| *bytes)
}

/// The clang that made the objects of the built-in algorithms, as it calls itself; None when there was none.
pub fn builtin_objects_compiler() -> Option<&'static str> {
    COMPILER
}
