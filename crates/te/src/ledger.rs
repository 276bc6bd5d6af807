//! The ledger: what each move was thought to cost and gain, and what it did.

use crate::forecast::Forecast;
use crate::mitigation::{Held, Plan};
use crate::view::LinkView;
use crate::FlowKey;
use units::{Rate, Size, Span, Time};

/// Why a flow was moved, or was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// An elephant, to a lightpath.
    Elephant,
    /// Not moved: it would have cost more than it gained.
    Refused,
    /// Back: it had become slow.
    Slow,
    /// Back: nothing was seen of it any more.
    Over,
    /// Back: another one of a higher priority took its place.
    Preempted,
    /// Back: the lightpath failed.
    Failed,
}

/// What was observed about a move on one side of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Mean rate of the flow.
    pub rate: Rate,
    /// Its standard error by sampling; 0 when every packet is counted.
    pub rate_error: Rate,
    /// Mean load of the slowest link of the bypassed IP way.
    pub ip_load: Rate,
    /// Mean time that a packet waited there.
    pub ip_wait: Span,
}

/// One move, there or back, or one that was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// When it was decided.
    pub at: Time,
    /// The flow.
    pub flow: FlowKey,
    /// The lightpath to which or from which.
    pub lightpath: usize,
    /// Why.
    pub reason: Reason,
    /// What was forecast, of moves to a lightpath.
    pub forecast: Option<Forecast>,
    /// The mitigation, of moves to a lightpath and of refusals; None where the operator allows none. The forecast is of the move with it.
    pub plan: Option<Plan>,
    /// What the moving router kept back; None where it did not hold.
    pub held: Option<Held>,
    /// In the latest intervals before it (four at most).
    pub before: Seen,
    /// In the intervals of the watch after it, without the one in which the flow ended; None when there was no other.
    pub after: Option<Seen>,
    /// Intervals that were watched.
    pub watched: Span,
    /// Least rate of an interval of the watch.
    pub least_rate: Option<Rate>,
    /// Most by which the flow lagged behind its rate before at the end of an interval of the watch: what the move cost it, as far
    /// as it is the move's doing.
    pub cost: Option<Size>,
    /// Standard error of `cost` by sampling, of the rate before and after.
    pub cost_error: Option<Size>,
    /// When that was, after the move: from then on it made up for it. None when it cost nothing.
    pub cost_at: Option<Span>,
    /// Packets lost at the egress of the merging router while it was watched, whosesoever they were.
    pub lost_packets: Option<u64>,
    /// Bytes that went over the lightpath, of moves to one.
    pub offloaded: Size,
    /// Its standard error by sampling.
    pub offloaded_error: Size,
    /// `offloaded` at its worth.
    pub relief: Size,
    /// What was gained until the flow left the lightpath: `relief`, and what it delivered beyond its rate before, less what it lacked on
    /// the way; `cost` has that already, so that less the cost it is what the move brought.
    pub gain: Size,
    /// When it left it.
    pub left_at: Option<Time>,
}

impl Entry {
    /// One of which nothing has been observed yet.
    pub(crate) fn new(
        at: Time,
        flow: FlowKey,
        lightpath: usize,
        reason: Reason,
        forecast: Option<Forecast>,
        before: Seen,
    ) -> Entry {
        Entry {
            at,
            flow,
            lightpath,
            reason,
            forecast,
            plan: None,
            held: None,
            before,
            after: None,
            watched: Span::ZERO,
            least_rate: None,
            cost: None,
            cost_error: None,
            cost_at: None,
            lost_packets: None,
            offloaded: Size(0),
            offloaded_error: Size(0),
            relief: Size(0),
            gain: Size(0),
            left_at: None,
        }
    }

    /// What was gained when the flow is `ahead` of its rate before. Fast and slow intervals balance: a sum of what is above the old rate
    /// alone would gain from a rate that merely varies, or that samples tell.
    pub(crate) fn gained(&self, ahead: i128) -> Size {
        let lagged = i128::from(self.cost.map_or(0, |cost| cost.0));
        let beyond = u64::try_from((ahead + lagged).max(0)).unwrap_or(u64::MAX);
        Size(self.relief.0.saturating_add(beyond))
    }

    /// Whether a flow changed its way.
    pub fn is_move(&self) -> bool {
        self.reason != Reason::Refused
    }
}

/// Counts over the whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Flows moved to a lightpath.
    pub moves: u64,
    /// Of those, of which nothing came over it: they had ended before, or came back too soon.
    pub wasted_moves: u64,
    /// Flows moved back.
    pub returns: u64,
    /// Of those, for one of higher priority.
    pub preemptions: u64,
    /// Moves that were refused.
    pub refusals: u64,
    /// Lightpaths asked for.
    pub set_ups: u64,
    /// Of those, given back without having carried a flow.
    pub wasted_set_ups: u64,
    /// Lightpaths that failed.
    pub failures: u64,
    /// Bytes that went over lightpaths.
    pub offloaded: Size,
}

/// All entries in the order of decisions, and those that are still watched.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    watches: Vec<Watch>,
}

/// A move whose after-effects are being observed.
#[derive(Clone, Debug)]
struct Watch {
    entry: usize,
    until: Time,
    intervals: u64,
    rates: u128,
    /// Sum of the squares of the rates' standard errors.
    squares: f64,
    loads: u128,
    waits: u128,
    /// Bytes behind the old rate; negative when ahead.
    behind: i128,
    /// The latest interval in which something was seen, and the silent ones since: not put down yet, because the flow may have
    /// ended within it.
    held: Vec<Interval>,
    lost_before: Option<u64>,
}

/// What an interval of a watch showed.
#[derive(Clone, Copy, Debug)]
struct Interval {
    end: Time,
    rate: Rate,
    rate_error: Rate,
    ip: LinkView,
    egress: Option<LinkView>,
}

impl Watch {
    /// Puts the intervals held down in `entry`: the flow goes on.
    fn put_down(&mut self, entry: &mut Entry, interval: Span) {
        for seen in self.held.drain(..) {
            self.intervals += 1;
            self.rates += u128::from(seen.rate.0);
            self.squares += seen.rate_error.0 as f64 * seen.rate_error.0 as f64;
            self.loads += u128::from(seen.ip.load.0);
            self.waits += u128::from(seen.ip.wait().0);
            let bytes = |rate: Rate| i128::from(rate.data_in(interval).0);
            self.behind += bytes(entry.before.rate) - bytes(seen.rate);
            let mean = |sum: u128| (sum / u128::from(self.intervals)) as u64;
            entry.after = Some(Seen {
                rate: Rate(mean(self.rates)),
                rate_error: Rate((self.squares.sqrt() / self.intervals as f64) as u64),
                ip_load: Rate(mean(self.loads)),
                ip_wait: Span(mean(self.waits)),
            });
            entry.watched = seen.end.since(entry.at);
            entry.least_rate = Some(entry.least_rate.map_or(seen.rate, |least| least.min(seen.rate)));
            let worst = entry.cost.get_or_insert(Size(0));
            if self.behind > i128::from(worst.0) {
                *worst = Size(self.behind as u64);
                let before = self.intervals as f64 * entry.before.rate_error.0 as f64;
                let error = Rate((self.squares + before * before).sqrt() as u64);
                entry.cost_error = Some(error.data_in(interval));
                entry.cost_at = Some(entry.watched);
            }
            entry.lost_packets = seen.egress.zip(self.lost_before).map(|(link, before)| link.dropped - before);
        }
    }
}

impl Ledger {
    /// All entries so far.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn entry(&mut self, index: usize) -> &mut Entry {
        &mut self.entries[index]
    }

    /// Adds an entry and, where the flow moved, watches it until `until`; returns its place. `egress` is the link behind the merge.
    pub(crate) fn add(&mut self, entry: Entry, until: Time, egress: Option<LinkView>) -> usize {
        let index = self.entries.len();
        // What a flow does after its next move is not the first one's doing.
        let flow = entry.flow;
        let entries = &self.entries;
        self.watches.retain(|w| entries[w.entry].flow != flow);
        if entry.is_move() {
            self.watches.push(Watch {
                entry: index,
                until,
                intervals: 0,
                rates: 0,
                squares: 0.0,
                loads: 0,
                waits: 0,
                behind: 0,
                held: vec![],
                lost_before: egress.map(|link| link.dropped),
            });
        }
        self.entries.push(entry);
        index
    }

    /// An interval of length `interval` ends at `now`: `observe` tells a flow's rate in it and its standard error, the bypassed IP way and the egress, None
    /// when nothing is known of the flow any more.
    pub(crate) fn handle_interval(
        &mut self,
        now: Time,
        interval: Span,
        observe: impl Fn(&Entry) -> Option<(Rate, Rate, LinkView, Option<LinkView>)>,
    ) {
        for mut watch in std::mem::take(&mut self.watches) {
            let entry = &mut self.entries[watch.entry];
            let Some((rate, rate_error, ip, egress)) = observe(entry) else { continue };
            if rate > Rate(0) {
                watch.put_down(entry, interval);
            }
            if now <= watch.until {
                watch.held.push(Interval { end: now, rate, rate_error, ip, egress });
                self.watches.push(watch);
            }
        }
    }
}
