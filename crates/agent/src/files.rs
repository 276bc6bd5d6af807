//! Files that the front hands over: in memory, so that they go with the process.

use crate::error::AgentError;
use crate::hex;
use rustix::fs::MemfdFlags;
use serde::Deserialize;
use serde_json::{json, Value};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;

/// Most files of a session.
const MAX_FILES: usize = 64;

/// Keys of the request `put`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    data: String,
    #[serde(default)]
    file: Option<usize>,
}

/// Files by their numbers.
#[derive(Default)]
pub struct Files(Vec<(File, u64)>);

impl Files {
    /// Appends to a file, a new one unless the request names one; returns its number, path and size.
    ///
    /// # Errors
    /// No hex, no such file, too many files, no memory.
    pub fn put(&mut self, put: &Put) -> Result<Value, AgentError> {
        let bytes = hex::decode(&put.data).ok_or_else(|| AgentError::input("put: data: hex digits in pairs"))?;
        let number = match put.file {
            Some(number) if number < self.0.len() => number,
            Some(number) => return Err(AgentError::input(format_args!("put: file = {number}: there is none"))),
            None if self.0.len() == MAX_FILES => {
                return Err(AgentError::input(format_args!("put: more than {MAX_FILES} files")));
            }
            None => {
                let made = rustix::fs::memfd_create("elephan", MemfdFlags::CLOEXEC);
                self.0.push((made.map_err(|error| AgentError::kernel("memfd_create", error))?.into(), 0));
                self.0.len() - 1
            }
        };
        let (file, length) = &mut self.0[number];
        file.write_all(&bytes).map_err(|error| AgentError::kernel("writing a file in memory", error))?;
        *length += bytes.len() as u64;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(json!({"file": number, "path": path, "bytes": length}))
    }
}
