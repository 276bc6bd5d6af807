//! Text of negotiations: key=value pairs, each ended by a zero byte (RFC 7143, section 6.1).

use super::error::IscsiError;
use super::payload::Payload;

/// Longest key, bytes (RFC 7143, 6.1).
pub const MAX_KEY_BYTES: usize = 63;
/// Most bytes of one text, over all PDUs that it is cut into. The RFC asks for at least 8192 of a login (6.2).
pub const MAX_TEXT_BYTES: usize = 65_536;

/// Pairs in the order in which they are sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Text {
    pairs: Vec<(String, String)>,
}

impl Text {
    /// Adds a pair.
    pub fn push(&mut self, key: &str, value: &str) {
        self.pairs.push((key.to_owned(), value.to_owned()));
    }

    /// All pairs.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// Returns whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The pairs of a data segment.
    ///
    /// # Errors
    /// Text that is no pair, with the right form.
    pub fn parse(bytes: &[u8]) -> Result<Text, IscsiError> {
        let mut text = Text::default();
        // The last pair's zero byte may be missing: some initiators pad with zeros, others end with the segment.
        for pair in bytes.split(|&byte| byte == 0).filter(|pair| !pair.is_empty()) {
            let shown = || String::from_utf8_lossy(&pair[..pair.len().min(MAX_KEY_BYTES)]).into_owned();
            let wrong = |what: &str| Err(IscsiError::Text(format!("text {:?}: {what}", shown())));
            let Some(equals) = pair.iter().position(|&byte| byte == b'=') else {
                return wrong("key=value is needed");
            };
            let (key, value) = (&pair[..equals], &pair[equals + 1..]);
            let letters = |b: &u8| b.is_ascii_alphanumeric() || b".-+@_/#".contains(b);
            if key.is_empty() || key.len() > MAX_KEY_BYTES || !key.iter().all(letters) {
                return wrong("a key has 1 to 63 letters, digits and .-+@_/#");
            }
            let (Ok(key), Ok(value)) = (std::str::from_utf8(key), std::str::from_utf8(value)) else {
                return wrong("a value is UTF-8");
            };
            text.push(key, value);
        }
        Ok(text)
    }

    /// The data segment.
    pub fn emit(&self) -> Payload {
        let mut bytes = Vec::new();
        for (key, value) in &self.pairs {
            bytes.extend_from_slice(key.as_bytes());
            bytes.push(b'=');
            bytes.extend_from_slice(value.as_bytes());
            bytes.push(0);
        }
        bytes.into()
    }
}
