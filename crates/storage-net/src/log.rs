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
    /// Time at which the last line about a connection was kept.
    last: Option<Time>,
    /// Number of lines suppressed since, and the latest of them.
    suppressed: (u64, String),
}

impl Log {
    /// Logs a line about a connection, unless the last such line is less than a second old.
    pub fn connection(&mut self, now: Time, line: String) {
        let is_early = self.last.is_some_and(|last| now.since(last) < MIN_INTERVAL);
        if is_early || self.lines.len() >= MAX_LINES {
            self.suppressed = (self.suppressed.0 + 1, line);
            return;
        }
        self.last = Some(now);
        let (count, _) = std::mem::take(&mut self.suppressed);
        self.lines.push(after(count, line));
    }

    /// Logs a line that no peer can cause at will.
    pub fn unlimited(&mut self, line: String) {
        if self.lines.len() < MAX_LINES {
            self.lines.push(line);
        }
    }

    /// The lines since the last call. `is_end`: reports suppressed lines at once, since no line follows. Of those the
    /// latest is shown: lines of two kinds that take turns would otherwise hide one kind for good.
    pub fn drain(&mut self, now: Time, is_end: bool) -> Vec<String> {
        let is_due = self.last.is_none_or(|last| now.since(last) >= MIN_INTERVAL);
        if self.suppressed.0 > 0 && (is_due || is_end) {
            let (count, line) = std::mem::take(&mut self.suppressed);
            self.lines.push(after(count - 1, line));
            self.last = Some(now);
        }
        std::mem::take(&mut self.lines)
    }
}

/// A line with the number of those before it that were left out.
fn after(count: u64, line: String) -> String {
    match count {
        0 => line,
        1 => format!("{line} (1 more line before it was left out)"),
        count => format!("{line} ({count} more lines before it were left out)"),
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
        assert_eq!(log.drain(at(2000), false), ["soon"]);
        log.connection(at(2100), "first".to_owned());
        log.connection(at(2100), "at the end".to_owned());
        assert_eq!(log.drain(at(2100), true), ["at the end (1 more line before it was left out)"]);
        assert!(log.drain(at(9000), true).is_empty());
    }
}
