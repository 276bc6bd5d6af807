//! CHAP (RFC 1994; RFC 7143, 12.1.3): a secret is shown to be known without being sent.

use md5::Md5;
use sha2::Sha256;

/// Longest challenge and name that are taken, bytes (RFC 7143, 12.1.3).
const MAX_BYTES: usize = 1024;
/// Bytes of a challenge that is made here.
pub(super) const CHALLENGE_BYTES: usize = 16;
/// Identifier and challenge.
pub(super) const ENTROPY_BYTES: usize = CHALLENGE_BYTES + 1;

/// A CHAP name and secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// CHAP_N.
    pub name: String,
    /// At least 12 bytes, or a listener guesses it (RFC 7143, 9.2.1).
    pub secret: String,
}

/// A secret stays one in logs.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({})", self.name)
    }
}

/// The credentials by which an initiator and a target trust each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// The initiator's.
    pub initiator: Secret,
    /// The target's (mutual CHAP).
    pub target: Option<Secret>,
}

/// A hash of CHAP_A, the weaker first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Algorithm {
    Md5,
    Sha256,
}

impl Algorithm {
    /// The offered algorithms, by IANA's PPP authentication numbers. MD5, which all implement, stands first: tgtd
    /// takes the first number that it knows, and for it 7 is SHA-1. A target may take any of them (RFC 7143, 12.1.3).
    pub(super) const OFFER: &'static str = "5,7";

    /// The strongest of an offer; None when none of it is known.
    pub(super) fn of_offer(offer: &str) -> Option<Algorithm> {
        offer.split(',').filter_map(Algorithm::of).max()
    }

    pub(super) fn of(number: &str) -> Option<Algorithm> {
        match number {
            "5" => Some(Algorithm::Md5),
            "7" => Some(Algorithm::Sha256),
            _ => None,
        }
    }

    pub(super) fn number(self) -> &'static str {
        match self {
            Algorithm::Md5 => "5",
            Algorithm::Sha256 => "7",
        }
    }

    /// The answer to a challenge.
    pub(super) fn response(self, identifier: u8, secret: &str, challenge: &[u8]) -> Vec<u8> {
        match self {
            Algorithm::Md5 => hash::<Md5>(identifier, secret, challenge),
            Algorithm::Sha256 => hash::<Sha256>(identifier, secret, challenge),
        }
    }
}

fn hash<H: md5::Digest>(identifier: u8, secret: &str, challenge: &[u8]) -> Vec<u8> {
    H::new().chain_update([identifier]).chain_update(secret).chain_update(challenge).finalize().to_vec()
}

/// Returns whether two are equal, in a time that does not tell where they differ.
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}

/// Binary as text.
pub(super) fn to_text(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    std::iter::once("0x".to_owned()).chain(digits).collect()
}

/// Text as binary: hexadecimal or base64 (RFC 7143, 6.1).
pub(super) fn from_text(text: &str) -> Option<Vec<u8>> {
    if text.len() > 2 * MAX_BYTES + 2 {
        return None;
    }
    let (prefix, rest) = (text.get(..2)?, text.get(2..)?.as_bytes());
    match prefix {
        "0x" | "0X" => {
            let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
            // An odd number of digits lacks a leading zero.
            let (first, pairs) = rest.split_at(rest.len() % 2);
            let first = first.iter().map(|&byte| digit(byte));
            first.chain(pairs.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))).collect()
        }
        "0b" | "0B" => base64(rest),
        _ => None,
    }
}

fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for &letter in text {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 & 0xffff | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_is_the_hash_of_identifier_secret_and_challenge() {
        // md5sum and sha256sum of "\x27secretsecret\x01\x02".
        let challenge = [1, 2];
        let md5 = Algorithm::Md5.response(0x27, "secretsecret", &challenge);
        assert_eq!(to_text(&md5), "0x5714a5c4501263a1ac0a51ed93331c60");
        let sha = Algorithm::Sha256.response(0x27, "secretsecret", &challenge);
        assert_eq!(to_text(&sha), "0x6d6065c2f05095e5cb869e84bbc093983903739e2adeefc2d762731c7701ff8f");
    }

    #[test]
    fn the_strongest_of_an_offer_is_taken() {
        assert_eq!(Algorithm::of_offer(Algorithm::OFFER), Some(Algorithm::Sha256));
        assert_eq!(Algorithm::of_offer("6,5"), Some(Algorithm::Md5));
        assert_eq!(Algorithm::of_offer("6,8"), None);
    }

    #[test]
    fn binary_is_hexadecimal_or_base64() {
        assert_eq!(from_text("0x0aFF"), Some(vec![10, 255]));
        assert_eq!(from_text("0xaff"), Some(vec![10, 255]));
        assert_eq!(from_text("0bZm9vYg=="), Some(b"foob".to_vec()));
        assert_eq!(from_text("0bZm9vYmE="), Some(b"fooba".to_vec()));
        for wrong in ["", "0", "12", "0xg0", "0b!", "0é"] {
            assert_eq!(from_text(wrong), None, "{wrong}");
        }
    }
}
