//! Addresses and names of ports.

use std::fmt;
use std::str::FromStr;

/// Address of a port in a fabric, 24 bits: domain, area, port (FC-FS-2, 9.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FcId(u32);

impl FcId {
    /// No address: a port before its fabric login.
    pub const NONE: FcId = FcId(0);
    /// Every port.
    pub const BROADCAST: FcId = FcId(0xff_ffff);
    /// The fabric port: takes FLOGI, FDISC and the fabric's LOGO.
    pub const FABRIC_PORT: FcId = FcId(0xff_fffe);
    /// The fabric controller: takes SCR, sends RSCN.
    pub const FABRIC_CONTROLLER: FcId = FcId(0xff_fffd);
    /// The directory server with the name server.
    pub const DIRECTORY_SERVER: FcId = FcId(0xff_fffc);

    /// The address of the low 24 bits of `value`; the others are dropped.
    pub const fn new(value: u32) -> FcId {
        FcId(value & 0xff_ffff)
    }

    /// The address of a switch's domain, an area and a port.
    pub const fn of(domain: u8, area: u8, port: u8) -> FcId {
        FcId((domain as u32) << 16 | (area as u32) << 8 | port as u32)
    }

    /// The 24 bits.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// Domain: the switch.
    pub const fn domain(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// Area.
    pub const fn area(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// True for the addresses of the fabric's services (FC-FS-2, table 21).
    pub const fn is_well_known(self) -> bool {
        self.0 >= 0xff_fc00
    }

    /// Most significant byte first.
    pub const fn to_bytes(self) -> [u8; 3] {
        [(self.0 >> 16) as u8, (self.0 >> 8) as u8, self.0 as u8]
    }

    /// The address in 3 bytes, most significant first.
    pub const fn from_bytes(bytes: [u8; 3]) -> FcId {
        FcId::of(bytes[0], bytes[1], bytes[2])
    }
}

impl fmt::Display for FcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06x}", self.0)
    }
}

impl fmt::Debug for FcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FcId({self})")
    }
}

/// World wide name of a port or a node, 64 bits (FC-FS-2, clause 14).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Wwn(pub u64);

impl Wwn {
    /// The name that IEEE's format 1 or 2 makes of an Ethernet address (FC-FS-2, 14.3): `prefix` is its first 16 bits,
    /// such as 0x1000 for a node and 0x2000 for a port, as Linux's `fcoe_wwn_from_mac` has it.
    pub const fn of_mac(prefix: u16, mac: [u8; 6]) -> Wwn {
        let [a, b, c, d, e, f] = mac;
        Wwn((prefix as u64) << 48 | u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }
}

impl fmt::Display for Wwn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.to_be_bytes().iter().enumerate() {
            write!(f, "{}{byte:02x}", if place == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Wwn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wwn({self})")
    }
}

/// A text is no world wide name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is no world wide name; write 16 hexadecimal digits, such as 20:00:00:1b:32:0a:0b:0c or 2000001b320a0b0c"
)]
pub struct NotAWwn(String);

impl FromStr for Wwn {
    type Err = NotAWwn;

    /// Reads eight bytes as pairs of hexadecimal digits with colons between, or as 16 digits, with or without 0x.
    fn from_str(text: &str) -> Result<Wwn, NotAWwn> {
        let refused = || NotAWwn(text.to_string());
        let digits = if text.contains(':') {
            let pairs: Vec<&str> = text.split(':').collect();
            if pairs.len() != 8 || pairs.iter().any(|pair| pair.len() != 2) {
                return Err(refused());
            }
            pairs.concat()
        } else {
            text.strip_prefix("0x").unwrap_or(text).to_string()
        };
        if digits.len() != 16 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(refused());
        }
        u64::from_str_radix(&digits, 16).map(Wwn).map_err(|_| refused())
    }
}
