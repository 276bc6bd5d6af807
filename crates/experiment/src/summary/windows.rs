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
    let flows = (0..spec.flows.len()).map(|flow| counters_of(&measured.flow_series, flow as i32, from, to)).collect();
    MeasuredWindow { interval, flows }
}

fn counters_of(series: &FlowSeries, flow: i32, from: Time, to: Time) -> WindowCounters {
    let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
    let rows = || (0..series.flow.len()).filter(|&row| series.flow[row] == flow && series.time_s[row] <= to);
    let inside = || rows().filter(|&row| series.time_s[row] > from);
    let samples = inside().count() as u64;
    if samples == 0 {
        return WindowCounters::default();
    }
    let goodput = inside().map(|row| series.goodput_bps[row]).sum::<f64>() / samples as f64;
    let before = rows().take_while(|&row| series.time_s[row] <= from).last();
    let again = |row: usize| series.retransmitted_segments[row];
    WindowCounters {
        received_bytes: Some((goodput * (to - from) / 8.0) as u64),
        retransmitted_segments: rows().last().map(|row| again(row).saturating_sub(before.map_or(0, again))),
        cwnd: (samples, inside().map(|row| u64::from(series.cwnd_packets[row])).sum()),
        ..WindowCounters::default()
    }
}
