//! Prints the SHA-256 of what runs gave, one line each: `cargo run -p experiment --example digest -- SPEC.json ...`.
//!
//! `tests/determinism/digest.py` computes the same of what Python gets: the form is described there. `make golden`
//! compares the two, on two kinds of processor. With `--engines` before the files it runs each by both engines as well,
//! and a difference is an error (`make soak`).

#[path = "../tests/common/engines.rs"]
mod engines;

use experiment::{FlowSeries, LinkSeries, ManagerOutcome, Metric, Metrics, Outcome};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    let both = std::env::args().nth(1).is_some_and(|first| first == "--engines");
    for path in std::env::args().skip(1 + usize::from(both)) {
        match run(&path, both) {
            Ok(outcome) => println!("{:x}  {path}", Sha256::digest(of_outcome(outcome).text())),
            Err(error) => {
                eprintln!("{path}: {error}");
                status = ExitCode::from(2);
            }
        }
    }
    status
}

fn run(path: &str, by_both: bool) -> Result<Outcome, Box<dyn std::error::Error>> {
    let spec: spec::RunSpec = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    if by_both {
        let compared = engines::compare(&spec)?;
        return match compared.differences.first() {
            Some(difference) => Err(format!("the engines differ: {difference}").into()),
            None => Ok(compared.outcome),
        };
    }
    Ok(experiment::simulate(&spec, &mut |_| std::ops::ControlFlow::Continue(()))?)
}

/// A value as a digest sees it.
enum Value {
    Absent,
    Integer(i128),
    Real(f64),
    Text(String),
    List(Vec<Value>),
    Map(BTreeMap<&'static str, Value>),
}

impl Value {
    fn list<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Value {
        Value::List(values.into_iter().map(Into::into).collect())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, to: &mut String) {
        match self {
            Value::Absent => to.push('-'),
            Value::Integer(value) => to.push_str(&value.to_string()),
            Value::Real(value) if value.is_nan() => to.push('-'),
            Value::Real(value) => to.push_str(&format!("x{:016x}", value.to_bits())),
            Value::Text(value) => to.push_str(&format!("{}:{value}", value.len())),
            Value::List(values) => {
                to.push('[');
                for value in values {
                    value.write(to);
                    to.push(',');
                }
                to.push(']');
            }
            Value::Map(values) => {
                to.push('{');
                for (name, value) in values {
                    to.push_str(name);
                    to.push('=');
                    value.write(to);
                    to.push(',');
                }
                to.push('}');
            }
        }
    }
}

macro_rules! integers {
    ($($kind:ty)*) => {
        $(impl From<$kind> for Value { fn from(value: $kind) -> Value { Value::Integer(value.into()) } })*
    };
}
integers!(u64 u32 i32);

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Real(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl From<Option<f64>> for Value {
    fn from(value: Option<f64>) -> Value {
        value.map_or(Value::Absent, Value::Real)
    }
}

impl From<Metrics> for Value {
    fn from(metrics: Metrics) -> Value {
        let of = |metric| match metric {
            Metric::Integer(value) => value.into(),
            Metric::Real(value) => value.into(),
            Metric::Text(value) => value.into(),
            Metric::Table(values) => Value::list(values),
        };
        Value::Map(metrics.into_iter().map(|(name, metric)| (name, of(metric))).collect())
    }
}

fn of_outcome(outcome: Outcome) -> Value {
    Value::Map(BTreeMap::from([
        ("background", Value::list(outcome.background)),
        ("short_flows", Value::list(outcome.short_flows)),
        ("flow_groups", Value::list(outcome.entries)),
        ("extrapolation", outcome.extrapolation.map_or(Value::Absent, Into::into)),
        ("flow_series", of_flows(outcome.flow_series)),
        ("flows", Value::list(outcome.flows)),
        ("event_times_s", Value::list(outcome.event_times_s)),
        ("link_series", of_links(outcome.link_series)),
        ("links", Value::list(outcome.links)),
        ("manager", outcome.managed.map_or(Value::Absent, of_manager)),
        ("metrics", outcome.metrics.into()),
        ("notes", Value::list(outcome.notes)),
        ("cwnd_reductions", Value::list(outcome.window_reductions)),
    ]))
}

fn of_manager(managed: ManagerOutcome) -> Value {
    let rows = managed.timeline;
    let timeline = BTreeMap::from([
        ("carried_bps", Value::list(rows.carried_bps)),
        ("flows", Value::list(rows.flows)),
        ("ip_bps", Value::list(rows.ip_bps)),
        ("ip_dropped_packets", Value::list(rows.ip_dropped_packets)),
        ("ip_wait_s", Value::list(rows.ip_wait_s)),
        ("lightpath", Value::list(rows.lightpath)),
        ("state", Value::list(rows.state)),
        ("time_s", Value::list(rows.time_s)),
    ]);
    Value::Map(BTreeMap::from([
        ("move_log", Value::list(managed.move_log)),
        ("lightpaths", Value::list(managed.lightpaths)),
        ("metrics", managed.metrics.into()),
        ("timeline", Value::Map(timeline)),
    ]))
}

/// Columns that a run has no use for are not there, as in Python.
fn of_flows(series: FlowSeries) -> Value {
    let mut columns = BTreeMap::from([
        ("cwnd_packets", Value::list(series.cwnd_packets)),
        ("flow", Value::list(series.flow)),
        ("goodput_bps", Value::list(series.goodput_bps)),
        ("in_flight_bytes", Value::list(series.in_flight_bytes)),
        ("lag_bytes", Value::list(series.lag_bytes)),
        ("lag_s", Value::list(series.lag_s)),
        ("retransmitted_segments", Value::list(series.retransmitted_segments)),
        ("srtt_s", Value::list(series.srtt_s)),
        ("ssthresh_packets", Value::list(series.ssthresh_packets.into_iter().map(|packets| packets.map(f64::from)))),
        ("time_s", Value::list(series.time_s)),
    ]);
    if !series.duplicate_acks.is_empty() {
        columns.insert("duplicate_acks", Value::list(series.duplicate_acks));
    }
    let udt = series.udt;
    if !udt.sending_rate_bps.is_empty() {
        columns.insert("lost_packets", Value::list(udt.lost_packets));
        columns.insert("sending_rate_bps", Value::list(udt.sending_rate_bps));
    }
    let reverse = series.reverse;
    if !reverse.cwnd_packets.is_empty() {
        columns.insert("reverse_cwnd_packets", Value::list(reverse.cwnd_packets));
        columns.insert("reverse_goodput_bps", Value::list(reverse.goodput_bps));
        columns.insert("reverse_in_flight_bytes", Value::list(reverse.in_flight_bytes));
        columns.insert("reverse_retransmitted_segments", Value::list(reverse.retransmitted_segments));
    }
    Value::Map(columns)
}

fn of_links(series: LinkSeries) -> Value {
    Value::Map(BTreeMap::from([
        ("delivered_bytes", Value::list(series.delivered_bytes)),
        ("dropped_packets", Value::list(series.dropped_packets)),
        ("link", Value::list(series.link)),
        ("queue_bytes", Value::list(series.queue_bytes)),
        ("queue_packets", Value::list(series.queue_packets)),
        ("time_s", Value::list(series.time_s)),
    ]))
}
