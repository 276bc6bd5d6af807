//! Metrics of the windows of a measurement: a row for the run and one for each connection.

use crate::counters::{MeasuredRun, MeasuredWindow, WindowCounters};
use crate::metric::{Metric, Metrics};
use crate::series::FlowSeries;
use spec::{RunSpec, WindowSpec};
use units::{Span, Time};

/// Returns the rows of all windows: of each that of the run, then those of the connections, which say their `flow`.
pub fn of_windows(spec: &RunSpec, measured: &MeasuredRun) -> Vec<Metrics> {
    let mut rows = vec![];
    for (index, window) in spec.measure.windows.iter().enumerate() {
        let found = match &measured.windows {
            Some(windows) => windows[index].clone(),
            None => of_series(spec, window, measured),
        };
        let row = |counters: &[WindowCounters]| {
            let mut row = Metrics::from([("name", Metric::Text(window.name.clone()))]);
            if let Some((from, to)) = found.interval {
                row.insert("from_s", Metric::Real(from.as_secs_f64()));
                row.insert("to_s", Metric::Real(to.as_secs_f64()));
                insert(&mut row, counters, to.since(from));
            }
            row
        };
        rows.push(row(&found.flows));
        for (flow, counters) in spec.flows.iter().zip(&found.flows) {
            let mut of_flow = row(std::slice::from_ref(counters));
            of_flow.insert("flow", Metric::Text(flow.name.clone()));
            rows.push(of_flow);
        }
    }
    rows
}

fn insert(row: &mut Metrics, flows: &[WindowCounters], length: Span) {
    let sum = |of: fn(&WindowCounters) -> Option<u64>| flows.iter().map(of).sum::<Option<u64>>();
    if let Some(bytes) = sum(|flow| flow.received_bytes) {
        row.insert("delivered_bytes", Metric::Integer(bytes));
        if length > Span::ZERO {
            row.insert("goodput_bps", Metric::Real(bytes as f64 * 8.0 / length.as_secs_f64()));
        }
    }
    for (name, value) in [
        ("retransmitted_segments", sum(|flow| flow.retransmitted_segments)),
        ("dropped_packets", sum(|flow| flow.dropped_packets)),
        ("timeouts", sum(|flow| flow.timeouts)),
        ("cwnd_reductions", sum(|flow| flow.cwnd_reductions)),
    ] {
        if let Some(value) = value {
            row.insert(name, Metric::Integer(value));
        }
    }
    let (samples, sum) = flows.iter().fold((0, 0), |(n, sum), flow| (n + flow.cwnd.0, sum + flow.cwnd.1));
    if samples > 0 {
        row.insert("cwnd_mean_packets", Metric::Real(sum as f64 / samples as f64));
    }
}

/// Returns a window read from the series: backends whose senders are not the simulator's see their counters no oftener.
fn of_series(spec: &RunSpec, window: &WindowSpec, measured: &MeasuredRun) -> MeasuredWindow {
    let begin = window.event.map_or(Some(Time::ZERO), |event| measured.event_times[event]);
    let interval = begin.map(|begin| (begin + Span(window.from_ns), (begin + Span(window.to_ns)).min(measured.end)));
    let Some((from, to)) = interval.filter(|&(from, to)| from < to) else { return MeasuredWindow::default() };
    MeasuredWindow { interval, flows: counters_of(&measured.flow_series, spec.flows.len(), from, to) }
}

/// Returns the counters of each of `flows` connections between two times: one pass over the rows.
fn counters_of(series: &FlowSeries, flows: usize, from: Time, to: Time) -> Vec<WindowCounters> {
    let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
    let mut found = vec![WindowCounters::default(); flows];
    let (mut again_before, mut goodput) = (vec![0; flows], vec![0.0; flows]);
    for (row, &time) in series.time_s.iter().enumerate().filter(|&(_, &time)| time <= to) {
        let (flow, again) = (series.flow[row] as usize, series.retransmitted_segments[row]);
        if time <= from {
            again_before[flow] = again;
            continue;
        }
        let counters = &mut found[flow];
        counters.cwnd.0 += 1;
        counters.cwnd.1 += u64::from(series.cwnd_packets[row]);
        counters.retransmitted_segments = Some(again.saturating_sub(again_before[flow]));
        goodput[flow] += series.goodput_bps[row];
        counters.received_bytes = Some((goodput[flow] / counters.cwnd.0 as f64 * (to - from) / 8.0) as u64);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::FlowRow;

    #[test]
    fn a_window_of_a_series_has_the_rows_after_its_beginning() {
        let mut series = FlowSeries::default();
        for second in 1..=4 {
            for flow in 0..2 {
                series.push(FlowRow {
                    time: Time::ZERO + Span::from_millis(1000 * second),
                    flow,
                    cwnd_packets: 10 * second as u32,
                    ssthresh_packets: None,
                    srtt: None,
                    in_flight_bytes: 0,
                    goodput_bps: 8e3 * second as f64,
                    retransmitted_segments: second * (1 + flow as u64),
                    duplicate_acks: None,
                    lag: Span::ZERO,
                    lag_bytes: 0,
                });
            }
        }
        let at = |second: u64| Time::ZERO + Span::from_millis(1000 * second);
        let [first, second, none] = &counters_of(&series, 3, at(1), at(3))[..] else { panic!("three flows") };
        assert_eq!((first.received_bytes, first.cwnd), (Some(5000), (2, 50)));
        assert_eq!((first.retransmitted_segments, second.retransmitted_segments), (Some(2), Some(4)));
        assert_eq!(*none, WindowCounters::default());
    }
}
