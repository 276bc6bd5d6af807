//! What a move needs so that it hurts nobody, from what the network shows before it: how long to hold, how many bytes that takes, how
//! much of the window to keep, and when it is better not to move.
//!
//! With D the difference of the one-way delays, queues of the old way included, and r the flow's rate:
//!
//! - what comes after the move arrives in order when the moving router keeps it back for D; r D bytes are then in its buffer;
//! - a window W = r RTT filled the old way; the new one holds r (RTT - D). The r D bytes between wait before the line that limits
//!   the flow: at the sender (B) or the moving router (C), which have room, or at the merging router (D), whose queue takes what
//!   it has room for and drops the rest, however long anybody holds: holding does not shrink a window;
//! - a window cut to (RTT - D) / RTT leaves that line exactly full. The cut makes a pause of D in what the sender sends; when the move
//!   falls into the pause there is nothing to keep back.
//!
//! docs/hybrid-remedies.md has what came of it in the cells of the hybrid paper (Moura, Pras, Fioreze and de Boer 2013).

use crate::forecast::{limit_of, Limit, DUPLICATE_ACKS};
use crate::view::Ways;
use units::{Rate, Size, Span};

/// What to do with a move.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Remedy {
    /// Move: it reorders next to nothing.
    None,
    /// Hold, then move.
    Hold,
    /// Have the senders cut their windows, and hold what still comes.
    HoldAndTrim,
    /// Leave the flow where it is.
    Refuse,
}

/// What a move needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// What to do.
    pub remedy: Remedy,
    /// D: how long the moving router keeps packets back.
    pub hold: Span,
    /// r D: the buffer that this takes without a trimmed window.
    pub buffer: Size,
    /// Part of the window that fits the new way, parts per million.
    pub keep_ppm: u32,
    /// Packets that the merging router drops after a hold when no window is trimmed.
    pub dropped_packets: u64,
}

/// Plans the move of a flow of `rate`: `buffer` is what the moving router can keep back, `senders_listen` whether the flow's sender
/// can be told to trim its window.
pub fn plan(rate: Rate, ways: &Ways, buffer: Size, senders_listen: bool) -> Plan {
    let over_ip = ways.ip_delay + ways.core.wait();
    let hold = Span(over_ip.0.saturating_sub(ways.lightpath_delay.0));
    let round_trip = (over_ip + ways.egress.map_or(Span::ZERO, |link| link.wait()) + ways.return_delay).0;
    let surplus = rate.data_in(hold);
    let packet = ways.packet.0.max(1);
    let room = ways.egress.map_or(u64::MAX, |link| link.queue_limit.0.saturating_sub(link.queue.0));
    let dropped = if limit_of(ways) == Limit::Receiver { surplus.0.saturating_sub(room) / packet } else { 0 };
    let remedy = if surplus.0 / packet <= DUPLICATE_ACKS {
        Remedy::None
    } else if dropped > 0 && senders_listen {
        Remedy::HoldAndTrim
    } else if dropped > 0 || surplus > buffer {
        Remedy::Refuse
    } else {
        Remedy::Hold
    };
    // hold <= round_trip: at most a million.
    let keep = u128::from(round_trip.saturating_sub(hold.0)) * 1_000_000 / u128::from(round_trip.max(1));
    Plan { remedy, hold, buffer: surplus, keep_ppm: keep as u32, dropped_packets: dropped }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::LinkView;

    /// 1 Gbit/s, 100 ms of which 50 one way; 10 ms over the lightpath; the receiver's line is full or not.
    fn ways(exit_load: u64, queue_packets: u64) -> Ways {
        let line = |capacity, load, queue| LinkView {
            capacity: Rate(capacity),
            load: Rate(load),
            queue: Size(queue),
            queue_limit: Size(750_000),
            dropped: 0,
        };
        Ways {
            ip_delay: Span::from_millis(50),
            lightpath_delay: Span::from_millis(10),
            return_delay: Span::from_millis(50),
            ingress: None,
            core: line(2_488_000_000, 1_000_000_000, 0),
            egress: Some(line(1_000_000_000, exit_load, queue_packets * 1500)),
            packet: Size(1500),
        }
    }

    #[test]
    fn a_flow_that_the_receivers_line_does_not_limit_is_held() {
        let plan = plan(Rate(500_000_000), &ways(500_000_000, 0), Size(10_000_000), false);
        // 40 ms at 500 Mbit/s.
        assert_eq!(plan.hold, Span::from_millis(40));
        assert_eq!(plan.buffer, Size(2_500_000));
        assert_eq!((plan.remedy, plan.dropped_packets), (Remedy::Hold, 0));
    }

    #[test]
    fn where_the_receivers_line_is_full_the_window_must_shrink_or_the_flow_stay() {
        let full = ways(1_000_000_000, 250);
        let told = plan(Rate(1_000_000_000), &full, Size(10_000_000), true);
        // 5 MB do not fit the new way; 250 packets of 1500 B do fit the queue: (5,000,000 - 375,000) / 1500.
        assert_eq!((told.remedy, told.dropped_packets), (Remedy::HoldAndTrim, 3083));
        // 250 packets wait for 3 ms: 103 ms become 63.
        assert_eq!(told.keep_ppm, 611_650);
        assert_eq!(plan(Rate(1_000_000_000), &full, Size(10_000_000), false).remedy, Remedy::Refuse);
    }

    #[test]
    fn a_router_without_the_buffer_does_not_move() {
        let plan = plan(Rate(500_000_000), &ways(500_000_000, 0), Size(2_000_000), false);
        assert_eq!(plan.remedy, Remedy::Refuse);
    }

    #[test]
    fn a_longer_way_needs_nothing() {
        let ways = Ways { lightpath_delay: Span::from_millis(60), ..ways(500_000_000, 0) };
        let plan = plan(Rate(500_000_000), &ways, Size(0), false);
        assert_eq!((plan.remedy, plan.hold, plan.keep_ppm), (Remedy::None, Span::ZERO, 1_000_000));
    }
}
