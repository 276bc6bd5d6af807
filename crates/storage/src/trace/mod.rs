//! Block traces: twelve formats and delimited fields of any order, behind one reader that holds one line at a time.

mod blkparse;
mod column_map;
mod compression;
mod delimited;
mod detect;
mod disksim;
mod error;
mod fields;
mod file;
mod fio;
mod format;
mod format_name;
mod lines;
mod mqsim;
mod msr;
mod order;
mod player;
mod reader;
mod replay;
mod request;
mod spc;
mod srt;
mod summary;
#[cfg(test)]
mod tests;
mod validation;
mod whole;

pub use column_map::ColumnMap;
pub use error::TraceError;
pub use file::{open, stream};
pub use format::Format;
pub use player::Player;
pub use reader::TraceReader;
pub use replay::{Replay, Write, Writes};
pub use request::{Kind, Request, SECTOR_BYTES};
pub use summary::Summary;
pub use validation::{MeasuredRequest, ValidationReader};
pub use whole::Trace;
