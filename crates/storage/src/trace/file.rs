//! Traces by their path: the one place of this crate that opens a file.

use super::compression::decompressed;
use super::error::{TraceError, TracePosition};
use super::format::Format;
use super::reader::TraceReader;
use super::whole::Trace;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A trace's file, decompressed.
pub type TraceFile = Box<dyn BufRead + Send>;

/// Opens the trace at `path`, compressed by gzip or Zstandard or not, for reading request by request, in constant
/// memory; `format` None: by its content.
///
/// # Errors
/// [`TraceError`], naming the path, when it cannot be opened or its content has no known format.
pub fn stream(path: impl AsRef<Path>, format: Option<Format>) -> Result<TraceReader<TraceFile>, TraceError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let file = user_files::open(path).map_err(|source| TraceError::Open { name: name.clone(), source })?;
    match decompressed(BufReader::with_capacity(1 << 16, file)) {
        Ok(content) => TraceReader::new(&name, format, content),
        Err(source) => Err(TraceError::Read { name, place: TracePosition::Byte(0), source }),
    }
}

/// Opens and reads the whole trace at `path`.
///
/// # Errors
/// As [`Trace::read`], naming the path.
pub fn open(path: impl AsRef<Path>, format: Option<Format>) -> Result<Trace, TraceError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let requests = stream(path, format)?.collect::<Result<Vec<_>, _>>()?;
    if requests.is_empty() {
        return Err(TraceError::Empty { name });
    }
    Ok(Trace { requests: requests.into() })
}
