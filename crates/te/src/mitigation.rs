//! Which mitigation a move gets so that it hurts nobody, of those that the operator allows.
//!
//! With D the difference of the one-way delays, queues of the old way included, and r the flow's rate:
//!
//! - what comes after the move arrives in order when the moving router keeps it back for D; r D bytes are then in its buffer. Kept
//!   back too briefly, what is left on the old way is overtaken; too long, nothing arrives for the rest;
//! - what it keeps back is let go at a rate L, within r D / (L - r). A line after the merge that has c < L for the flow queues
//!   (L - c) / (L - r) of it;
//! - a window W = r RTT filled the old way; the new one holds r (RTT - D). Where the receiver's line limits the flow (scenario D, c = r), the r D
//!   bytes between come to its queue when they are let go as the lightpath sends. Let go at c they stay where they were kept back;
//! - a window cut to (RTT - D) / RTT leaves that line exactly full. The cut makes a pause of D in what the sender sends; when the move
//!   falls into the pause there is nothing to keep back but what waited before the sender's line.
//!
//! A window is trimmed only where it has to be: in A and C the shorter way lets the flow send more, and a trimmed one has to grow back to it.
//!
//! docs/hybrid-mitigations.md has what came of it in the cells of the hybrid paper (Moura, Pras, Fioreze and de Boer 2013).

use crate::forecast::{forecast, overflow, Case, Forecast, Limit, DUPLICATE_ACKS, FULL_PPM};
use crate::policy::Policy;
use crate::view::{LinkView, Ways};
use units::{Rate, Size, Span, Time};

/// What is done about a move.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mitigation {
    /// Nothing.
    None,
    /// The moving router keeps packets back.
    Hold,
    /// The sender cuts its window before.
    Trim,
    /// Both: the router holds what still comes.
    HoldAndTrim,
}

impl Mitigation {
    /// Whether the moving router keeps packets back.
    pub fn holds(self) -> bool {
        matches!(self, Mitigation::Hold | Mitigation::HoldAndTrim)
    }

    /// Whether the sender cuts its window.
    pub fn trims(self) -> bool {
        matches!(self, Mitigation::Trim | Mitigation::HoldAndTrim)
    }
}

/// What the operator allows for a move, and what those who act would go by now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Means {
    /// D as it is: propagation, a full packet's time on each line, and the old way's queue.
    pub difference: Span,
    /// What the moving router would do; None: it keeps nothing back.
    pub hold: Option<Keeping>,
    /// D as the sender would be told it; None: it cannot be told.
    pub trim: Option<Span>,
}

/// How a moving router would keep packets back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keeping {
    /// For how long: D as the router believes, its own queue included where it counts that.
    pub delay: Span,
    /// How fast it lets go at most: as the line behind it sends, or slower; with all that is let go for the same line.
    pub line: Rate,
    /// What else there is on that line.
    pub pacing: Pacing,
    /// By how much more than comes leaves it, parts per million; None: what `line` says.
    pub share_ppm: Option<u32>,
    /// What it can keep back for a lightpath.
    pub buffer: Size,
}

/// A line for which routers let go what they kept back, and what else goes over it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pacing {
    /// What is kept back for lines of the same number is let go in turn.
    pub number: usize,
    /// What it carried in the latest interval, where the IP way leads over it as well and what is let go may take no more of it than
    /// others leave; None: what is let go may take all of it.
    pub load: Option<Rate>,
    /// Rate of the other flows of which something is kept back for it.
    pub beside: Rate,
}

impl Keeping {
    /// Bytes that find no room after the merge when a flow of `rate`, and those that are let go with it, have been kept back for `hold`.
    fn overflow(&self, rate: Rate, hold: Span, ways: &Ways) -> u64 {
        let Some(egress) = ways.egress else { return 0 };
        let line = u128::from(self.line.0);
        let (leaves, come) = match self.share_ppm {
            Some(share) => {
                let faster = u128::from(rate.0) * (1_000_000 + u128::from(share)) / 1_000_000;
                (faster.min(line), rate)
            }
            None => (line, Rate(rate.0.saturating_add(self.pacing.beside.0))),
        };
        let others = u128::from(beyond_idle(egress.load.0.saturating_sub(come.0), egress.capacity).0);
        let excess = (others + leaves).saturating_sub(u128::from(egress.capacity.0));
        let gains = leaves.saturating_sub(u128::from(come.0));
        // A line that is no faster than the flow leaves the queue after it as it was.
        let grows = (u128::from(come.data_in(hold).0) * excess).checked_div(gains).unwrap_or(0);
        (grows as u64).saturating_sub(room_of(&egress))
    }

    /// When what a flow of `rate` leaves there from `now` on has gone; as late as can be where the line is no faster than what comes.
    pub(crate) fn empty_at(&self, now: Time, rate: Rate) -> Time {
        let come = Rate(rate.0.saturating_add(self.pacing.beside.0));
        let gains = self.line.0.saturating_sub(come.0);
        if gains == 0 {
            return Time::NEVER;
        }
        now + self.delay + Rate(gains).time_for(come.data_in(self.delay))
    }

    /// The same where flows of a rate of `beside` altogether are kept back for the same line, and one of `coming` will be: what others
    /// leave of the line, but not less than `promised`.
    pub(crate) fn among(self, beside: Rate, coming: Rate, promised: Rate) -> Keeping {
        let line = self.pacing.load.map_or(self.line, |load| {
            let others = beyond_idle(load.0.saturating_sub(beside.0).saturating_sub(coming.0), self.line);
            let left = self.line.0.saturating_sub(others.0).max(promised.0.saturating_add(coming.0));
            Rate(left.clamp(1, self.line.0.max(1)))
        });
        Keeping { line, pacing: Pacing { beside, ..self.pacing }, ..self }
    }
}

/// What others send over a line of `capacity` that seem to send `rate`. A flow's mean rate and a line's latest load differ by as much as a
/// line that is full leaves idle: then nobody else is there.
fn beyond_idle(rate: u64, capacity: Rate) -> Rate {
    let idle = u128::from(capacity.0) * u128::from(1_000_000 - FULL_PPM) / 1_000_000;
    Rate(if u128::from(rate) <= idle { 0 } else { rate })
}

fn room_of(link: &LinkView) -> u64 {
    link.queue_limit.0.saturating_sub(link.queue.0)
}

/// What a mitigation leaves of a move's harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Left {
    /// Time for which the old way still delivers while the new one does.
    pub overlap: Span,
    /// Time for which nothing arrives.
    pub pause: Span,
    /// Bytes that find no room at the merging router.
    pub lost: u64,
}

/// What `mitigation` leaves of the harm that `overlap` would do; a mitigation without its means does nothing.
pub(crate) fn left(mitigation: Mitigation, rate: Rate, overlap: Span, ways: &Ways) -> Left {
    let Means { difference, hold, trim } = ways.means;
    let hold = hold.filter(|_| mitigation.holds());
    let trim = trim.filter(|_| mitigation.trims());
    let by = |delay: Option<Span>| {
        delay.map(|delay| (difference.0.saturating_sub(delay.0), delay.0.saturating_sub(difference.0)))
    };
    let (held, cut) = (by(hold.map(|keeping| keeping.delay)), by(trim));
    let Some((uncovered, _)) = held.or(cut) else {
        return Left { overlap, pause: Span::ZERO, lost: overflow(rate, overlap, ways) };
    };
    let lost = match (hold, cut) {
        (_, Some((surplus, _))) => overflow(rate, Span(surplus), ways),
        (Some(keeping), None) => keeping.overflow(rate, keeping.delay, ways),
        (None, None) => 0,
    };
    // What waits before the sender's line comes to the router after the move: nothing but a hold keeps it back.
    let behind = ways.ingress.map_or(Span::ZERO, |link| link.wait()).min(difference);
    let uncovered = if held.is_some() { uncovered } else { uncovered.max(behind.0) };
    let pause = [held, cut].into_iter().flatten().map(|(_, longer)| longer).max().unwrap_or(0);
    Left { overlap: Span(uncovered), pause: Span(pause), lost }
}

/// What a move needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// What to do.
    pub mitigation: Mitigation,
    /// How long the moving router is expected to keep packets back.
    pub hold: Span,
    /// The buffer that this takes at most: the flow's rate for that time. With a trimmed window it is less.
    pub buffer: Size,
    /// Part of the window that is kept, parts per million.
    pub keep_ppm: u32,
    /// What the mitigation saves of the cost that the move would have without it.
    pub saves: Size,
}

impl Plan {
    /// To move the flow as it is.
    pub const NOTHING: Plan =
        Plan { mitigation: Mitigation::None, hold: Span::ZERO, buffer: Size(0), keep_ppm: 1_000_000, saves: Size(0) };
}

/// What was kept back for a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// For how long the moving router held: D as it knew it at the time of the move.
    pub hold: Span,
    /// Packets kept back.
    pub packets: u64,
    /// Most bytes at once.
    pub bytes: Size,
    /// Packets for which it had no room.
    pub dropped_packets: u64,
    /// Whether it keeps something back still, or is about to.
    pub goes_on: bool,
}

/// Chooses the mitigation for the move of `case`, and forecasts the move with it: the one that costs least, of equal ones the one that
/// loses and overtakes least, then the simplest. `taken` is what the moving router's buffer holds already.
pub fn plan(case: &Case, policy: &Policy, taken: Size) -> (Plan, Forecast) {
    let &Case { rate, ways, .. } = case;
    let with = |mitigation| (mitigation, forecast(case, mitigation, policy));
    let (_, plain) = with(Mitigation::None);
    if plain.overtaken_packets <= DUPLICATE_ACKS {
        return (Plan::NOTHING, plain);
    }
    let fits = |keeping: &Keeping| rate.data_in(keeping.delay).0.saturating_add(taken.0) <= keeping.buffer.0;
    let hold = ways.means.hold.filter(fits);
    // Where the flow could send more over the shorter way, a trimmed window takes that from it.
    let limited = matches!(plain.limit, Limit::Sender | Limit::Receiver) || plain.lost_packets > 0;
    let trim = ways.means.trim.filter(|_| limited);
    let alone = hold.map(|_| with(Mitigation::Hold));
    let trimmed = trim.map(|_| with(if hold.is_some() { Mitigation::HoldAndTrim } else { Mitigation::Trim }));
    let least = |(_, f): &(Mitigation, Forecast)| (f.cost, f.lost_packets, f.overtaken_packets);
    let choices = [Some((Mitigation::None, plain)), alone, trimmed].into_iter().flatten();
    let (mitigation, thought) = choices.min_by_key(least).expect("a move without a mitigation is one of them");
    let held = hold.filter(|_| mitigation.holds()).map_or(Span::ZERO, |keeping| keeping.delay);
    let plan = Plan {
        mitigation,
        hold: held,
        buffer: rate.data_in(held),
        keep_ppm: trim.filter(|_| mitigation.trims()).map_or(1_000_000, |delay| keep_ppm(delay, ways)),
        saves: Size(plain.cost.0.saturating_sub(thought.cost.0)),
    };
    (plan, thought)
}

/// Part of a window that is left when the round trip, queues included, becomes shorter by `delay`.
fn keep_ppm(delay: Span, ways: &Ways) -> u32 {
    let egress = ways.egress.map_or(Span::ZERO, |link| link.wait());
    let round_trip = (ways.ip_delay + ways.core.wait() + egress + ways.return_delay).0;
    // At most a million.
    (u128::from(round_trip.saturating_sub(delay.0)) * 1_000_000 / u128::from(round_trip.max(1))) as u32
}

#[cfg(test)]
mod tests;
