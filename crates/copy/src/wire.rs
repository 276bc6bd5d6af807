//! Bytes of messages and records: LEB128 numbers, and nothing read without a bound.

/// The other end's bytes are not what the protocol has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WireError(pub &'static str);

/// Reads from bytes that a stranger may have written.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// From the beginning.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: bytes }
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// All was read.
    pub fn end(&self) -> Result<(), WireError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(WireError("bytes after the end of a message"))
        }
    }

    /// So many bytes.
    pub fn raw(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        if count > self.rest.len() {
            return Err(WireError("a message ends early"));
        }
        let (bytes, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(bytes)
    }

    /// An array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let mut array = [0; N];
        array.copy_from_slice(self.raw(N)?);
        Ok(array)
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8, WireError> {
        Ok(self.raw(1)?[0])
    }

    /// LEB128, at most 64 bits.
    pub fn number(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError("a number beyond 64 bits"))
    }

    /// A number that is at most `max`.
    pub fn bounded(&mut self, max: u64) -> Result<u64, WireError> {
        let value = self.number()?;
        if value > max {
            return Err(WireError("a number beyond its bound"));
        }
        Ok(value)
    }

    /// Count of items that have at least `least` bytes each: never more than the rest can hold.
    pub fn count(&mut self, least: usize) -> Result<usize, WireError> {
        let value = self.number()?;
        if value > (self.rest.len() / least.max(1)) as u64 {
            return Err(WireError("more items than the message holds"));
        }
        Ok(value as usize)
    }

    /// Length and bytes, at most `max`.
    pub fn bytes(&mut self, max: usize) -> Result<&'a [u8], WireError> {
        let length = self.bounded(max as u64)?;
        self.raw(length as usize)
    }

    /// UTF-8, at most `max` bytes.
    pub fn text(&mut self, max: usize) -> Result<String, WireError> {
        String::from_utf8(self.bytes(max)?.to_vec()).map_err(|_| WireError("a text that is no UTF-8"))
    }
}

/// Appends a number (LEB128).
pub fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends length and bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A signed number so that small ones are short (zigzag).
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_number(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// The number of [`put_signed`].
pub fn signed(decoder: &mut Decoder<'_>) -> Result<i64, WireError> {
    let value = decoder.number()?;
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}
