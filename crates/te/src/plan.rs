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

use crate::forecast::{forecast, Case, Forecast, DUPTHRESH};
use crate::limit::Limit;
use crate::mitigation::{HoldConfig, Mitigation};
use crate::policy::Policy;
use crate::view::Paths;
use units::{Size, Span};

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
    let fits = |hold: &HoldConfig| {
        hold.buffer.is_none_or(|buffer| rate.data_in(hold.delay).0.saturating_add(taken.0) <= buffer.0)
    };
    let hold = paths.allowed.hold_buffer.filter(fits);
    // If the flow could send more over the shorter path, a reduced window would prevent it.
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
