//! The hooks of a user's own algorithm, called under a guard: a hook that faults or never ends is named, with flow and
//! time, before the process ends.
//!
//! A hook that has run into memory that is not its own has no result, and the process around it is not to be trusted
//! any more: it ends, with exit code 2 and one line on standard error. A caller that must survive runs it in a process
//! of its own (`elephan/control_process.py`).
//!
//! Built-in algorithms are not called by way of this module and pay nothing for it.

mod calls;
mod line;
mod memory;
mod signals;
mod slot;
mod watchdog;

pub(crate) use calls::wrapped;
