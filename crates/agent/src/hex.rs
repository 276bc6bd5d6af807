//! Bytes as hex digits, for JSON.

use crate::error::AgentError;

/// Returns a token of 32 hex digits.
///
/// # Errors
/// It is none.
pub fn token(text: &str) -> Result<[u8; 16], AgentError> {
    let bytes = decode(text).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| AgentError::input("token: 32 hex digits"))
}

/// Returns the bytes of `text`; None when it is no even number of hex digits.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|value| value as u8);
    let pairs = text.as_bytes().chunks_exact(2);
    let whole = pairs.remainder().is_empty();
    let bytes = pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect::<Option<Vec<u8>>>();
    bytes.filter(|_| whole)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn pairs_of_digits_are_bytes_and_anything_else_is_none() {
        assert_eq!(decode("00fF7a"), Some(vec![0, 255, 0x7a]));
        assert_eq!(decode(""), Some(vec![]));
        for wrong in ["0", "0g", "+1", "é0", "0 "] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
