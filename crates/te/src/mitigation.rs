//! The mitigations of a move, and how a router would hold packets for one.

use crate::link_view::load_of_others;
use units::{Rate, Size, Span, Time};

/// The mitigation of a move's effects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mitigation {
    /// Nothing.
    None,
    /// The moving router holds packets.
    HoldBuffer,
    /// The sender reduces cwnd before the move.
    CwndReduction,
    /// Both.
    HoldAndReduceCwnd,
}

impl Mitigation {
    /// Returns whether the moving router holds packets.
    pub fn holds(self) -> bool {
        matches!(self, Mitigation::HoldBuffer | Mitigation::HoldAndReduceCwnd)
    }

    /// Returns whether the sender reduces cwnd.
    pub fn reduces_cwnd(self) -> bool {
        matches!(self, Mitigation::CwndReduction | Mitigation::HoldAndReduceCwnd)
    }
}

/// Mitigations that the operator allows for a move, with their present parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AllowedMitigations {
    /// The true D: propagation, a full packet's serialization on each link, and the old path's queue.
    pub delay_difference: Span,
    /// The hold of the moving router; None: not allowed.
    pub hold_buffer: Option<HoldConfig>,
    /// D as signalled to the sender; None: not allowed.
    pub cwnd_reduction: Option<Span>,
}

/// The hold that a moving router would apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HoldConfig {
    /// Duration: D as the router estimates it.
    pub delay: Span,
    /// Largest drain rate, shared by all hold buffers of the pacer: that of the link behind the router, or less.
    pub line: Rate,
    /// Other traffic on that link.
    pub pacing: Pacing,
    /// Excess of the drain rate over the arrival rate, parts per million; None: drain at `line`.
    pub share_ppm: Option<u32>,
    /// Size of the buffer, per lightpath; None: without a limit.
    pub buffer: Option<Size>,
}

/// A link for which hold buffers are paced, and the other traffic on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pacing {
    /// Hold buffers with the same number share a pacer.
    pub pacer: usize,
    /// Its load in the latest interval, where held flows may use only the rate that others leave; None: they may use
    /// all of it.
    pub load: Option<Rate>,
    /// Rate of the other held flows of the pacer.
    pub held_rate: Rate,
}

impl HoldConfig {
    /// Time at which the hold of a flow of `rate` that begins at `now` has drained; never where the drain rate is no
    /// faster than arrivals.
    pub(crate) fn empty_at(&self, now: Time, rate: Rate) -> Time {
        let come = Rate(rate.0.saturating_add(self.pacing.held_rate.0));
        let gains = self.line.0.saturating_sub(come.0);
        if gains == 0 {
            return Time::NEVER;
        }
        now + self.delay + Rate(gains).time_for(come.data_in(self.delay))
    }

    /// This configuration beside held flows of `held_rate` and a flow of `coming` to be held: drains at the rate that
    /// other flows leave, but not below `guaranteed`.
    pub(crate) fn shared_with(self, held_rate: Rate, coming: Rate, guaranteed: Rate) -> HoldConfig {
        let line = self.pacing.load.map_or(self.line, |load| {
            let others = load_of_others(load.0.saturating_sub(held_rate.0).saturating_sub(coming.0), self.line);
            let left = self.line.0.saturating_sub(others.0).max(guaranteed.0.saturating_add(coming.0));
            Rate(left.clamp(1, self.line.0.max(1)))
        });
        HoldConfig { line, pacing: Pacing { held_rate, ..self.pacing }, ..self }
    }
}

/// Counters of the hold for a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HoldStats {
    /// Duration of the hold: D as the router estimated it at the move.
    pub hold: Span,
    /// Held packets.
    pub packets: u64,
    /// Most bytes at once.
    pub bytes: Size,
    /// Packets dropped by a full buffer.
    pub dropped_packets: u64,
    /// True if packets are held, or may still be.
    pub is_holding: bool,
}
