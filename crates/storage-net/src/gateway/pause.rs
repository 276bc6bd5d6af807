//! PAUSE towards the SAN: the other end of the interface's link sends nothing while the gateway takes nothing.

use bytes::Bytes;
use std::path::PathBuf;
use wire::pause::{encode, QUANTUM_BITS};

/// Longest time that a frame can ask for, quanta.
const QUANTA: u16 = u16::MAX;
/// Rate of a link that does not tell it, Mbit/s.
const USUAL_MBIT: u64 = 10_000;
const NS_PER_US: u64 = 1_000;

/// State of the link's other end.
#[derive(Debug)]
pub(super) struct Pause {
    mac: [u8; 6],
    /// File with the rate of the link.
    speed: PathBuf,
    /// Half of the time that a frame asks for, ns: then it is asked again.
    refresh_ns: u64,
    /// Time of the next frame; None while the other end may send.
    next_ns: Option<u64>,
}

impl Pause {
    /// For an interface, with its Ethernet address.
    pub fn of(interface: &str, mac: [u8; 6]) -> Pause {
        Pause { mac, speed: format!("/sys/class/net/{interface}/speed").into(), refresh_ns: 0, next_ns: None }
    }

    /// Returns the frame that is due, if any. `takes`: the gateway takes frames of the SAN now.
    pub fn frame(&mut self, takes: bool, now_ns: u64) -> Option<Bytes> {
        match (takes, self.next_ns) {
            (true, None) => None,
            (true, Some(_)) => {
                self.next_ns = None;
                Some(encode(self.mac, 0))
            }
            (false, Some(next_ns)) if now_ns < next_ns => None,
            (false, next_ns) => {
                if next_ns.is_none() {
                    // The rate may have changed since the last stop.
                    self.refresh_ns = half_ns(&std::fs::read_to_string(&self.speed).unwrap_or_default());
                }
                self.next_ns = Some(now_ns + self.refresh_ns);
                Some(encode(self.mac, QUANTA))
            }
        }
    }

    /// Time of the next frame, ns.
    pub fn poll_timeout(&self) -> u64 {
        self.next_ns.unwrap_or(u64::MAX)
    }
}

/// Half of the time that a frame asks for, ns, on a link of a rate: digits, in Mbit/s.
fn half_ns(speed: &str) -> u64 {
    // An interface without a link has -1.
    let mbit = speed.trim().parse::<u64>().ok().filter(|rate| *rate > 0).unwrap_or(USUAL_MBIT);
    (u64::from(QUANTA) * QUANTUM_BITS * NS_PER_US / mbit / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quanta(frame: Option<Bytes>) -> Option<u16> {
        frame.map(|frame| u16::from_be_bytes([frame[16], frame[17]]))
    }

    #[test]
    fn a_stop_is_asked_for_again_before_it_ends_and_taken_back_once() {
        let mut pause = Pause::of("no-such-interface", [0; 6]);
        assert_eq!((quanta(pause.frame(true, 0)), pause.poll_timeout()), (None, u64::MAX));
        assert_eq!(quanta(pause.frame(false, 5)), Some(QUANTA));
        assert_eq!(pause.poll_timeout(), 5 + 1_677_696);
        assert_eq!(quanta(pause.frame(false, 6)), None);
        assert_eq!(quanta(pause.frame(false, 5 + 1_677_696)), Some(QUANTA));
        assert_eq!(quanta(pause.frame(true, 40_000_000)), Some(0));
        assert_eq!((quanta(pause.frame(true, 40_000_001)), pause.poll_timeout()), (None, u64::MAX));
    }

    #[test]
    fn the_time_asked_for_is_that_of_the_links_rate() {
        // 65535 times 512 bits at 1 Gbit/s are 33.55 ms.
        assert_eq!(half_ns("1000\n"), 16_776_960);
        for without in ["-1\n", "0\n", ""] {
            assert_eq!(half_ns(without), half_ns("10000\n"));
        }
    }
}
