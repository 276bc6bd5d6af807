//! Requests as they come from the front.

use crate::error::{AgentError, Kind};
use crate::frame::{self, NoFrame};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::Arc;
use std::time::Duration;

/// A request: its number, its name, and its own keys.
pub struct Request {
    /// Number that its answer bears.
    pub id: u64,
    /// Name.
    pub name: String,
    keys: Map<String, Value>,
}

impl Request {
    /// Takes a frame for a request.
    ///
    /// # Errors
    /// It is no JSON object with `id` and `request`.
    pub fn parse(frame: &[u8]) -> Result<Request, AgentError> {
        let wrong = |text: &str| AgentError::new(Kind::Protocol, format_args!("a request is {text}"));
        let value = serde_json::from_slice(frame).map_err(|error| wrong(&format!("JSON: {error}")))?;
        let Value::Object(mut keys) = value else { return Err(wrong("a JSON object")) };
        let id = keys.remove("id").and_then(|id| id.as_u64());
        let name = keys.remove("request").and_then(|name| name.as_str().map(str::to_owned));
        match (id, name) {
            (Some(id), Some(name)) => Ok(Request { id, name, keys }),
            _ => Err(wrong("an object with \"id\", a number, and \"request\", a name")),
        }
    }

    /// Its own keys.
    ///
    /// # Errors
    /// A key is missing, wrong or unknown.
    pub fn keys<T: DeserializeOwned>(self) -> Result<T, AgentError> {
        let name = self.name;
        serde_json::from_value(Value::Object(self.keys))
            .map_err(|error| AgentError::input(format_args!("{name}: {error}")))
    }
}

/// Everything that the session waits for.
pub enum Input {
    /// A request.
    Request(Request),
    /// No frame, or no request: nothing after it can be trusted.
    Junk(AgentError),
    /// The front has gone.
    End,
    /// The run, request `id`, has ended.
    Ended {
        /// Of the request.
        id: u64,
        /// Its answer.
        result: Result<Value, AgentError>,
    },
}

/// Time at which the front was last heard of, ns of CLOCK_MONOTONIC: of any byte, since a large request takes long.
#[derive(Clone)]
pub struct Heard(Arc<AtomicU64>);

impl Heard {
    /// Heard now.
    pub fn now() -> Heard {
        Heard(Arc::new(AtomicU64::new(kernel::monotonic_ns())))
    }

    /// Time since.
    pub fn since(&self) -> Duration {
        Duration::from_nanos(kernel::monotonic_ns().saturating_sub(self.0.load(Ordering::Relaxed)))
    }
}

/// A source that notes when bytes come.
struct Noting<R>(R, Heard);

impl<R: Read> Read for Noting<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(into);
        self.1 .0.store(kernel::monotonic_ns(), Ordering::Relaxed);
        read
    }
}

/// Reads requests until the front goes or sends junk.
pub fn read_all(from: impl Read, heard: Heard, into: &SyncSender<Input>) {
    let mut from = Noting(from, heard);
    loop {
        let next = match frame::read(&mut from) {
            Ok(frame) => Request::parse(&frame).map_or_else(Input::Junk, Input::Request),
            Err(NoFrame::End) => Input::End,
            Err(NoFrame::Broken(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => Input::End,
            Err(NoFrame::Broken(error)) => {
                Input::Junk(AgentError::new(Kind::Protocol, format_args!("standard input: {error}")))
            }
            Err(NoFrame::Length(length)) => Input::Junk(AgentError::new(
                Kind::Protocol,
                format_args!("a frame of {length} bytes: at most {}", frame::MAX_BYTES),
            )),
        };
        let is_last = !matches!(next, Input::Request(_));
        if into.send(next).is_err() || is_last {
            return;
        }
    }
}
