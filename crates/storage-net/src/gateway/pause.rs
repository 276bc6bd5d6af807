//! PAUSE towards the SAN: the other end of the interface's link sends nothing while the gateway takes nothing.

use bytes::Bytes;
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
    /// Half of the time that a frame asks for, ns: then it is asked again.
    refresh_ns: u64,
    /// Time of the next frame; None while the other end may send.
    next_ns: Option<u64>,
}

impl Pause {
    /// For an interface, with its Ethernet address. Its rate is read once.
    pub fn of(interface: &str, mac: [u8; 6]) -> Pause {
        let text = std::fs::read_to_string(format!("/sys/class/net/{interface}/speed")).unwrap_or_default();
        // An interface without a link has -1.
        Pause::at(text.trim().parse().ok().filter(|rate| *rate > 0).unwrap_or(USUAL_MBIT), mac)
    }

    fn at(mbit: u64, mac: [u8; 6]) -> Pause {
        let held_ns = u64::from(QUANTA) * QUANTUM_BITS * NS_PER_US / mbit;
        Pause { mac, refresh_ns: (held_ns / 2).max(1), next_ns: None }
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
            (false, _) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn quanta(frame: Option<Bytes>) -> Option<u16> {
        frame.map(|frame| u16::from_be_bytes([frame[16], frame[17]]))
    }

    #[test]
    fn a_stop_is_asked_for_again_before_it_ends_and_taken_back_once() {
        // 65535 times 512 bits at 1 Gbit/s are 33.55 ms.
        let mut pause = Pause::at(1000, [0; 6]);
        assert_eq!((quanta(pause.frame(true, 0)), pause.poll_timeout()), (None, u64::MAX));
        assert_eq!(quanta(pause.frame(false, 5)), Some(QUANTA));
        assert_eq!(pause.poll_timeout(), 5 + 16_776_960);
        assert_eq!(quanta(pause.frame(false, 6)), None);
        assert_eq!(quanta(pause.frame(false, 5 + 16_776_960)), Some(QUANTA));
        assert_eq!(quanta(pause.frame(true, 40_000_000)), Some(0));
        assert_eq!((quanta(pause.frame(true, 40_000_001)), pause.poll_timeout()), (None, u64::MAX));
    }

    #[test]
    fn an_interface_that_does_not_tell_its_rate_has_the_usual_one() {
        assert_eq!(Pause::of("no-such-interface", [0; 6]).refresh_ns, Pause::at(USUAL_MBIT, [0; 6]).refresh_ns);
    }
}
