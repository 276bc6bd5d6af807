//! The move log: forecast and observed cost and gain of each move.

use crate::flow_key::FlowKey;
use crate::forecast::Forecast;
use crate::link_view::LinkView;
use crate::mitigation::HoldStats;
use crate::plan::Plan;
use units::{Rate, Size, Span, Time};

/// Reason for which a flow was moved, or was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// An elephant, to a lightpath.
    Elephant,
    /// Not moved: the forecast cost exceeded the gain.
    Refused,
    /// Back to IP: its rate fell below the return rate.
    Slow,
    /// Back to IP: it ended.
    Ended,
    /// Back to IP: preempted by a flow of higher priority.
    Preempted,
    /// Back to IP: the lightpath failed.
    Failed,
}

/// Observations before or after a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observation {
    /// Mean rate of the flow.
    pub rate: Rate,
    /// Its standard error by sampling; 0 when every packet is counted.
    pub rate_error: Rate,
    /// Mean load of the slowest link of the bypassed IP path.
    pub ip_load: Rate,
    /// Mean time that a packet waited there.
    pub ip_wait: Span,
}

/// A move to a lightpath, a return to IP, or a refused move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MoveRecord {
    /// Time at which it was decided.
    pub at: Time,
    /// The flow.
    pub flow: FlowKey,
    /// The lightpath to which or from which.
    pub lightpath: usize,
    /// The reason.
    pub reason: Reason,
    /// The forecast, of moves to a lightpath.
    pub forecast: Option<Forecast>,
    /// The mitigation that the forecast includes, of moves to a lightpath and of refusals; None where the operator
    /// allows none.
    pub plan: Option<Plan>,
    /// Counters of the hold buffer; None without a hold.
    pub hold_stats: Option<HoldStats>,
    /// In the latest intervals before it (four at most).
    pub before: Observation,
    /// In the intervals of the observation window, without the one in which the flow ended; None when there was no
    /// other.
    pub after: Option<Observation>,
    /// Intervals that were observed.
    pub observed: Span,
    /// Lowest rate of an interval of the observation window.
    pub min_rate: Option<Rate>,
    /// Largest deficit against the rate before the move, at the end of an interval of the observation window.
    pub cost: Option<Size>,
    /// Standard error of `cost` by sampling, of the rate before and after.
    pub cost_error: Option<Size>,
    /// Time at which the deficit was largest, after the move. None when there was no deficit.
    pub cost_at: Option<Span>,
    /// Packets of any flow lost at the egress of the merging router during the observation.
    pub lost_packets: Option<u64>,
    /// Bytes that went over the lightpath, of moves to one.
    pub offloaded: Size,
    /// Its standard error by sampling.
    pub offloaded_error: Size,
    /// `offloaded`, weighted.
    pub relief: Size,
    /// `relief`, and the bytes delivered beyond the rate before the move, until the flow left the lightpath. The
    /// deficit counts in `cost` alone: the net benefit is `gain` less `cost`.
    pub gain: Size,
    /// Time at which the flow left the lightpath.
    pub left_at: Option<Time>,
}

impl MoveRecord {
    /// A record without observations.
    pub(crate) fn new(
        at: Time,
        flow: FlowKey,
        lightpath: usize,
        reason: Reason,
        forecast: Option<Forecast>,
        before: Observation,
    ) -> MoveRecord {
        MoveRecord {
            at,
            flow,
            lightpath,
            reason,
            forecast,
            plan: None,
            hold_stats: None,
            before,
            after: None,
            observed: Span::ZERO,
            min_rate: None,
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

    /// The gain when the flow is `ahead` of its rate before. Fast and slow intervals balance: summing only intervals
    /// above the old rate would count variance and sampling error as gain.
    pub(crate) fn gained(&self, ahead: i128) -> Size {
        let lagged = i128::from(self.cost.map_or(0, |cost| cost.0));
        let beyond = u64::try_from((ahead + lagged).max(0)).unwrap_or(u64::MAX);
        Size(self.relief.0.saturating_add(beyond))
    }

    /// Returns whether a flow changed its path.
    pub fn is_move(&self) -> bool {
        self.reason != Reason::Refused
    }
}

/// Counts over the whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Flows moved to a lightpath.
    pub moves: u64,
    /// Of those, flows that sent nothing over the lightpath.
    pub wasted_moves: u64,
    /// Flows moved back.
    pub returns: u64,
    /// Of those, for a flow of higher priority.
    pub preemptions: u64,
    /// Moves that were refused.
    pub refusals: u64,
    /// Requested set-ups.
    pub set_ups: u64,
    /// Of those, released without having carried a flow.
    pub wasted_set_ups: u64,
    /// Lightpaths that failed.
    pub failures: u64,
    /// Bytes that went over lightpaths.
    pub offloaded: Size,
}

/// All records in the order of decisions, and the moves still under observation.
#[derive(Clone, Debug, Default)]
pub struct MoveLog {
    records: Vec<MoveRecord>,
    observed_moves: Vec<ObservedMove>,
}

/// A move whose after-effects are being observed.
#[derive(Clone, Debug)]
struct ObservedMove {
    record: usize,
    until: Time,
    intervals: u64,
    rates: u128,
    /// Sum of the squares of the rates' standard errors.
    squares: f64,
    loads: u128,
    waits: u128,
    /// Bytes behind the old rate; negative when ahead.
    behind: i128,
    /// The latest interval with packets, and the silent ones since: unconfirmed, because the flow may have ended
    /// within it.
    pending: Vec<Interval>,
    lost_before: Option<u64>,
}

/// Observations of one interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    end: Time,
    rate: Rate,
    rate_error: Rate,
    ip: LinkView,
    egress: Option<LinkView>,
}

impl ObservedMove {
    /// The flow goes on: adds the pending intervals to `record`.
    fn confirm(&mut self, record: &mut MoveRecord, interval: Span) {
        for seen in self.pending.drain(..) {
            self.intervals += 1;
            self.rates += u128::from(seen.rate.0);
            self.squares += seen.rate_error.0 as f64 * seen.rate_error.0 as f64;
            self.loads += u128::from(seen.ip.load.0);
            self.waits += u128::from(seen.ip.wait().0);
            let bytes = |rate: Rate| i128::from(rate.data_in(interval).0);
            self.behind += bytes(record.before.rate) - bytes(seen.rate);
            let mean = |sum: u128| (sum / u128::from(self.intervals)) as u64;
            record.after = Some(Observation {
                rate: Rate(mean(self.rates)),
                rate_error: Rate((self.squares.sqrt() / self.intervals as f64) as u64),
                ip_load: Rate(mean(self.loads)),
                ip_wait: Span(mean(self.waits)),
            });
            record.observed = seen.end.since(record.at);
            record.min_rate = Some(record.min_rate.map_or(seen.rate, |least| least.min(seen.rate)));
            let worst = record.cost.get_or_insert(Size(0));
            if self.behind > i128::from(worst.0) {
                *worst = Size(self.behind as u64);
                let before = self.intervals as f64 * record.before.rate_error.0 as f64;
                let error = Rate((self.squares + before * before).sqrt() as u64);
                record.cost_error = Some(error.data_in(interval));
                record.cost_at = Some(record.observed);
            }
            record.lost_packets = seen.egress.zip(self.lost_before).map(|(link, before)| link.dropped - before);
        }
    }
}

impl MoveLog {
    /// All records so far.
    pub fn records(&self) -> &[MoveRecord] {
        &self.records
    }

    pub(crate) fn record_mut(&mut self, index: usize) -> &mut MoveRecord {
        &mut self.records[index]
    }

    /// Adds a record and, where the flow moved, observes it until `until`; returns its index. `egress` is the link
    /// behind the merge.
    pub(crate) fn add(&mut self, record: MoveRecord, until: Time, egress: Option<LinkView>) -> usize {
        let index = self.records.len();
        // After its next move the flow's rate says nothing about this one.
        let flow = record.flow;
        let records = &self.records;
        self.observed_moves.retain(|w| records[w.record].flow != flow);
        if record.is_move() {
            self.observed_moves.push(ObservedMove {
                record: index,
                until,
                intervals: 0,
                rates: 0,
                squares: 0.0,
                loads: 0,
                waits: 0,
                behind: 0,
                pending: vec![],
                lost_before: egress.map(|link| link.dropped),
            });
        }
        self.records.push(record);
        index
    }

    /// An interval of length `interval` ends at `now`: `observe` returns a flow's rate in it with its standard error,
    /// the bypassed IP path and the egress; None when the flow is no longer known.
    pub(crate) fn handle_interval(
        &mut self,
        now: Time,
        interval: Span,
        observe: impl Fn(&MoveRecord) -> Option<(Rate, Rate, LinkView, Option<LinkView>)>,
    ) {
        for mut observed_move in std::mem::take(&mut self.observed_moves) {
            let record = &mut self.records[observed_move.record];
            let Some((rate, rate_error, ip, egress)) = observe(record) else { continue };
            if rate > Rate(0) {
                observed_move.confirm(record, interval);
            }
            if now <= observed_move.until {
                observed_move.pending.push(Interval { end: now, rate, rate_error, ip, egress });
                self.observed_moves.push(observed_move);
            }
        }
    }
}
