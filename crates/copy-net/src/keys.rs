//! Secrets of one copy: the token that each connection shows, and the keys of TLS of the end that listens.

use crate::error::{CopyError, ErrorKind};
use copy::hex;

/// Name in the certificate. Nobody looks it up: the other end knows the certificate itself.
const NAME: &str = "elephan-copy";

/// Secrets that the front draws for a copy and hands over inside SSH; hex digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyKeys {
    /// `EndSpec::token`.
    pub token: String,
    /// `TlsSpec::certificate`, DER.
    pub certificate: String,
    /// `TlsSpec::key`, PKCS #8.
    pub key: String,
}

/// Draws the secrets of a copy from the kernel's random numbers.
///
/// # Errors
/// The kernel gives none.
pub fn draw_keys() -> Result<CopyKeys, CopyError> {
    let failed = |text: String| CopyError { kind: ErrorKind::Io, text: format!("keys of a copy: {text}") };
    let mut token = [0; 32];
    let mut filled = 0;
    while filled < token.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(&mut token[filled..], flags).map_err(|error| failed(error.to_string()))?;
    }
    let made = rcgen::generate_simple_self_signed(vec![NAME.into()]).map_err(|error| failed(error.to_string()))?;
    Ok(CopyKeys { token: hex(&token), certificate: hex(made.cert.der()), key: hex(&made.signing_key.serialize_der()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_copy_has_secrets_of_its_own() {
        let (one, other) = (draw_keys().unwrap(), draw_keys().unwrap());
        assert_eq!(one.token.len(), 64);
        assert!(one.token != other.token && one.key != other.key && one.certificate != other.certificate);
    }
}
