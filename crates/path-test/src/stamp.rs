//! Test packets of STAMP (RFC 8762, 4) with their session identifier (RFC 8972, 3), and of TWAMP Light's peers.

use core::net::SocketAddr;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Octets of a base packet without authentication, either way (RFC 8762, 4.2.1 and 4.3.1).
pub const OPEN_BYTES: usize = 44;
/// Octets of an authenticated base packet, either way (RFC 8762, 4.2.2 and 4.3.2).
pub const AUTHENTICATED_BYTES: usize = 112;
/// Octets of a TWAMP reflector's packet without padding (RFC 5357, 4.2.1): the least that may be answered.
pub const TWAMP_REPLY_BYTES: usize = 41;
/// Octets of a truncated HMAC-SHA-256 (RFC 8762, 4.4).
pub const HMAC_BYTES: usize = 16;
/// Octets that the HMAC of a base packet covers (RFC 8762, 4.4).
const COVERED_BYTES: usize = 96;
/// s from 1900, where NTP's time begins, to 1970 (RFC 5905, 6).
const NTP_EPOCH_S: u64 = 2_208_988_800;
const NS_PER_S: u64 = 1_000_000_000;
/// The port of STAMP's reflectors (RFC 8762, 4.1).
pub const PORT: u16 = 862;

/// A key of the HMAC, which both ends have.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl core::fmt::Debug for Key {
    fn fmt(&self, text: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        text.write_str("Key")
    }
}

impl Key {
    /// A key of any length; RFC 2104, 3 advises 32 octets or more for SHA-256.
    pub fn new(bytes: &[u8]) -> Key {
        Key(Hmac::new_from_slice(bytes).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length")))
    }

    /// The truncated HMAC of parts, one behind the other.
    pub fn sign(&self, parts: &[&[u8]]) -> [u8; HMAC_BYTES] {
        let mut hmac = self.0.clone();
        parts.iter().for_each(|part| hmac.update(part));
        let mut signed = [0; HMAC_BYTES];
        signed.copy_from_slice(&hmac.finalize().into_bytes()[..HMAC_BYTES]);
        signed
    }

    /// True for the HMAC of these parts. Takes the same time for any wrong one.
    pub fn verify(&self, parts: &[&[u8]], signed: &[u8]) -> bool {
        let mut hmac = self.0.clone();
        parts.iter().for_each(|part| hmac.update(part));
        signed.len() == HMAC_BYTES && hmac.verify_truncated_left(signed).is_ok()
    }
}

/// Form of a time stamp: the bit Z of an error estimate (RFC 8186, 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TimeFormat {
    /// 32 bits of seconds since 1900, 32 of their fraction (RFC 5905, 6).
    #[default]
    Ntp,
    /// 32 bits of seconds, 32 of nanoseconds: PTPv2, truncated (RFC 8186). The seconds count from 1970, and are UTC
    /// here, TAI at others; so nothing relies on a difference of two such clocks that is not measured.
    Ptp,
}

impl TimeFormat {
    /// A time, ns since 1970, as 64 bits.
    pub fn encode(self, unix_ns: u64) -> u64 {
        let (seconds, ns) = (unix_ns / NS_PER_S, unix_ns % NS_PER_S);
        match self {
            // Rounded up, so that rounding down gives the same ns back.
            TimeFormat::Ntp => ((seconds + NTP_EPOCH_S) & 0xffff_ffff) << 32 | (ns << 32).div_ceil(NS_PER_S),
            TimeFormat::Ptp => (seconds & 0xffff_ffff) << 32 | ns,
        }
    }

    /// The time of 64 bits, ns since 1970, in the era (of 2^32 s) whose time is nearest to `near_ns`.
    pub fn decode(self, bits: u64, near_ns: u64) -> u64 {
        let (seconds, low) = (bits >> 32, bits & 0xffff_ffff);
        let (seconds, ns) = match self {
            TimeFormat::Ntp => (seconds.wrapping_sub(NTP_EPOCH_S) & 0xffff_ffff, (low * NS_PER_S) >> 32),
            TimeFormat::Ptp => (seconds, low.min(NS_PER_S - 1)),
        };
        let near_s = near_ns / NS_PER_S;
        let ahead = (seconds.wrapping_sub(near_s) & 0xffff_ffff) as u32 as i32;
        let whole_s = i128::from(near_s) + i128::from(ahead);
        u64::try_from(whole_s.max(0) * i128::from(NS_PER_S) + i128::from(ns)).unwrap_or(u64::MAX)
    }
}

/// Error estimate of a clock (RFC 4656, 4.1.2; RFC 8186, 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorEstimate {
    /// The clock follows UTC by an external source.
    pub synchronized: bool,
    /// Form of the time stamps beside it.
    pub format: TimeFormat,
    /// 0 to 63.
    pub scale: u8,
    /// Never 0 from a sender that keeps to the RFC.
    pub multiplier: u8,
}

impl ErrorEstimate {
    /// The least estimate that is no smaller than `error_ns`.
    pub fn of(error_ns: u64, synchronized: bool, format: TimeFormat) -> ErrorEstimate {
        let mut units = (u128::from(error_ns) << 32).div_ceil(u128::from(NS_PER_S)).max(1);
        let mut scale = 0;
        while units > 255 {
            units = units.div_ceil(2);
            scale += 1;
        }
        ErrorEstimate { synchronized, format, scale, multiplier: units as u8 }
    }

    /// The error, ns: at most 2^64 - 1.
    pub fn error_ns(self) -> u64 {
        let units = u128::from(self.multiplier) << self.scale;
        u64::try_from((units * u128::from(NS_PER_S)) >> 32).unwrap_or(u64::MAX)
    }

    /// As 16 bits.
    pub fn encode(self) -> u16 {
        let format = u16::from(self.format == TimeFormat::Ptp);
        u16::from(self.synchronized) << 15 | format << 14 | u16::from(self.scale & 63) << 8 | u16::from(self.multiplier)
    }

    /// Of 16 bits.
    pub fn decode(bits: u16) -> ErrorEstimate {
        let format = if bits & 0x4000 == 0 { TimeFormat::Ntp } else { TimeFormat::Ptp };
        let [high, multiplier] = bits.to_be_bytes();
        ErrorEstimate { synchronized: bits & 0x8000 != 0, format, scale: high & 63, multiplier }
    }
}

/// Fields of a Session-Sender's packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Number of the packet.
    pub sequence: u32,
    /// Time of sending, by the format of the error estimate.
    pub timestamp: u64,
    /// Of the sender's clock.
    pub error: ErrorEstimate,
    /// Session identifier (RFC 8972, 3); 0: none.
    pub ssid: u16,
}

/// Fields of a Session-Reflector's packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Number of the reply: that of the request, or the reflector's own count.
    pub sequence: u32,
    /// Time of sending.
    pub timestamp: u64,
    /// Of the reflector's clock.
    pub error: ErrorEstimate,
    /// Session identifier.
    pub ssid: u16,
    /// Time of the request's arrival.
    pub received: u64,
    /// Number of the request.
    pub sender_sequence: u32,
    /// Time stamp of the request.
    pub sender_timestamp: u64,
    /// Error estimate of the request.
    pub sender_error: ErrorEstimate,
    /// TTL or hop limit with which the request arrived; 255 where the reflector cannot tell (RFC 8762, 4.3.1).
    pub sender_ttl: u8,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// True where the HMAC of an authenticated base packet is right.
pub fn verify_base(packet: &[u8], key: &Key) -> bool {
    packet.len() >= AUTHENTICATED_BYTES
        && key.verify(&[&packet[..COVERED_BYTES]], &packet[COVERED_BYTES..][..HMAC_BYTES])
}

fn sign_base(packet: &mut [u8], key: &Key) {
    let signed = key.sign(&[&packet[..COVERED_BYTES]]);
    put(packet, COVERED_BYTES, &signed);
}

impl Request {
    /// Writes the base packet over the begin of `packet`, which has the octets of that form at least.
    pub fn encode(&self, packet: &mut [u8], key: Option<&Key>) {
        let (length, time) = if key.is_some() { (AUTHENTICATED_BYTES, 16) } else { (OPEN_BYTES, 4) };
        packet[..length].fill(0);
        put(packet, 0, &self.sequence.to_be_bytes());
        put(packet, time, &self.timestamp.to_be_bytes());
        put(packet, time + 8, &self.error.encode().to_be_bytes());
        put(packet, time + 10, &self.ssid.to_be_bytes());
        if let Some(key) = key {
            sign_base(packet, key);
        }
    }

    /// Reads the base packet; None: too short. One without authentication has 14 octets at least (RFC 5357, 4.1.2).
    pub fn decode(packet: &[u8], authenticated: bool) -> Option<Request> {
        if authenticated && packet.len() < AUTHENTICATED_BYTES {
            return None;
        }
        let time = if authenticated { 16 } else { 4 };
        let error = ErrorEstimate::decode(short(packet, time + 8)?);
        // TWAMP's padding stands where STAMP has its identifier, and must not be taken for one.
        let ssid = if packet.len() >= OPEN_BYTES { short(packet, time + 10)? } else { 0 };
        Some(Request { sequence: word(packet, 0)?, timestamp: long(packet, time)?, error, ssid })
    }
}

impl Reply {
    /// Writes the base packet over the begin of `packet`: with a key 112 octets, else 44, or as many as there are from
    /// 41 on, as TWAMP Light's senders have it.
    pub fn encode(&self, packet: &mut [u8], key: Option<&Key>) {
        let sequence = self.sequence.to_be_bytes();
        let error = self.error.encode().to_be_bytes();
        let (sender_sequence, sender_error) =
            (self.sender_sequence.to_be_bytes(), self.sender_error.encode().to_be_bytes());
        let (at, length) = if key.is_some() {
            ([16, 24, 26, 32, 48, 64, 72, 80], AUTHENTICATED_BYTES)
        } else {
            ([4, 12, 14, 16, 24, 28, 36, 40], OPEN_BYTES.min(packet.len()))
        };
        packet[..length].fill(0);
        put(packet, 0, &sequence);
        put(packet, at[0], &self.timestamp.to_be_bytes());
        put(packet, at[1], &error);
        put(packet, at[2], &self.ssid.to_be_bytes());
        put(packet, at[3], &self.received.to_be_bytes());
        put(packet, at[4], &sender_sequence);
        put(packet, at[5], &self.sender_timestamp.to_be_bytes());
        put(packet, at[6], &sender_error);
        put(packet, at[7], &[self.sender_ttl]);
        if let Some(key) = key {
            sign_base(packet, key);
        }
    }

    /// Reads the base packet; None: too short. Its HMAC is [`verify_base`]'s.
    pub fn decode(packet: &[u8], authenticated: bool) -> Option<Reply> {
        if packet.len() < if authenticated { AUTHENTICATED_BYTES } else { TWAMP_REPLY_BYTES } {
            return None;
        }
        let at = if authenticated { [16, 24, 26, 32, 48, 64, 72, 80] } else { [4, 12, 14, 16, 24, 28, 36, 40] };
        Some(Reply {
            sequence: word(packet, 0)?,
            timestamp: long(packet, at[0])?,
            error: ErrorEstimate::decode(short(packet, at[1])?),
            ssid: short(packet, at[2])?,
            received: long(packet, at[3])?,
            sender_sequence: word(packet, at[4])?,
            sender_timestamp: long(packet, at[5])?,
            sender_error: ErrorEstimate::decode(short(packet, at[6])?),
            sender_ttl: *packet.get(at[7])?,
        })
    }
}

/// Octets of IP and UDP headers before a packet's payload.
pub fn header_bytes(to: SocketAddr) -> usize {
    match to {
        SocketAddr::V4(_) => 28,
        SocketAddr::V6(address) if address.ip().to_ipv4_mapped().is_some() => 28,
        SocketAddr::V6(_) => 48,
    }
}
