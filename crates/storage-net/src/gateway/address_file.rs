//! The file with the addresses that ports have had: one port's name and its address a line, the least recently used
//! first.
//!
//! It is written before a new address leaves the gateway, by a file beside it that takes its place, so that a gateway
//! that was killed finds either the old list or the new one.

use crate::lock::{lock, LockKind};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use storage::fc::fabric::Assignments;
use wire::fc::{FcId, Wwn};

const TITLE: &str =
    "# Fibre Channel addresses by port name, the least recently used first. Written by elephan gateway.";

/// Of such a file: a line for each of the 59,000 ports that a domain can have takes 30 bytes.
const BYTES_MAX: u64 = 16 << 20;

/// The file of a running gateway.
#[derive(Debug)]
pub(super) struct AddressFile {
    path: PathBuf,
    /// Held while the gateway runs, so that no second one gives addresses by the same list.
    _lock: File,
    written: BTreeMap<Wwn, FcId>,
}

impl AddressFile {
    /// Opens the file of a path, which need not exist, and returns the assignments in it, all of the domain.
    ///
    /// # Errors
    /// The file cannot be read or its folder not written, a line is none of such a file or of the domain, or another
    /// gateway has it (`WouldBlock`).
    pub fn open(path: &Path, domain: u8) -> io::Result<(AddressFile, Assignments)> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let held =
            OpenOptions::new().create(true).truncate(false).write(true).open(beside(path, ".lock")).map_err(named)?;
        lock(&held, LockKind::Exclusive).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                io::Error::new(error.kind(), format!("{}: another gateway uses it", path.display()))
            }
            _ => named(error),
        })?;
        let text = match user_files::read_to_string(path, BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(named(error)),
        };
        let list = parse(&text, domain).map_err(named)?;
        let file = AddressFile { path: path.to_owned(), _lock: held, written: list.iter().copied().collect() };
        Ok((file, Assignments::from_list(list)))
    }

    /// True when the file gives a name this address.
    pub fn has(&self, name: Wwn, id: FcId) -> bool {
        self.written.get(&name) == Some(&id)
    }

    /// Writes all assignments; they are on the drive when it returns.
    pub fn write(&mut self, assignments: &Assignments) -> io::Result<()> {
        let new = beside(&self.path, ".new");
        let mut text = format!("{TITLE}\n");
        for (name, id) in assignments.iter() {
            text.push_str(&format!("{name} {id}\n"));
        }
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &self.path)?;
        let folder = match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        // The name is on the drive with the folder.
        File::open(folder)?.sync_all()?;
        self.written = assignments.iter().collect();
        Ok(())
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Reads the lines. One that is wrong is refused, as the next new address would write the file without it.
fn parse(text: &str, domain: u8) -> io::Result<Vec<(Wwn, FcId)>> {
    let mut list = Vec::new();
    let (mut names, mut ids) = (BTreeMap::new(), BTreeMap::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, format!("line {number}: {text}"));
        let Some((name, id)) = pair(line) else {
            return Err(invalid(format!(
                "{line:?}: a port's name and its address would be right, such as 20:00:00:1b:32:0a:0b:0c \
                 {domain:02x}0100"
            )));
        };
        if id.domain() != domain || id.area() == 0 {
            return Err(invalid(format!(
                "{id}: an address from {domain:02x}0100 to {domain:02x}ffff would be right, as fabric.domain = \
                 {domain}; for another domain begin another file"
            )));
        }
        for (value, first) in [(name.to_string(), names.insert(name, number)), (id.to_string(), ids.insert(id, number))]
        {
            if let Some(first) = first {
                return Err(invalid(format!("{value}: line {first} has it too")));
            }
        }
        list.push((name, id));
    }
    Ok(list)
}

/// The name and the address of a line; None when it is something else.
fn pair(line: &str) -> Option<(Wwn, FcId)> {
    let (name, id) = line.split_once(char::is_whitespace)?;
    let id = id.trim();
    let is_id = id.len() == 6 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = u32::from_str_radix(id, 16).ok().filter(|_| is_id)?;
    Some((name.parse().ok()?, FcId::new(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_again_in_their_order_and_one_gateway_has_the_file() {
        let folder = std::env::temp_dir().join(format!("elephan-addresses-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("ids");
        let (mut file, none) = AddressFile::open(&path, 1).unwrap();
        assert_eq!(none.iter().count(), 0);
        let list = [(Wwn(0x2000_0000_0000_0009), FcId::new(0x01_0101)), (Wwn(3), FcId::new(0x01_0100))];
        file.write(&Assignments::from_list(list)).unwrap();
        assert!(file.has(Wwn(3), FcId::new(0x01_0100)) && !file.has(Wwn(3), FcId::new(0x01_0101)));
        assert_eq!(AddressFile::open(&path, 1).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(file);
        let (_, read) = AddressFile::open(&path, 1).unwrap();
        assert_eq!(read.iter().collect::<Vec<_>>(), list);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_line_that_is_wrong_is_named() {
        let wrong = [
            ("20:00 010100", "would be right, such as"),
            ("2000000000000001", "would be right, such as"),
            ("2000000000000001 10100", "would be right, such as"),
            ("2000000000000001 +10100", "would be right, such as"),
            ("2000000000000001 010100 x", "would be right, such as"),
            ("2000000000000001 020100", "an address from 010100 to 01ffff would be right"),
            ("2000000000000001 010001", "an address from 010100 to 01ffff would be right"),
            ("2000000000000001 010108", "010108: line 2 has it too"),
            ("2000000000000008 010100", "20:00:00:00:00:00:00:08: line 2 has it too"),
        ];
        for (line, reason) in wrong {
            let error = parse(&format!("{TITLE}\n2000000000000008 010108\n\n{line}\n"), 1).unwrap_err().to_string();
            assert!(error.starts_with("line 4: ") && error.contains(reason), "{line}: {error}");
        }
    }
}
