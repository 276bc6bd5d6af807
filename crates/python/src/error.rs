//! The one map from the core's errors to Python's exceptions.
//!
//! What the caller gave is wrong: ValueError. This machine refuses: OSError. The caller stopped a run: `Stopped`. The
//! kernel or libbpf refuses a program: `BpfError`. A user's congestion control: `CompileError`, `NoClang`.

use ::bpf::Error as BpfFault;
use congestion::{CompileError as CompileFault, Problem};
use copy_net::{CopyError, ErrorKind};
use experiment::RunError;
use kernel::KernelError;
use line_net::LineError;
use path_net::PathError;
use pyo3::create_exception;
use pyo3::exceptions::{PyBlockingIOError, PyException, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::fmt::Display;
use std::io;
use storage::disk::ReplayError;
use storage_net::fc_port::FcPortError;

create_exception!(_native, Stopped, PyException, "The progress callback asked the run to stop.");
create_exception!(_native, CompileError, PyValueError, "A user's own algorithm does not compile or does not load.");
create_exception!(
    _native,
    CopyFault,
    PyException,
    "A copy ended early: `kind` as the agent has it, `text` in one line."
);
create_exception!(_native, NoClang, PyValueError, "There is no clang to compile for BPF with.");
create_exception!(
    _native,
    BpfError,
    PyException,
    "The kernel or libbpf refused something. `kind`: \"load\" (of an object, of which `program`, `log` and `messages` \
     say more), \"call\", or \"object\" when the fault is that of whoever asked; `errno` is the number of the first \
     two, else None; `reason` is the text without the attempt."
);

/// ValueError: what the caller gave is wrong.
pub(crate) fn value(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// OSError: this machine refuses.
pub(crate) fn machine(error: impl Display) -> PyErr {
    PyOSError::new_err(error.to_string())
}

/// ValueError for what is no JSON of its form; `what` names it.
pub(crate) fn json(what: &str) -> impl FnOnce(serde_json::Error) -> PyErr + '_ {
    move |error| value(format_args!("{what}: {error}"))
}

/// A server or gateway that does not start: BlockingIOError when another has its place, ValueError when a file holds
/// what it may not, else OSError.
pub(crate) fn start(error: io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::WouldBlock => PyBlockingIOError::new_err(error.to_string()),
        io::ErrorKind::InvalidData => value(error),
        _ => machine(error),
    }
}

/// A Fibre Channel port's error.
pub(crate) fn fc_port(error: FcPortError) -> PyErr {
    match error {
        FcPortError::Stopped => Stopped::new_err(error.to_string()),
        FcPortError::WrongLoad(wrong) => value(wrong),
        other => machine(other),
    }
}

/// A line test's error.
pub(crate) fn line(error: LineError) -> PyErr {
    match error {
        LineError::Stopped => Stopped::new_err(error.to_string()),
        LineError::Spec(wrong) => value(wrong),
        LineError::Io(refused) => machine(refused),
    }
}

/// A path test's error.
pub(crate) fn path(error: PathError) -> PyErr {
    match error {
        PathError::Stopped => Stopped::new_err(error.to_string()),
        PathError::Input(wrong) => value(wrong),
        PathError::Io { .. } => machine(error),
    }
}

/// Name of a kind, as the agent's answers have it.
fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Input => "input",
        ErrorKind::Port => "port",
        ErrorKind::Peer => "peer",
        ErrorKind::Token => "token",
        ErrorKind::Protocol => "protocol",
        ErrorKind::Full => "full",
        ErrorKind::Io => "kernel",
        ErrorKind::Busy => "busy",
        ErrorKind::Stopped => "stopped",
    }
}

/// The reason that a copy ended early.
pub(crate) fn copy(py: Python<'_>, fault: &CopyError) -> PyErr {
    let raised = CopyFault::new_err(fault.text.clone());
    let value = raised.value(py);
    let set = value.setattr("kind", kind_name(fault.kind)).and_then(|()| value.setattr("text", &fault.text));
    set.err().unwrap_or(raised)
}

/// A simulated run's error.
pub(crate) fn run(error: RunError) -> PyErr {
    match error {
        RunError::Stopped => Stopped::new_err(error.to_string()),
        RunError::Capture { ref source, .. } => PyOSError::new_err((source.raw_os_error(), error.to_string())),
        other => value(other),
    }
}

/// The error of a run with this machine's TCP.
pub(crate) fn kernel_run(error: KernelError) -> PyErr {
    match error {
        KernelError::Stopped | KernelError::Spec(RunError::Stopped) => Stopped::new_err(error.to_string()),
        KernelError::Spec(_) => value(error),
        KernelError::Flow { .. } | KernelError::Machine { .. } | KernelError::Port(_) | KernelError::Peer(_) => {
            machine(error)
        }
    }
}

/// A replay's error. What the core can do about it is an option of the command, which is named here alone.
pub(crate) fn replay(error: ReplayError) -> PyErr {
    match error {
        ReplayError::OutOfRange(text) => value(format_args!(
            "{text}: --out-of-range skip leaves such requests out, wrap takes block numbers modulo the disk's size"
        )),
        other => value(other),
    }
}

/// The error of a compiler, with its `problems`, place by place.
pub(crate) fn compile(py: Python<'_>, error: &CompileFault) -> PyErr {
    if matches!(error, CompileFault::NoClang) {
        return NoClang::new_err(error.to_string());
    }
    let raised = CompileError::new_err(error.to_string());
    match listed(py, &error.problems()).and_then(|problems| raised.value(py).setattr("problems", problems)) {
        Ok(()) => raised,
        Err(other) => other,
    }
}

/// A compiler's faults or warnings as dicts: `line`, `what`, `code`, `hint`.
pub(crate) fn listed<'py>(py: Python<'py>, problems: &[Problem]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for problem in problems {
        let entry = PyDict::new(py);
        entry.set_item("line", problem.line)?;
        entry.set_item("what", &*problem.what)?;
        entry.set_item("code", &*problem.code)?;
        entry.set_item("hint", &problem.hint)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// The kernel's or libbpf's refusal.
pub(crate) fn bpf(py: Python<'_>, error: &BpfFault) -> PyErr {
    let raised = BpfError::new_err(error.to_string());
    let value = raised.value(py);
    let (kind, program, log, messages) = match error {
        BpfFault::Load { program, log, messages, .. } => ("load", program.as_str(), log.as_str(), messages.as_slice()),
        BpfFault::Call { .. } => ("call", "", "", [].as_slice()),
        BpfFault::Lacks(_) | BpfFault::Size { .. } => ("object", "", "", [].as_slice()),
    };
    let done = value
        .setattr("kind", kind)
        .and_then(|()| value.setattr("reason", error.reason()))
        .and_then(|()| value.setattr("errno", error.errno()))
        .and_then(|()| value.setattr("program", program))
        .and_then(|()| value.setattr("log", log))
        .and_then(|()| value.setattr("messages", messages.to_vec()));
    done.err().unwrap_or(raised)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("BpfError", py.get_type::<BpfError>())?;
    module.add("CompileError", py.get_type::<CompileError>())?;
    module.add("CopyFault", py.get_type::<CopyFault>())?;
    module.add("NoClang", py.get_type::<NoClang>())?;
    module.add("Stopped", py.get_type::<Stopped>())
}
