//! The process that undoes an agent's changes when the agent was killed.

use crate::error::AgentError;
use crate::journal;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Name of the agent's argument that makes it a guard.
pub const ARGUMENT: &str = "guard";

/// A guard, which ends when this is dropped; it undoes what is left of the journal then.
pub struct Guard(Child);

impl Guard {
    /// Starts one for the journal at `path`.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(path: &Path) -> Result<Guard, AgentError> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(ARGUMENT).arg(path).stdin(Stdio::piped()).stdout(Stdio::null());
        // SAFETY: setsid is async-signal-safe. In a session of its own no signal to the agent's reaches it.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                Ok(())
            });
        }
        command.spawn().map(Guard).map_err(|error| AgentError::kernel("starting a guard", error))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Is the guard of the journal at `path`: waits until the agent at the other end of standard input has ended.
pub fn watch(path: &Path) {
    let mut byte = [0];
    while matches!(io::stdin().read(&mut byte), Ok(1)) {}
    journal::undo_after_death(path);
}
