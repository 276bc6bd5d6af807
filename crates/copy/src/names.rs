//! Names that a path of an entry may have, and the form in which a path is shown.

use crate::wire::WireError;

/// NAME_MAX of Linux.
pub const NAME_BYTES: usize = 255;
/// PATH_MAX of Linux: of a path in all, and of a symbolic link's target.
pub const PATH_BYTES: usize = 4096;

/// A number with its noun: "1 socket", "2 sockets", "3 entries".
pub fn plural(number: u64, noun: &str) -> String {
    match noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
        _ if number == 1 => format!("1 {noun}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {noun}s"),
    }
}

/// Checks what another host names: each component is one name, none leads up or out.
///
/// # Errors
/// One line.
pub fn check_path(path: &[Vec<u8>]) -> Result<(), WireError> {
    let mut bytes = 0;
    for name in path {
        if name.is_empty() || name == b"." || name == b".." {
            return Err(WireError("a path with a component \"\", \".\" or \"..\""));
        }
        if name.len() > NAME_BYTES {
            return Err(WireError("a name beyond 255 bytes"));
        }
        if name.iter().any(|&byte| byte == b'/' || byte == 0) {
            return Err(WireError("a name with \"/\" or a zero byte"));
        }
        bytes += name.len() + 1;
    }
    if bytes > PATH_BYTES {
        return Err(WireError("a path beyond 4096 bytes"));
    }
    Ok(())
}

/// A path in one line of UTF-8: other bytes, control characters and backslashes as `\xNN`. "." is the destination.
pub fn show_path(path: &[Vec<u8>]) -> String {
    if path.is_empty() {
        return ".".into();
    }
    path.iter().map(|name| show_bytes(name)).collect::<Vec<_>>().join("/")
}

/// Bytes in one line of UTF-8, as [`show_path`] does.
pub fn show_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for part in bytes.utf8_chunks() {
        for character in part.valid().chars() {
            if character.is_control() || character == '\\' {
                let mut buffer = [0; 4];
                character.encode_utf8(&mut buffer).bytes().for_each(|byte| push_hex(&mut text, byte));
            } else {
                text.push(character);
            }
        }
        part.invalid().iter().for_each(|&byte| push_hex(&mut text, byte));
    }
    text
}

/// The path that [`show_path`] shows as `text`; `None` if it shows none so.
pub fn parse_shown_path(text: &str) -> Option<Vec<Vec<u8>>> {
    if text == "." {
        return Some(vec![]);
    }
    let path = text.split('/').map(parse_shown_bytes).collect::<Option<Vec<_>>>()?;
    check_path(&path).ok()?;
    (show_path(&path) == text).then_some(path)
}

/// The bytes that [`show_bytes`] shows as `text`.
fn parse_shown_bytes(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('\\');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.strip_prefix('x')?.get(..2)?;
        if !digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[3..]);
    }
    Some(bytes)
}

fn push_hex(text: &mut String, byte: u8) {
    text.push_str(&format!("\\x{byte:02x}"));
}
