//! The format of a trace, told by how it begins.

use super::error::TraceError;
use super::fields;
use super::format::Format;

/// Bytes that are looked at. A blkparse text may begin with messages; 16 KiB hold some 200 lines.
pub const HEAD_BYTES: u64 = 1 << 14;

/// Characters of an unknown beginning that the error shows.
const SHOWN: usize = 60;

/// The format that `head`, the first bytes of the trace `name`, tells.
pub fn detect(name: &str, head: &[u8]) -> Result<Format, TraceError> {
    if head.starts_with(b"$$TR_IOREC") {
        return Ok(Format::HpSrt);
    }
    let text = String::from_utf8_lossy(head);
    if text.starts_with("fio version ") {
        return Ok(Format::Fio);
    }
    // The last line of a full head may be cut.
    let whole =
        if head.len() as u64 == HEAD_BYTES { text.rfind('\n').map_or(&text[..], |end| &text[..end]) } else { &text };
    let mut lines = whole.lines().filter(|line| !line.trim().is_empty());
    let Some(first) = lines.next() else {
        return Err(TraceError::Empty { name: name.to_owned() });
    };
    let found = separated(first).or_else(|| columns(first, lines));
    found.ok_or_else(|| TraceError::Unrecognised { name: name.to_owned(), text: first.chars().take(SHOWN).collect() })
}

/// The formats whose fields commas part.
fn separated(first: &str) -> Option<Format> {
    let fields: Vec<&str> = first.split(',').map(str::trim).collect();
    let is = |index: usize, names: &[&str]| {
        fields.get(index).is_some_and(|field| names.iter().any(|name| field.eq_ignore_ascii_case(name)))
    };
    if (is(0, &["timestamp"]) && is(1, &["hostname"])) || is(3, &["read", "write"]) {
        return Some(Format::Msr);
    }
    if is(3, &["r", "w"]) {
        return Some(Format::Spc);
    }
    if is(0, &["device_id"]) || (fields.len() == 5 && digits(fields[0]) && is(1, &["r", "w"])) {
        return Some(Format::Alibaba);
    }
    if (is(0, &["timestamp"]) && is(1, &["response"])) || (fields.len() == 6 && is(2, &["r", "w"])) {
        return Some(Format::Systor);
    }
    if is(0, &["timestamp"]) && is(1, &["offset"]) {
        return Some(Format::Tencent);
    }
    (fields.len() == 5 && fields.iter().all(|field| digits(field)) && is(3, &["0", "1"])).then_some(Format::Tencent)
}

/// The formats whose fields white space parts.
fn columns<'a>(first: &'a str, rest: impl Iterator<Item = &'a str>) -> Option<Format> {
    let words: Vec<&str> = first.split_ascii_whitespace().collect();
    if matches!(words[..], ["R" | "W", _, _, _, _, _]) {
        return Some(Format::DisksimValidate);
    }
    if words.len() >= 8 && matches!(words[5], "R" | "W") && [0, 1, 3, 4, 6, 7].iter().all(|&i| digits(words[i])) {
        return Some(Format::Fiu);
    }
    let device = |word: &str| word.split_once(',').is_some_and(|(major, minor)| digits(major) && digits(minor));
    if words.len() >= 6 && device(words[0]) {
        return Some(Format::Blkparse);
    }
    // DiskSim's and MQSim's have the same columns but for a time with a point and flags other than 0 and 1. Where a
    // whole head of lines has neither, it is MQSim's: DiskSim's own tools print the point.
    let fits = |line: &str| {
        let [arrival, device, lba, size, flags] = fields::columns(line).ok()?;
        let numbers = [device, lba, size].into_iter().all(digits) && fields::decimal_ns(arrival, "", 1).is_ok();
        numbers.then_some(arrival.contains('.') || !matches!(flags, "0" | "1"))
    };
    // A later line that does not fit is for the reader to refuse, with its number.
    let disksim = fits(first)? || rest.filter_map(fits).any(|disksim| disksim);
    Some(if disksim { Format::Disksim } else { Format::Mqsim })
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
