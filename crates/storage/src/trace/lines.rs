//! Line by line, in bounded memory: what all text formats share.

use super::error::{TraceError, TracePosition};
use super::request::Request;
use std::io::{BufRead, Read};

/// Characters of a bad line that an error shows.
const SHOWN: usize = 100;

/// Longest line, bytes. No format has lines above some hundred; a file without line ends must not fill the memory.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// A text format: what each line means.
pub trait LineFormat {
    /// The request of a line; None: the line is right and holds none. Err: what would be right.
    fn line(&mut self, text: &str) -> Result<Option<Request>, String>;

    /// Returns whether the trace may end here. Err: what is missing.
    fn end(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Reads the requests of a text.
pub struct Lines<F> {
    format: F,
    buffer: Vec<u8>,
    line: u64,
    read: u64,
}

impl<F: LineFormat> Lines<F> {
    pub fn new(format: F) -> Lines<F> {
        Lines { format, buffer: Vec::new(), line: 0, read: 0 }
    }

    pub fn format_mut(&mut self) -> &mut F {
        &mut self.format
    }

    pub fn line(&self) -> u64 {
        self.line
    }

    pub fn next(&mut self, name: &str, from: &mut impl BufRead) -> Option<Result<Request, TraceError>> {
        loop {
            self.buffer.clear();
            self.line += 1;
            let place = TracePosition::Line(self.line);
            match from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.buffer) {
                Ok(0) => {
                    return match self.format.end() {
                        Ok(()) => None,
                        Err(expected) => Some(Err(self.wrong(name, None, expected))),
                    }
                }
                Ok(_) => {}
                Err(source) => return Some(Err(TraceError::Read { name: name.to_owned(), place, source })),
            }
            let ended = self.buffer.last() == Some(&b'\n');
            if !ended && self.buffer.len() as u64 == LINE_BYTES_MAX {
                return Some(Err(self.wrong(name, Some(self.shown()), format!("a line below {LINE_BYTES_MAX} bytes"))));
            }
            let Ok(text) = std::str::from_utf8(&self.buffer) else {
                return Some(Err(self.wrong(name, Some(self.shown()), "text (UTF-8)".to_owned())));
            };
            match self.format.line(text.trim_end_matches(['\n', '\r'])) {
                Ok(Some(request)) => {
                    self.read += 1;
                    return Some(Ok(request));
                }
                Ok(None) => {}
                Err(expected) => {
                    // A last line without its end is most likely what was left when the file was cut.
                    let cut = if ended { "" } else { ": is the file cut off?" };
                    return Some(Err(self.wrong(name, Some(self.shown()), format!("{expected}{cut}"))));
                }
            }
        }
    }

    fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.buffer[..self.buffer.len().min(4 * SHOWN)]);
        text.trim_end_matches(['\n', '\r']).chars().take(SHOWN).collect()
    }

    fn wrong(&self, name: &str, text: Option<String>, expected: String) -> TraceError {
        TraceError::Content {
            name: name.to_owned(),
            place: TracePosition::Line(self.line),
            text,
            expected,
            read: self.read,
        }
    }
}
