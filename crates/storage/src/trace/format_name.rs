//! A format by the name that a user gives.

use super::column_map::ColumnMap;
use super::error::TraceError;
use super::format::Format;
use std::str::FromStr;

impl Format {
    /// Parses a format's name, and the columns that go with the name "columns" (and may stand without it); None for
    /// "auto".
    ///
    /// # Errors
    /// [`TraceError::Format`] for an unknown name, [`TraceError::Columns`] for columns that are missing, wrong or
    /// beside another format.
    pub fn from_name(name: &str, columns: Option<&str>) -> Result<Option<Format>, TraceError> {
        let refuse = |expected| TraceError::Columns { columns: columns.unwrap_or_default().to_owned(), expected };
        match (name, columns) {
            ("auto" | "columns", Some(text)) => match ColumnMap::parse(text) {
                Ok(map) => Ok(Some(Format::Columns(map))),
                Err(expected) => Err(refuse(expected)),
            },
            ("columns", None) => {
                Err(refuse("the columns of format \"columns\", such as \"time:us,device,op,offset,size\"".to_owned()))
            }
            (name, Some(_)) => Err(refuse(format!("either columns or format {name:?}"))),
            ("auto", None) => Ok(None),
            (name, None) => name.parse().map(Some),
        }
    }
}

impl FromStr for Format {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Format, TraceError> {
        let found = Format::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| TraceError::Format { format: text.to_owned() })
    }
}
