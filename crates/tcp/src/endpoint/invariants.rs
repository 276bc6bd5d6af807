//! Invariants that debug builds check after every input.

use super::{Endpoint, Phase};
use crate::scoreboard::tag;

impl Endpoint {
    /// Compares the counters with a recount of the ring; only for small windows, since it walks.
    pub(super) fn check_invariants(&self) {
        const MOST: u64 = 4096;
        let s = self.cc.sock();
        assert_eq!(u64::from(s.packets_out), self.ring.tail() - self.ring.head(), "packets_out");
        if self.phase == Phase::Open {
            assert_eq!(self.ring.is_empty(), self.una == self.nxt, "una");
        }
        if u64::from(s.packets_out) > MOST {
            return;
        }
        let (mut sacked, mut lost, mut retrans) = (0, 0, 0);
        for index in self.ring.head()..self.ring.tail() {
            let f = self.ring.get(index).flags;
            sacked += u32::from(f & tag::SACKED != 0);
            lost += u32::from(f & tag::LOST != 0);
            retrans += u32::from(f & tag::RETRANS != 0);
            assert!(f & tag::SACKED == 0 || f & tag::LOST == 0, "SACKed and lost");
        }
        if !self.is_reno() {
            assert_eq!(s.sacked_out, sacked, "sacked_out");
        }
        assert_eq!(s.lost_out, lost, "lost_out");
        assert_eq!(s.retrans_out, retrans, "retrans_out");
        assert!(s.snd_cwnd >= 1, "cwnd");
        assert_eq!(s.snd_una, self.una as u32, "snd_una");
        assert_eq!(s.snd_nxt, self.nxt as u32, "snd_nxt");
    }
}
