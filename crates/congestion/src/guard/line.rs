//! A message that a signal handler can compose: no allocation, no lock.

use super::slot::Call;

/// Longest message, bytes; the rest is cut off.
const BYTES: usize = 1024;

/// Exit code of the process, as for any input that is wrong.
const EXIT_CODE: libc::c_int = 2;

pub(super) struct Line {
    bytes: [u8; BYTES],
    used: usize,
}

impl Line {
    /// Begins "error: FILE: hook HOOK of FLOW at TIME s: ".
    pub fn of(call: &Call) -> Line {
        let subject = call.subject;
        let mut line = Line { bytes: [0; BYTES], used: 0 };
        line.push("error: ");
        line.push(subject.file);
        line.push(": hook ");
        line.push(call.hook);
        if !subject.flow.is_empty() {
            line.push(" of ");
            line.push(subject.flow);
        }
        line.push(" at ");
        let us = call.time_us.saturating_sub(subject.start_us);
        line.push_number(us / 1_000_000, 10, 1);
        line.push(".");
        line.push_number(us % 1_000_000, 10, 6);
        line.push(" s: ");
        line
    }

    pub fn push(&mut self, text: &str) {
        // One byte is left for the line feed.
        let room = (BYTES - 1 - self.used).min(text.len());
        self.bytes[self.used..self.used + room].copy_from_slice(&text.as_bytes()[..room]);
        self.used += room;
    }

    /// A number with at least so many digits.
    pub fn push_number(&mut self, mut number: u64, base: u64, least: usize) {
        let mut digits = [b'0'; 20];
        let mut count = 0;
        while count < digits.len() && (number > 0 || count < least) {
            digits[digits.len() - 1 - count] = b"0123456789abcdef"[(number % base) as usize];
            number /= base;
            count += 1;
        }
        self.push(std::str::from_utf8(&digits[digits.len() - count..]).unwrap_or("?"));
    }

    /// Writes it to standard error.
    pub fn write(mut self) {
        self.bytes[self.used] = b'\n';
        // SAFETY: the bytes are there; `write` may be called in a signal handler.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, self.bytes.as_ptr().cast(), self.used + 1) };
    }

    /// Writes it and ends the process.
    pub fn end(self) -> ! {
        self.write();
        // SAFETY: it may be called in a signal handler.
        unsafe { libc::_exit(EXIT_CODE) }
    }
}
