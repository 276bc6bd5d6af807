//! The requests of a copy: one end of it, as the user, and a side of a finished one checked again.

use crate::error::{AgentError, Kind};
use crate::output::Output;
use copy::{EndSpec, Event, Steering};
use copy_net::{forget, removals, run_end, scan, verify};
use copy_net::{Control, CopyError, ErrorKind, RemovalsSpec, ScanSpec, VerifySpec};
use serde::Deserialize;
use serde_json::{json, Value};
use std::sync::atomic::AtomicBool;

/// Keys of the request `copy`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    spec: EndSpec,
}

/// Keys of the request `steer`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steer {
    /// Id of the request `copy`.
    pub run: u64,
    streams: Option<u32>,
    rate_bps: Option<u64>,
}

/// Keys of the request `verify`.
#[derive(Deserialize)]
pub struct Verify {
    #[serde(flatten)]
    spec: VerifySpec,
}

/// Keys of the request `scan`.
#[derive(Deserialize)]
pub struct Scan {
    #[serde(flatten)]
    spec: ScanSpec,
}

/// Keys of the request `removals`.
#[derive(Deserialize)]
pub struct ListRemovals {
    #[serde(flatten)]
    spec: RemovalsSpec,
}

/// Keys of the request `forget`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    copy: String,
    destination: Option<String>,
}

/// A copy's error as the agent's.
pub fn error(error: CopyError) -> AgentError {
    let kind = match error.kind {
        ErrorKind::Input => Kind::Input,
        ErrorKind::Port => Kind::Port,
        ErrorKind::Peer => Kind::Peer,
        ErrorKind::Token => Kind::Token,
        ErrorKind::Protocol => Kind::Protocol,
        ErrorKind::Full => Kind::Full,
        ErrorKind::Io => Kind::Kernel,
        ErrorKind::Busy => Kind::Busy,
        ErrorKind::Stopped => Kind::Stopped,
    };
    AgentError::new(kind, error)
}

impl Copy {
    /// Runs the end, and tells of it on `output` as request `id`.
    ///
    /// # Errors
    /// See [`Kind`].
    pub fn execute(&self, id: u64, output: &Output, control: &Control) -> Result<Value, AgentError> {
        let report = run_end(&self.spec, control, &mut |event| tell(id, output, &event)).map_err(error)?;
        Ok(json!({ "report": report }))
    }
}

fn tell(id: u64, output: &Output, event: &Event) {
    let Value::Object(mut fields) = json!(event) else { return };
    let Some(Value::String(name)) = fields.remove("event") else { return };
    match event {
        Event::Progress { .. } => output.passing_event(id, &name, Value::Object(fields)),
        _ => output.event(id, &name, Value::Object(fields)),
    }
}

impl Steer {
    /// Hands the change to the copy that runs.
    pub fn apply(&self, control: &Control) {
        let mut waiting = control.steering.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *waiting = Steering { streams: self.streams.or(waiting.streams), rate_bps: self.rate_bps.or(waiting.rate_bps) };
    }
}

impl Verify {
    /// Checks the side at this host until `stop`.
    ///
    /// # Errors
    /// See `copy_net::verify`.
    pub fn execute(&self, stop: &AtomicBool) -> Result<Value, AgentError> {
        verify(&self.spec, stop).map(|found| json!(found)).map_err(error)
    }
}

impl Scan {
    /// Counts the sources at this host until `stop`.
    ///
    /// # Errors
    /// See `copy_net::scan`.
    pub fn execute(&self, stop: &AtomicBool) -> Result<Value, AgentError> {
        scan(&self.spec, stop).map(|found| json!(found)).map_err(error)
    }
}

impl ListRemovals {
    /// Lists what a copy to this host would remove, until `stop`.
    ///
    /// # Errors
    /// See `copy_net::removals`.
    pub fn execute(&self, stop: &AtomicBool) -> Result<Value, AgentError> {
        removals(&self.spec, stop).map(|found| json!(found)).map_err(error)
    }
}

impl Forget {
    /// Removes what an unfinished copy has left at this host.
    ///
    /// # Errors
    /// See `copy_net::forget`.
    pub fn execute(&self) -> Result<Value, AgentError> {
        forget(&self.copy, self.destination.as_deref()).map(|bytes| json!({ "bytes": bytes })).map_err(error)
    }
}
