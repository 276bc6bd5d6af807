//! Log lines for the operator: lines that peers can cause are limited to one per second.

use units::{Span, Time};

/// Least time between two lines about connections.
const MIN_INTERVAL: Span = Span::from_secs(1);
/// Most lines kept until they are drained.
const MAX_LINES: usize = 1000;

/// Pending lines, and the number of suppressed ones.
#[derive(Debug, Default)]
pub(crate) struct Log {
    lines: Vec<String>,
    /// When the last line about a connection was kept.
    last: Option<Time>,
    /// Lines suppressed since.
    suppressed: u64,
}

impl Log {
    /// Logs a line about a connection, unless the last such line is less than a second old.
    pub fn connection(&mut self, now: Time, line: String) {
        let is_early = self.last.is_some_and(|last| now.since(last) < MIN_INTERVAL);
        if is_early || self.lines.len() >= MAX_LINES {
            self.suppressed += 1;
            return;
        }
        self.last = Some(now);
        self.lines.push(match std::mem::take(&mut self.suppressed) {
            0 => line,
            count => format!("{line} ({count} more lines before it were left out)"),
        });
    }

    /// Logs a line that no peer can cause at will.
    pub fn unlimited(&mut self, line: String) {
        if self.lines.len() < MAX_LINES {
            self.lines.push(line);
        }
    }

    /// The lines since the last call. `is_end`: reports suppressed lines at once, since no line follows.
    pub fn drain(&mut self, now: Time, is_end: bool) -> Vec<String> {
        let is_due = self.last.is_none_or(|last| now.since(last) >= MIN_INTERVAL);
        if self.suppressed > 0 && (is_due || is_end) {
            self.lines.push(format!("{} more lines were left out", std::mem::take(&mut self.suppressed)));
            self.last = Some(now);
        }
        std::mem::take(&mut self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_connections_are_limited_and_suppressed_ones_counted() {
        let mut log = Log::default();
        let at = |ms| Time(0) + Span::from_millis(ms);
        for ms in 0..500 {
            log.connection(at(ms), format!("connection {ms}"));
        }
        log.unlimited("the drive".to_owned());
        assert_eq!(log.drain(at(500), false), ["connection 0", "the drive"]);
        log.connection(at(1000), "later".to_owned());
        assert_eq!(log.drain(at(1000), false), ["later (499 more lines before it were left out)"]);
        log.connection(at(1100), "soon".to_owned());
        assert!(log.drain(at(1900), false).is_empty());
        assert_eq!(log.drain(at(2000), false), ["1 more lines were left out"]);
        log.connection(at(2100), "at the end".to_owned());
        assert_eq!(log.drain(at(2100), true), ["1 more lines were left out"]);
        assert!(log.drain(at(9000), true).is_empty());
    }
}
