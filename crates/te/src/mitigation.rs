//! Chooses the mitigation of a move among those that the operator allows.
//!
//! With D the difference of the one-way delays, queues of the old path included, and r the flow's rate:
//!
//! - packets sent after the move arrive in order when the moving router holds them for D; its buffer then holds r D
//!   bytes. After a shorter hold they overtake packets on the old path; after a longer one nothing arrives for the
//!   rest;
//! - the buffer drains at a rate L, within r D / (L - r). A link after the merge that has c < L for the flow queues
//!   (L - c) / (L - r) of the held bytes;
//! - a window W = r RTT fills the old path; the new one takes r (RTT - D). Where the receiver's link limits the flow
//!   (scenario D, c = r), the other r D bytes arrive at its queue when the buffer drains at the lightpath's rate.
//!   Drained at c they stay in the buffer;
//! - a window cut to (RTT - D) / RTT leaves that link exactly full. The sender pauses for D after the cut; when the
//!   move falls into the pause, only packets queued before the sender's link need a hold.
//!
//! A window is reduced only in B and D: in A and C the shorter path lets the flow send more, and a reduced window
//! would have to grow back.
//!
//! docs/results/mitigation.md has the results for the scenarios of Moura, Pras, Fioreze and de Boer (2013).

use crate::forecast::{forecast, overflow, Case, Forecast, Limit, DUPTHRESH, FULL_PPM};
use crate::policy::Policy;
use crate::view::{LinkView, Paths};
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
    /// Whether the moving router holds packets.
    pub fn holds(self) -> bool {
        matches!(self, Mitigation::HoldBuffer | Mitigation::HoldAndReduceCwnd)
    }

    /// Whether the sender reduces cwnd.
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

/// How a moving router would hold packets.
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
    /// Size of the buffer, per lightpath.
    pub buffer: Size,
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
    /// Bytes dropped after the merge when a flow of `rate`, and the other held flows, were held for `hold`.
    fn overflow(&self, rate: Rate, hold: Span, paths: &Paths) -> u64 {
        let Some(egress) = paths.egress else { return 0 };
        let line = u128::from(self.line.0);
        let (leaves, come) = match self.share_ppm {
            Some(share) => {
                let faster = u128::from(rate.0) * (1_000_000 + u128::from(share)) / 1_000_000;
                (faster.min(line), rate)
            }
            None => (line, Rate(rate.0.saturating_add(self.pacing.held_rate.0))),
        };
        let others = u128::from(load_of_others(egress.load.0.saturating_sub(come.0), egress.capacity).0);
        let excess = (others + leaves).saturating_sub(u128::from(egress.capacity.0));
        let gains = leaves.saturating_sub(u128::from(come.0));
        // A drain rate no faster than the flow does not grow the queue behind.
        let grows = (u128::from(come.data_in(hold).0) * excess).checked_div(gains).unwrap_or(0);
        (grows as u64).saturating_sub(free_queue(&egress))
    }

    /// When the hold of a flow of `rate` that begins at `now` has drained; never where the drain rate is no faster
    /// than arrivals.
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

/// Load of other flows on a link of `capacity` with an apparent `rate`: zero up to the share that a full link leaves
/// idle, by which a flow's mean rate and the latest load differ anyway.
fn load_of_others(rate: u64, capacity: Rate) -> Rate {
    let idle = u128::from(capacity.0) * u128::from(1_000_000 - FULL_PPM) / 1_000_000;
    Rate(if u128::from(rate) <= idle { 0 } else { rate })
}

fn free_queue(link: &LinkView) -> u64 {
    link.queue_limit.0.saturating_sub(link.queue.0)
}

/// Effects of a move that remain with a mitigation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Residual {
    /// Time for which the old path still delivers while the new one does.
    pub overlap: Span,
    /// Time for which nothing arrives.
    pub pause: Span,
    /// Bytes dropped at the merging router.
    pub lost: u64,
}

/// Effects of a move with `overlap` that remain with `mitigation`; one that is not allowed has no effect.
pub(crate) fn residual(mitigation: Mitigation, rate: Rate, overlap: Span, paths: &Paths) -> Residual {
    let AllowedMitigations { delay_difference: difference, hold_buffer: hold, cwnd_reduction: reduction } =
        paths.allowed;
    let hold = hold.filter(|_| mitigation.holds());
    let reduction = reduction.filter(|_| mitigation.reduces_cwnd());
    let by = |delay: Option<Span>| {
        delay.map(|delay| (difference.0.saturating_sub(delay.0), delay.0.saturating_sub(difference.0)))
    };
    let (held, cut) = (by(hold.map(|hold| hold.delay)), by(reduction));
    let Some((uncovered, _)) = held.or(cut) else {
        return Residual { overlap, pause: Span::ZERO, lost: overflow(rate, overlap, paths) };
    };
    let lost = match (hold, cut) {
        (_, Some((surplus, _))) => overflow(rate, Span(surplus), paths),
        (Some(hold), None) => hold.overflow(rate, hold.delay, paths),
        (None, None) => 0,
    };
    // Packets queued before the sender's link reach the router after the move: only a hold delays them.
    let behind = paths.ingress.map_or(Span::ZERO, |link| link.wait()).min(difference);
    let uncovered = if held.is_some() { uncovered } else { uncovered.max(behind.0) };
    let pause = [held, cut].into_iter().flatten().map(|(_, longer)| longer).max().unwrap_or(0);
    Residual { overlap: Span(uncovered), pause: Span(pause), lost }
}

/// The mitigation chosen for a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Its kind.
    pub mitigation: Mitigation,
    /// Expected duration of the hold.
    pub hold: Span,
    /// Buffer needed at most: the flow's rate for that time. Less with a reduced window.
    pub buffer: Size,
    /// Share of cwnd after the reduction, parts per million.
    pub cwnd_fraction_ppm: u32,
    /// Cost of the move without the mitigation, less its cost with it.
    pub saved_cost: Size,
}

impl Plan {
    /// No mitigation.
    pub const NOTHING: Plan = Plan {
        mitigation: Mitigation::None,
        hold: Span::ZERO,
        buffer: Size(0),
        cwnd_fraction_ppm: 1_000_000,
        saved_cost: Size(0),
    };
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
    /// Whether packets are held, or may still be.
    pub is_holding: bool,
}

/// Chooses the mitigation for the move of `case`, and forecasts the move with it: the one of least cost, then of
/// fewest lost and overtaken packets, then the simplest. `taken` are the bytes already expected in the moving router's
/// buffer.
pub fn plan(case: &Case, policy: &Policy, taken: Size) -> (Plan, Forecast) {
    let &Case { rate, paths, .. } = case;
    let with = |mitigation| (mitigation, forecast(case, mitigation, policy));
    let (_, plain) = with(Mitigation::None);
    if plain.overtaken_packets <= DUPTHRESH {
        return (Plan::NOTHING, plain);
    }
    let fits = |hold: &HoldConfig| rate.data_in(hold.delay).0.saturating_add(taken.0) <= hold.buffer.0;
    let hold = paths.allowed.hold_buffer.filter(fits);
    // Where the flow could send more over the shorter path, a reduced window would prevent it.
    let limited = matches!(plain.limit, Limit::Sender | Limit::Receiver) || plain.lost_packets > 0;
    let reduction = paths.allowed.cwnd_reduction.filter(|_| limited);
    let alone = hold.map(|_| with(Mitigation::HoldBuffer));
    let reduced =
        reduction.map(|_| with(if hold.is_some() { Mitigation::HoldAndReduceCwnd } else { Mitigation::CwndReduction }));
    let least = |(_, f): &(Mitigation, Forecast)| (f.cost, f.lost_packets, f.overtaken_packets);
    let choices = [Some((Mitigation::None, plain)), alone, reduced].into_iter().flatten();
    let (mitigation, assessment) = choices.min_by_key(least).expect("a move without a mitigation is one of them");
    let held = hold.filter(|_| mitigation.holds()).map_or(Span::ZERO, |hold| hold.delay);
    let plan = Plan {
        mitigation,
        hold: held,
        buffer: rate.data_in(held),
        cwnd_fraction_ppm: reduction
            .filter(|_| mitigation.reduces_cwnd())
            .map_or(1_000_000, |delay| cwnd_fraction_ppm(delay, paths)),
        saved_cost: Size(plain.cost.0.saturating_sub(assessment.cost.0)),
    };
    (plan, assessment)
}

/// Share of a window that remains when the RTT, queues included, shrinks by `delay`.
fn cwnd_fraction_ppm(delay: Span, paths: &Paths) -> u32 {
    let egress = paths.egress.map_or(Span::ZERO, |link| link.wait());
    let round_trip = (paths.ip_delay + paths.core.wait() + egress + paths.return_delay).0;
    // At most a million.
    (u128::from(round_trip.saturating_sub(delay.0)) * 1_000_000 / u128::from(round_trip.max(1))) as u32
}

#[cfg(test)]
mod tests;
