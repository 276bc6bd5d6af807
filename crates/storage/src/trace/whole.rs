//! A whole trace in memory.

use super::error::TraceError;
use super::format::Format;
use super::reader::TraceReader;
use super::request::Request;
use std::io::BufRead;
use std::sync::Arc;

/// Requests in the order of their arrival. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// At least one.
    pub requests: Arc<[Request]>,
}

impl Trace {
    /// Reads a whole trace; `format` None: told by its content. `name` is what errors call it.
    ///
    /// # Errors
    /// [`TraceError`] when the format is not told, reading fails, or the first line that is not right.
    pub fn read(name: &str, format: Option<Format>, from: impl BufRead) -> Result<Trace, TraceError> {
        let requests: Vec<Request> = TraceReader::new(name, format, from)?.collect::<Result<_, _>>()?;
        if requests.is_empty() {
            return Err(TraceError::Empty { name: name.to_owned() });
        }
        Ok(Trace { requests: requests.into() })
    }

    /// Time from the first to the last arrival, ns.
    pub fn span_ns(&self) -> u64 {
        let first = self.requests.first().map_or(0, |r| r.arrival_ns);
        self.requests.last().map_or(0, |r| r.arrival_ns - first)
    }
}
