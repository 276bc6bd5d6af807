//! Ethernet addresses.

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];
