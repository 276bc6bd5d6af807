//! One thing that is wrong with an algorithm's file, and how several are shown.

use std::fmt;

/// Problems that are shown; those after them are most often consequences.
const SHOWN: usize = 3;

/// One thing that is wrong with a file, or that may become wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1; none where it is about the whole file.
    pub line: Option<usize>,
    /// The fault.
    pub what: String,
    /// The line's text.
    pub code: String,
    /// The right form, where it is known.
    pub hint: Option<String>,
}

/// Problems as a person reads them, each with `file` in front.
pub(crate) struct Listed<'a> {
    pub(crate) file: &'a str,
    pub(crate) problems: &'a [Problem],
}

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().take(SHOWN).enumerate() {
            let line = problem.line.map_or(String::new(), |line| format!(":{line}"));
            write!(f, "{}{}{line}: {}", if number > 0 { "\n" } else { "" }, self.file, problem.what)?;
            if !problem.code.trim().is_empty() {
                write!(f, "\n    {}", problem.code.trim())?;
            }
            if let Some(hint) = &problem.hint {
                write!(f, "\n  {hint}")?;
            }
        }
        match self.problems.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            1 => write!(f, "\nand 1 more, which may follow from these"),
            more => write!(f, "\nand {more} more, which may follow from these"),
        }
    }
}
