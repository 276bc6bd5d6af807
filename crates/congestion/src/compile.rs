//! A user's own algorithm: one C file, compiled by the system's compiler, checked, loaded.

use crate::compiler::run;
use crate::descriptor::Algorithm;
use crate::diagnose::{self, Grade};
use crate::headers::HEADERS;
use crate::load::load;
use crate::problem::{Listed, Problem};
use crate::source;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{env, fs, io, process};

/// Flags that hold the rules of cc.h: no header but ours, no library, no floating point (with
/// `-mgeneral-regs-only` also where no variable is declared), integers that wrap as in BPF.
const FLAGS: [&str; 15] = [
    "-std=c11",
    // So that the linker, too, can name a line.
    "-g",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror=float-conversion",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-nostdinc",
    "-ffreestanding",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
    "-fPIC",
    "-shared",
];

/// Reason for which a user's own algorithm cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The file cannot be read.
    #[error("{}: cannot read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// No compiler, or no room to work in.
    #[error("{}: cannot compile: {doing}: {error}", path.display())]
    Environment {
        /// The file.
        path: PathBuf,
        /// The attempt.
        doing: String,
        /// The reason of the failure.
        error: io::Error,
    },
    /// The compiler refuses it.
    #[error("{}: does not compile:\n{}", path.display(), describe(path, problems, text))]
    Compiler {
        /// The file.
        path: PathBuf,
        /// The faults, in plain words; empty if the compiler's text was not understood.
        problems: Vec<Problem>,
        /// The compiler's words.
        text: String,
    },
    /// It compiles, but it is not an algorithm as cc.h describes one.
    #[error("{}: not a usable algorithm: {reason}", at(path, *line))]
    NotAnAlgorithm {
        /// The file.
        path: PathBuf,
        /// The line of CC_ALGORITHM, where there is one.
        line: Option<usize>,
        /// The fault.
        reason: String,
    },
    /// There is no clang to compile for BPF with.
    #[error("clang 11 or later is not installed: apt-get install clang-16 (or name another in CLANG)")]
    NoClang,
}

impl CompileError {
    /// Returns the faults of the file, place by place; empty if it is not the file's fault.
    pub fn problems(&self) -> Vec<Problem> {
        match self {
            CompileError::Compiler { problems, .. } => problems.clone(),
            CompileError::NotAnAlgorithm { line, reason, .. } => {
                vec![Problem { line: *line, what: reason.clone(), code: String::new(), hint: None }]
            }
            _ => vec![],
        }
    }
}

fn describe(path: &Path, problems: &[Problem], text: &str) -> String {
    match problems {
        [] => text.to_owned(),
        _ => Listed { file: &path.display().to_string(), problems }.to_string(),
    }
}

fn at(path: &Path, line: Option<usize>) -> String {
    line.map_or(path.display().to_string(), |line| format!("{}:{line}", path.display()))
}

/// Compiles the algorithm in the C file `path` and loads it.
///
/// The compiler is `$CC` (words: a program and its arguments) or `cc`; gcc or clang. The headers come from this
/// library, not from a checkout. Nothing stays on disk. The code runs in this process, under a guard that ends the
/// process with a message when a hook faults or never returns.
///
/// # Errors
/// The file or the compiler cannot be had, the compiler refuses (its text is in the error), or the file is not an
/// algorithm as cc.h describes one.
pub fn compile(path: &Path) -> Result<Algorithm, CompileError> {
    compile_and_warn(path).map(|(algorithm, _)| algorithm)
}

/// The same, with what the compiler warns of and what else looks dangerous, though it compiles.
///
/// # Errors
/// As [`compile`].
pub fn compile_and_warn(path: &Path) -> Result<(Algorithm, Vec<Problem>), CompileError> {
    let code = user_files::read_to_string(path, user_files::SOURCE_BYTES_MAX)
        .map_err(|error| CompileError::Unreadable { path: path.to_owned(), error })?;
    let key = (path.to_owned(), code.clone(), env::var("CC").unwrap_or_default());
    if let Some(known) = compiled().get(&key) {
        return Ok(known.clone());
    }
    let result = compile_anew(path, code)?;
    compiled().insert(key, result.clone());
    Ok(result)
}

/// A file's path, its text, and the compiler.
type Key = (PathBuf, String, String);

/// Algorithms compiled in this process: each run of a sweep asks again. Their code stays loaded, some 20 kB each.
fn compiled() -> MutexGuard<'static, BTreeMap<Key, (Algorithm, Vec<Problem>)>> {
    static COMPILED: Mutex<BTreeMap<Key, (Algorithm, Vec<Problem>)>> = Mutex::new(BTreeMap::new());
    COMPILED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn compile_anew(path: &Path, code: String) -> Result<(Algorithm, Vec<Problem>), CompileError> {
    must_include_cc_h_alone(path, &code)?;
    let failed = |doing: String, error| CompileError::Environment { path: path.to_owned(), doing, error };
    let work = WorkDir::new().map_err(|e| failed(format!("create a folder in {}", env::temp_dir().display()), e))?;
    // A copy in a folder of its own: the text that was checked is compiled, and no header beside the original is taken.
    let folder = work.0.join("source");
    let copy = folder.join(path.file_name().unwrap_or(OsStr::new("algorithm.c")));
    work.write_headers()
        .and_then(|()| fs::create_dir(&folder))
        .and_then(|()| fs::write(&copy, &code))
        .map_err(|e| failed(format!("write to {}", work.0.display()), e))?;

    let object = work.0.join("algorithm.so");
    let mut command = compiler();
    let program = command.get_program().to_owned();
    command
        .args(FLAGS)
        .args(of_processor())
        .args(["-nostdlib", "-Wl,-z,defs", "-I"])
        .arg(&work.0)
        .arg("-o")
        .args([object.as_os_str(), copy.as_os_str()]);
    let finished = run(&mut command, &work.0)
        .map_err(|e| failed(format!("run {} (is a C compiler installed? set CC)", program.to_string_lossy()), e))?;
    let file = copy.display().to_string();
    if !finished.status.success() {
        let problems = diagnose::problems(&finished.text, &file, &code, Grade::Error);
        let text = finished.text.replace(&file, &path.display().to_string());
        return Err(CompileError::Compiler { path: path.to_owned(), problems, text });
    }
    let mut warnings = diagnose::problems(&finished.text, &file, &code, Grade::Warning);
    let divisions = source::divisions(&code);
    let lines: Vec<_> = divisions.iter().filter_map(|problem| problem.line).collect();
    warnings.extend(divisions);
    let line = source::line_of(&code, "CC_ALGORITHM");
    let algorithm = load(&object, code, path, &lines).map_err(|reason| CompileError::NotAnAlgorithm {
        path: path.to_owned(),
        line,
        reason,
    })?;
    Ok((algorithm, warnings))
}

/// Refuses a file with another header, before a compiler opens it: a header may be a device without an end.
pub(crate) fn must_include_cc_h_alone(path: &Path, code: &str) -> Result<(), CompileError> {
    let problems = source::other_headers(code);
    match problems.is_empty() {
        true => Ok(()),
        false => Err(CompileError::Compiler { path: path.to_owned(), problems, text: String::new() }),
    }
}

fn compiler() -> Command {
    let cc = env::var("CC").unwrap_or_default();
    let mut words = cc.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words);
    command
}

/// Options of the processor: one that forbids floating point altogether, and one by which a large frame is touched page
/// by page, so that it meets the end of the stack and nothing behind it.
fn of_processor() -> &'static [&'static str] {
    const OPTIONS: [&str; 3] = ["-mgeneral-regs-only", "-fstack-clash-protection", "-Wno-unused-command-line-argument"];
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        &OPTIONS
    } else {
        &[]
    }
}

/// A folder of our own, gone when dropped.
pub(crate) struct WorkDir(pub(crate) PathBuf);

impl WorkDir {
    pub(crate) fn new() -> io::Result<WorkDir> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let mut name = OsString::from("elephan-cc-");
            name.push(format!("{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
            let path = env::temp_dir().join(name);
            #[cfg_attr(not(unix), allow(unused_mut))]
            let mut builder = fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            match builder.create(&path) {
                Ok(()) => return Ok(WorkDir(path)),
                // Left by a process of this id that was killed, or laid out for us by somebody: not ours.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(e),
            }
        }
    }

    pub(crate) fn write_headers(&self) -> io::Result<()> {
        for (name, text) in HEADERS {
            let path = self.0.join(name);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, text)?;
        }
        Ok(())
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // A folder that cannot be removed stays, named as ours, among temporary files; the result is the same.
        let _ = fs::remove_dir_all(&self.0);
    }
}
