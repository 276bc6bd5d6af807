//! fio's I/O logs (`write_iolog`, `read_iolog`), versions 2 and 3.
//!
//! The first line is `fio version 2 iolog` or `fio version 3 iolog`. Then per line `file action` (add, open, close) or
//! `file action offset length` in bytes (read, write, trim, sync, datasync, wait). Version 3 puts the time before it,
//! us since the start. Version 2 has no times but `wait`, whose offset is us since the wait before: what stands
//! between two waits arrives at once, as fio issues it.

use super::fields::{bytes, whole};
use super::lines::LineFormat;
use super::request::{Kind, Request, SECTOR_BYTES};

const NS_PER_US: u64 = 1_000;

/// Files are devices, numbered in the order in which they are named; more of them than this is no log of a job.
const FILES_MAX: usize = 1 << 16;

#[derive(Default)]
pub struct Fio {
    /// 2 or 3; 0 before the first line.
    version: u32,
    files: Vec<String>,
    now_ns: u64,
}

impl Fio {
    fn device(&mut self, file: &str) -> Result<u32, String> {
        if let Some(index) = self.files.iter().position(|known| known == file) {
            return Ok(index as u32);
        }
        if self.files.len() == FILES_MAX {
            return Err(format!("at most {FILES_MAX} files"));
        }
        self.files.push(file.to_owned());
        Ok(self.files.len() as u32 - 1)
    }

    fn advance(&mut self, to_ns: u64) -> Result<(), String> {
        if to_ns < self.now_ns {
            return Err(format!("a time of {} us or later, as on the line before", self.now_ns / NS_PER_US));
        }
        self.now_ns = to_ns;
        Ok(())
    }
}

impl LineFormat for Fio {
    fn line(&mut self, text: &str) -> Result<Option<Request>, String> {
        if self.version == 0 {
            self.version = match text.trim_end() {
                "fio version 2 iolog" => 2,
                "fio version 3 iolog" => 3,
                _ => return Err("\"fio version 2 iolog\" or \"fio version 3 iolog\" as the first line".to_owned()),
            };
            return Ok(None);
        }
        let mut words = text.split_ascii_whitespace();
        let Some(mut word) = words.next() else { return Ok(None) };
        if self.version == 3 {
            let us = whole(word, "a time in us as field 1 (version 3)", u64::MAX / NS_PER_US)?;
            self.advance(us * NS_PER_US)?;
            word = words.next().unwrap_or("");
        }
        let (file, action) = (word, words.next().unwrap_or(""));
        let kind = match action {
            "add" | "open" | "close" | "sync" | "datasync" | "sync_file_range" | "trim" => {
                self.device(file)?;
                return Ok(None);
            }
            "wait" => {
                if self.version == 2 {
                    let us = whole(words.next().unwrap_or(""), "a wait in us", u64::MAX / NS_PER_US)?;
                    let now = self.now_ns.checked_add(us * NS_PER_US);
                    self.now_ns = now.ok_or("waits below 584 years in all")?;
                }
                return Ok(None);
            }
            "read" => Kind::Read,
            "write" => Kind::Write,
            _ => {
                return Err(format!(
                    "add, open, close, read, write, trim, sync, datasync or wait after the file's name, not {action:?}"
                ))
            }
        };
        let (Some(offset), Some(length), None) = (words.next(), words.next(), words.next()) else {
            return Err(format!("an offset and a length in bytes after {action}, and no more"));
        };
        let lba = whole(offset, "an offset in bytes", u64::MAX)? / u64::from(SECTOR_BYTES);
        let bytes = bytes(length)?;
        let device = self.device(file)?;
        Ok(Some(Request { arrival_ns: self.now_ns, device, lba, bytes, kind, response_ns: None }))
    }
}
