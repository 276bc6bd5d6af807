//! An outcome as JSON, from the agent that made it to whoever keeps it.

use experiment::{FlowSeries, Metric, Metrics, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Metrics by name, as JSON brings them.
pub type NamedMetrics = BTreeMap<String, Metric>;

/// An outcome without its series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeRecord {
    /// Of the whole run.
    pub metrics: NamedMetrics,
    /// Of each connection.
    pub flows: Vec<NamedMetrics>,
    /// Of each workload that several connections share.
    pub flow_groups: Vec<NamedMetrics>,
    /// Of each link.
    pub links: Vec<NamedMetrics>,
    /// Of each background source.
    pub background: Vec<NamedMetrics>,
    /// Notes that a reader of the metrics needs.
    pub notes: Vec<String>,
    /// Time of each event, s; None: it did not happen.
    pub event_times_s: Vec<Option<f64>>,
    /// Of each window of the measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<NamedMetrics>,
}

impl OutcomeRecord {
    /// Takes an outcome apart: all but the series, and those of flows.
    pub fn split(outcome: Outcome) -> (OutcomeRecord, FlowSeries) {
        let named = |metrics: Metrics| metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let all = |list: Vec<Metrics>| list.into_iter().map(named).collect();
        let record = OutcomeRecord {
            metrics: named(outcome.metrics),
            flows: all(outcome.flows),
            flow_groups: all(outcome.entries),
            links: all(outcome.links),
            background: all(outcome.background),
            notes: outcome.notes,
            event_times_s: outcome.event_times_s,
            windows: all(outcome.windows),
        };
        (record, outcome.flow_series)
    }
}
