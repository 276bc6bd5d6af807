//! Files of /proc, which are read from the start each time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Returns the whole text of `file` as it is now.
///
/// # Errors
/// The kernel's.
pub(crate) fn text(file: &File) -> io::Result<String> {
    let mut text = vec![0; 16 << 10];
    let mut length = 0;
    loop {
        match file.read_at(&mut text[length..], length as u64)? {
            0 => break,
            more => length += more,
        }
        if length == text.len() {
            text.resize(2 * length, 0);
        }
    }
    text.truncate(length);
    Ok(String::from_utf8_lossy(&text).into_owned())
}
