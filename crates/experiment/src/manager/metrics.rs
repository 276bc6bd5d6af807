//! A manager's actions in a run, as metrics with names and units.

use crate::metric::{Metric, Metrics};
use te::{Forecast, HoldStats, Limit, Manager, Mitigation, MoveRecord, Observation, Plan, Reason};
use units::{Span, Time};

/// A manager's actions in a run.
#[derive(Clone, Debug, Default)]
pub struct ManagerOutcome {
    /// Counts over the run.
    pub metrics: Metrics,
    /// Of each lightpath, in the order of the spec.
    pub lightpaths: Vec<Metrics>,
    /// Each move and refusal, in order.
    pub move_log: Vec<Metrics>,
    /// A row per interval and lightpath.
    pub timeline: Timeline,
}

/// Columns of the manager's timeline.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// End of the interval, s since the run began
    pub time_s: Vec<f64>,
    /// index of the lightpath
    pub lightpath: Vec<i32>,
    /// 0 down, 1 setting up, 2 up, 3 releasing
    pub state: Vec<i32>,
    /// flows on it
    pub flows: Vec<i32>,
    /// what they sent, as observed, bit/s
    pub carried_bps: Vec<u64>,
    /// load of the slowest link of the bypassed IP way, bit/s
    pub ip_bps: Vec<u64>,
    /// time that a packet waited there on average in the interval, s
    pub ip_wait_s: Vec<f64>,
    /// packets lost there since the start
    pub ip_dropped_packets: Vec<u64>,
}

/// Returns the outcome of `manager` since `begin`, with the `names` of its `flows` and of its `lightpaths`.
pub fn outcome(manager: &Manager, begin: Time, names: &[&str], lightpaths: &[&str], flows: usize) -> ManagerOutcome {
    let move_log = manager.move_log().records();
    let name = |entry: &MoveRecord| names[entry.flow as usize].to_owned();
    let lightpath = |index: usize| lightpaths[index].to_owned();
    let mut timeline = Timeline::default();
    for row in manager.samples() {
        timeline.time_s.push(row.time.since(begin).as_secs_f64());
        timeline.lightpath.push(row.lightpath as i32);
        timeline.state.push(row.state as i32);
        timeline.flows.push(row.flows as i32);
        timeline.carried_bps.push(row.carried.0);
        timeline.ip_bps.push(row.ip.load.0);
        timeline.ip_wait_s.push(row.ip.wait().as_secs_f64());
        timeline.ip_dropped_packets.push(row.ip.dropped);
    }
    ManagerOutcome {
        metrics: totals(manager, flows),
        lightpaths: (0..lightpaths.len()).map(|i| of_lightpath(manager, i, lightpath(i))).collect(),
        move_log: move_log.iter().map(|e| of_entry(e, begin, name(e), lightpath(e.lightpath))).collect(),
        timeline,
    }
}

fn totals(manager: &Manager, flows: usize) -> Metrics {
    let totals = manager.totals();
    [
        ("moves", totals.moves),
        ("wasted_moves", totals.wasted_moves),
        ("returns", totals.returns),
        ("preemptions", totals.preemptions),
        ("refusals", totals.refusals),
        ("set_ups", totals.set_ups),
        ("wasted_set_ups", totals.wasted_set_ups),
        ("failures", totals.failures),
        ("offloaded_bytes", totals.offloaded.0),
        ("evictions", manager.table().evictions()),
        ("flows", flows as u64),
    ]
    .map(|(name, value)| (name, Metric::Integer(value)))
    .into()
}

fn of_lightpath(manager: &Manager, index: usize, name: String) -> Metrics {
    let mut metrics = Metrics::from([("name", Metric::Text(name))]);
    let sides = [("ip_load_idle_bps", "ip_wait_idle_s"), ("ip_load_carrying_bps", "ip_wait_carrying_s")];
    for ((load, wait), seen) in sides.into_iter().zip(manager.bypassed(index)) {
        if let Some((rate, span)) = seen {
            metrics.insert(load, Metric::Integer(rate.0));
            metrics.insert(wait, Metric::Real(span.as_secs_f64()));
        }
    }
    metrics
}

fn of_entry(entry: &MoveRecord, begin: Time, flow: String, lightpath: String) -> Metrics {
    let mut metrics = Metrics::from([
        ("at_s", Metric::Real(entry.at.since(begin).as_secs_f64())),
        ("flow", Metric::Text(flow)),
        ("lightpath", Metric::Text(lightpath)),
        ("reason", Metric::Text(reason(entry.reason).to_owned())),
    ]);
    let mut integer = |name, value: u64| drop(metrics.insert(name, Metric::Integer(value)));
    if let Some(f) = &entry.forecast {
        integer("forecast_rate_bps", f.rate_after.0);
        integer("forecast_cost_bytes", f.cost.0);
        integer("forecast_gain_bytes", f.gain.0);
        integer("forecast_overtaken_packets", f.overtaken_packets);
        integer("forecast_lost_packets", f.lost_packets);
    }
    if let Some(HoldStats { packets, bytes, dropped_packets, .. }) = entry.hold_stats {
        integer("held_packets", packets);
        integer("held_bytes", bytes.0);
        integer("held_dropped_packets", dropped_packets);
    }
    if let Some(plan) = entry.plan {
        integer("mitigation_saves_bytes", plan.saved_cost.0);
        if plan.mitigation.holds() {
            integer("forecast_held_bytes", plan.buffer.0);
        }
    }
    if entry.reason == Reason::Elephant {
        integer("offloaded_bytes", entry.offloaded.0);
        integer("gain_bytes", entry.gain.0);
    }
    if let Some(least) = entry.min_rate {
        integer("least_rate_bps", least.0);
    }
    if let Some(cost) = entry.cost {
        integer("cost_bytes", cost.0);
    }
    // Without sampling, counts have no error.
    let errors = [
        ("rate_before_error_bps", entry.before.rate_error.0),
        ("rate_after_error_bps", entry.after.as_ref().map_or(0, |after| after.rate_error.0)),
        ("cost_error_bytes", entry.cost_error.map_or(0, |error| error.0)),
        ("offloaded_error_bytes", entry.offloaded_error.0),
    ];
    for (name, error) in errors.into_iter().filter(|&(_, error)| error > 0) {
        integer(name, error);
    }
    if let Some(lost) = entry.lost_packets {
        integer("lost_packets", lost);
    }
    let seen = |seen: &Observation, names: [&'static str; 3]| {
        [
            (names[0], Metric::Integer(seen.rate.0)),
            (names[1], Metric::Integer(seen.ip_load.0)),
            (names[2], Metric::Real(seen.ip_wait.as_secs_f64())),
        ]
    };
    metrics.extend(seen(&entry.before, ["rate_before_bps", "ip_load_before_bps", "ip_wait_before_s"]));
    if let Some(after) = &entry.after {
        metrics.extend(seen(after, ["rate_after_bps", "ip_load_after_bps", "ip_wait_after_s"]));
        metrics.insert("watched_s", Metric::Real(entry.observed.as_secs_f64()));
    }
    if let Some(Forecast { limit, overlap, min_rate_ppm: least_ppm, .. }) = entry.forecast {
        metrics.insert("limit", Metric::Text(letter(limit).to_owned()));
        metrics.insert("forecast_overlap_s", Metric::Real(overlap.as_secs_f64()));
        metrics.insert("forecast_least_share", Metric::Real(f64::from(least_ppm) / 1e6));
    }
    if let Some(plan) = entry.plan {
        metrics.extend(of_plan(&plan, entry.forecast.map_or(Span::ZERO, |thought| thought.pause)));
    }
    if let Some(HoldStats { hold, .. }) = entry.hold_stats {
        metrics.insert("hold_s", Metric::Real(hold.as_secs_f64()));
    }
    if let Some(at) = entry.cost_at {
        metrics.insert("cost_at_s", Metric::Real(at.as_secs_f64()));
    }
    if let Some(at) = entry.left_at {
        metrics.insert("left_at_s", Metric::Real(at.since(begin).as_secs_f64()));
    }
    metrics
}

fn of_plan(plan: &Plan, pause: Span) -> Metrics {
    let name = match plan.mitigation {
        Mitigation::None => "none",
        Mitigation::HoldBuffer => "hold_buffer",
        Mitigation::CwndReduction => "cwnd_reduction",
        Mitigation::HoldAndReduceCwnd => "hold_buffer, cwnd_reduction",
    };
    let mut metrics = Metrics::from([("mitigation", Metric::Text(name.to_owned()))]);
    if plan.mitigation.holds() {
        metrics.insert("forecast_hold_s", Metric::Real(plan.hold.as_secs_f64()));
    }
    if plan.mitigation.reduces_cwnd() {
        metrics.insert("forecast_cwnd_fraction", Metric::Real(f64::from(plan.cwnd_fraction_ppm) / 1e6));
    }
    if plan.mitigation != Mitigation::None {
        metrics.insert("forecast_pause_s", Metric::Real(pause.as_secs_f64()));
    }
    metrics
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Elephant => "elephant",
        Reason::Refused => "refused",
        Reason::Slow => "slow",
        Reason::Ended => "over",
        Reason::Preempted => "preempted",
        Reason::Failed => "failed",
    }
}

/// The paper's scenario that a limit makes.
fn letter(limit: Limit) -> &'static str {
    match limit {
        Limit::Window => "A",
        Limit::Sender => "B",
        Limit::Core => "C",
        Limit::Receiver => "D",
    }
}
