//! Traces by their path: the one place of this crate that opens a file.

use super::error::TraceError;
use super::format::Format;
use super::reader::TraceReader;
use super::whole::Trace;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Opens the trace at `path` for reading request by request, in constant memory; `format` None: told by its content.
///
/// # Errors
/// [`TraceError`], naming the path, when it cannot be opened or its format is not told.
pub fn stream(path: impl AsRef<Path>, format: Option<Format>) -> Result<TraceReader<BufReader<File>>, TraceError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let file = user_files::open(path).map_err(|source| TraceError::Open { name: name.clone(), source })?;
    TraceReader::new(&name, format, BufReader::with_capacity(1 << 16, file))
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
