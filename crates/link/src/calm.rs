//! Loops over packets to which nothing special happens: of one size, not lost, behind a queue that is neither full nor
//! longer than ever before, and seen by no sample. Each stops at the first packet that is not so.
//!
//! The same steps as `PrecomputedLink::pass` takes, in registers and without a branch that nobody can foresee.

use crate::packet::Packet;
use crate::serializer::Line;
use crate::waiting::Writer;

/// The bounds of a packet to which nothing special happens.
pub(crate) struct Calm {
    /// Its size: that which the line sends ([`Line::last_bytes`]).
    pub bytes: u32,
    /// It comes at this time at the latest.
    pub next_sample: u64,
    /// Its last bit leaves at this time at the latest.
    pub latest: u64,
    /// It waits for so long at most, ns.
    pub longest_wait: u64,
    /// Its flow, where that matters.
    pub flow: Option<u64>,
    /// From its last bit's departure to the far end, ns: `latest` and it are a time.
    pub delay: u64,
}

impl Calm {
    #[inline(always)]
    fn is_other<P: Packet>(&self, packet: &P) -> bool {
        packet.bytes() != self.bytes || self.flow.is_some_and(|flow| packet.flow_hash() != flow)
    }

    /// Passes those of `packets` on that find `line` free: each takes the same time. Of this kind is nearly all that
    /// comes from a slower line. Returns how many; their times are those at the far end.
    #[inline(always)]
    pub fn pass_free<P: Packet>(&self, line: &mut Line, packets: &mut [(u64, P)]) -> usize {
        let sending = line.free_ns();
        let Some(latest) = self.latest.checked_sub(sending) else { return 0 };
        let bound = latest.min(self.next_sample);
        let (mut free_at, mut count) = (line.free_at(), 0);
        for (at, packet) in packets {
            if *at < free_at || *at > bound || self.is_other(packet) {
                break;
            }
            free_at = *at + sending;
            *at = free_at + self.delay;
            count += 1;
        }
        if count > 0 {
            line.send_free(free_at - sending);
        }
        count
    }

    /// The same for packets that wait and those that do not; tells `note` when each leaves, and how long after it came.
    #[inline(always)]
    pub fn pass_any<P: Packet>(
        &self,
        line: &mut Line,
        queue: &mut Writer,
        packets: &mut [(u64, P)],
        mut note: impl FnMut(u64, u64),
    ) -> usize {
        let mut current = *line;
        let mut count = 0;
        for (at, packet) in packets {
            let mut next = current;
            let free_at = current.free_at();
            let depart = next.send(*at);
            let seen = *at > self.next_sample || depart > self.latest;
            if seen || free_at > at.saturating_add(self.longest_wait) || self.is_other(packet) {
                break;
            }
            queue.push_if(*at < free_at, free_at, self.bytes);
            note(depart, depart - *at);
            current = next;
            *at = depart + self.delay;
            count += 1;
        }
        *line = current;
        count
    }
}
