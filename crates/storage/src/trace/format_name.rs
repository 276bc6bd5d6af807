//! A format by the name that a user gives.

use super::error::TraceError;
use super::format::Format;
use std::str::FromStr;

impl Format {
    /// Parses a format's name; None for "auto".
    ///
    /// # Errors
    /// [`TraceError::Format`] for every other text.
    pub fn asked(text: &str) -> Result<Option<Format>, TraceError> {
        if text == "auto" {
            return Ok(None);
        }
        text.parse().map(Some)
    }
}

impl FromStr for Format {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Format, TraceError> {
        let found = Format::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| TraceError::Format { format: text.to_owned() })
    }
}
