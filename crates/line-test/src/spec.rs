//! One stream, as its sender is told to send it.

use crate::ethernet::{Mac, FCS_BYTES, HEADER_BYTES};
use crate::mix::{FRAME_BYTES_MAX, FRAME_BYTES_MIN};
use crate::pattern::Pattern;
use serde::Deserialize;

/// Highest rate, bit/s: that of 400 Gbit/s Ethernet.
const RATE_MAX: u64 = 400_000_000_000;
/// Longest stream, ns: a year.
const DURATION_MAX: u64 = 365 * 86_400 * 1_000_000_000;

/// A stream.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamSpec {
    /// Address of the receiver, as text.
    #[serde(deserialize_with = "mac")]
    pub to: Mac,
    /// Number of the stream: tells it from another of the same sender.
    pub stream: u32,
    /// Sizes of frames, bytes with their check sequences, and their weights.
    pub sizes: Vec<(u32, u32)>,
    /// Rate that frames take with preambles and gaps, bit/s.
    pub rate_bps: u64,
    /// Time of the stream without its ramp, ns; None: until `frames` are sent.
    pub duration_ns: Option<u64>,
    /// Frames to send without those of the ramp.
    pub frames: Option<u64>,
    /// Time over which the rate rises before that, ns.
    pub ramp_ns: u64,
    /// Pattern of the frames.
    pub payload: Pattern,
    /// Time between rows of the series, ns; None: no series.
    pub series_ns: Option<u64>,
    /// Time to wait for frames that are under way, ns.
    pub drain_ns: u64,
    /// Priority of the tag (802.1p), 0 to 7; it needs a VLAN.
    pub pcp: Option<u8>,
}

/// A stream that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongSpec(pub String);

impl StreamSpec {
    /// Reads a stream of JSON.
    ///
    /// # Errors
    /// The fault, and what would be right.
    pub fn from_json(text: &str) -> Result<StreamSpec, WrongSpec> {
        serde_json::from_str(text).map_err(|error| WrongSpec(error.to_string()))
    }

    /// Checks the stream for an interface.
    ///
    /// # Errors
    /// The fault, and what would be right.
    pub fn check(&self, mtu_bytes: u32, has_tag: bool) -> Result<(), WrongSpec> {
        let fault = |text: String| Err(WrongSpec(text));
        let overhead = (HEADER_BYTES + FCS_BYTES) as u32 + if has_tag { 4 } else { 0 };
        let largest = (mtu_bytes + overhead).min(FRAME_BYTES_MAX);
        let least = FRAME_BYTES_MIN + if has_tag { 4 } else { 0 };
        if let Some((wrong, _)) = self.sizes.iter().find(|(bytes, _)| !(least..=largest).contains(bytes)) {
            return fault(format!("frames of {wrong} bytes; {least} to {largest} pass an MTU of {mtu_bytes}"));
        }
        if !(1000..=RATE_MAX).contains(&self.rate_bps) {
            return fault(format!("rate of {} bit/s; 1 kbit/s to 400 Gbit/s would be right", self.rate_bps));
        }
        match (self.duration_ns, self.frames) {
            (Some(1..=DURATION_MAX), None) | (None, Some(1..)) => {}
            _ => return fault("one of a duration (up to a year) and a number of frames is needed".into()),
        }
        if self.series_ns.is_some_and(|span| span < 10_000_000) {
            return fault("series: 10 ms at least between two rows".into());
        }
        if self.ramp_ns > DURATION_MAX || self.drain_ns > DURATION_MAX {
            return fault("ramp and drain: a year at most".into());
        }
        match self.pcp {
            Some(8..) => fault("priority: 0 to 7 would be right".into()),
            Some(_) if !has_tag => fault("priority: a tag has it, and there is no VLAN".into()),
            _ if self.to[0] & 1 != 0 => fault("receiver: a group's address".into()),
            _ => Ok(()),
        }
    }
}

fn mac<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Mac, D::Error> {
    let text = String::deserialize(from)?;
    parse_mac(&text).ok_or_else(|| serde::de::Error::custom(format!("{text}: no Ethernet address")))
}

/// An address as text, such as 02:00:00:00:00:01.
pub fn mac_text(address: Mac) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

/// The address of a text such as 02:00:00:00:00:01; None where it is none.
pub fn parse_mac(text: &str) -> Option<Mac> {
    let mut address = [0; 6];
    let mut parts = text.split(':');
    for place in &mut address {
        let part = parts.next().filter(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        *place = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"to": "02:00:00:00:00:0A", "stream": 1, "sizes": [[1518, 9], [64, 1]],
        "rate_bps": 1000000000, "duration_ns": 1000000000, "frames": null, "ramp_ns": 0, "payload": "cjpat",
        "series_ns": null, "drain_ns": 0, "pcp": null}"#;

    fn fault(change: impl FnOnce(&mut StreamSpec)) -> String {
        let mut spec = StreamSpec::from_json(TEXT).unwrap();
        change(&mut spec);
        spec.check(1500, false).expect_err("wrong").0
    }

    #[test]
    fn a_stream_is_read_and_checked() {
        let spec = StreamSpec::from_json(TEXT).unwrap();
        assert_eq!((spec.to, spec.payload), ([2, 0, 0, 0, 0, 10], Pattern::Cjpat));
        assert_eq!(spec.check(1500, false), Ok(()));
        assert!(fault(|spec| spec.sizes = vec![(1519, 1)]).contains("64 to 1518 pass an MTU of 1500"));
        assert!(spec.check(1499, false).is_err() && spec.check(1496, true).is_err());
        assert!(fault(|spec| spec.rate_bps = 999).contains("1 kbit/s to 400 Gbit/s"));
        assert!(fault(|spec| spec.duration_ns = None).contains("one of a duration"));
        assert!(fault(|spec| spec.frames = Some(1)).contains("one of a duration"));
        assert!(fault(|spec| spec.series_ns = Some(1)).contains("10 ms at least"));
        assert!(fault(|spec| spec.pcp = Some(3)).contains("there is no VLAN"));
        assert!(fault(|spec| spec.pcp = Some(8)).contains("0 to 7"));
        assert!(fault(|spec| spec.to = [3, 0, 0, 0, 0, 1]).contains("group's address"));
        for (from, to) in [("02:00:00:00:00:0A", "2:0:0:0:0:A"), ("cjpat", "jpat"), ("\"drain_ns\"", "\"dry_ns\"")] {
            assert!(StreamSpec::from_json(&TEXT.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn texts_that_are_no_address() {
        for text in
            ["", "02:00:00:00:00", "02:00:00:00:00:01:02", "02:00:00:00:00:0g", "0200:00:00:00:01", "+2:00:00:00:00:01"]
        {
            assert_eq!(parse_mac(text), None, "{text}");
        }
    }
}
