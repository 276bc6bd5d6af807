//! The one place where a specification is found right or wrong. What is built of a run is built of a checked value
//! alone, so that construction meets no other faults than those of files that it opens.

mod block;
mod events;
mod fc;
mod flows;
mod gateways;
mod iscsi;
mod manager;
mod network;
mod path_test;

pub use network::check_route;
pub use path_test::{check_path_test, path_test_takes_longer};

use crate::error::RunError;
use spec::{FlowSpec, RunSpec, WorkloadSpec, FORMAT};
use std::ops::{Deref, Range};

/// A specification whose parts fit each other: what every backend asks for.
#[derive(Clone, Copy, Debug)]
pub struct ValidRun<'a>(&'a RunSpec);

/// A specification of which the simulator can build all: transports, sessions, short flows and extrapolation as well.
#[derive(Clone, Copy, Debug)]
pub struct ValidSimulation<'a>(ValidRun<'a>);

impl<'a> ValidRun<'a> {
    /// `spec`, when it is right.
    ///
    /// # Errors
    /// [`RunError::Spec`] names the part and what would be right.
    pub fn new(spec: &'a RunSpec) -> Result<ValidRun<'a>, RunError> {
        if spec.format != FORMAT {
            return Err(RunError::Spec(format!("format = {}: this version reads {FORMAT}", spec.format)));
        }
        spec.links.iter().try_for_each(|link| network::check_link(spec, link))?;
        gateways::check(spec)?;
        spec.flows.iter().try_for_each(|flow| flows::check(spec, flow))?;
        groups(&spec.flows).try_for_each(flows::check_group)?;
        spec.background.iter().try_for_each(|source| network::check_background(spec, source))?;
        spec.events.iter().try_for_each(|event| events::check(event, spec))?;
        spec.manager.iter().try_for_each(|of| manager::check(of, spec))?;
        if let Some(window) = spec.measure.windows.iter().find(|window| {
            window.from_ns >= window.to_ns || window.event.is_some_and(|event| event >= spec.events.len())
        }) {
            let name = &window.name;
            return Err(RunError::Spec(format!("window {name}: to_ns above from_ns, and an event that exists")));
        }
        Ok(ValidRun(spec))
    }

    /// The specification itself.
    pub fn spec(self) -> &'a RunSpec {
        self.0
    }
}

impl Deref for ValidRun<'_> {
    type Target = RunSpec;

    fn deref(&self) -> &RunSpec {
        self.0
    }
}

impl<'a> ValidSimulation<'a> {
    /// `run`, when the simulator can build it.
    ///
    /// # Errors
    /// [`RunError::Spec`] names the part and what would be right; [`RunError::Congestion`] a congestion control that is
    /// not known.
    pub fn new(run: ValidRun<'a>) -> Result<ValidSimulation<'a>, RunError> {
        let mut before = None;
        for (name, transport) in run.flows.iter().map(|flow| (&flow.name, &flow.transport)) {
            flows::check_transport(name, transport, before)?;
            before = Some(transport);
        }
        run.flows.iter().try_for_each(flows::check_udt)?;
        for group in groups(&run.flows) {
            let session = group.iter().enumerate().find_map(|(index, flow)| match &flow.workload {
                WorkloadSpec::Iscsi(spec) => Some((&group[index..], spec)),
                _ => None,
            });
            if let Some((connections, spec)) = session {
                iscsi::check(connections, spec)?;
            }
            if let Some(spec) = group.iter().find_map(fc::spec_of) {
                fc::check(&run, group, spec)?;
            }
            if let Some(spec) = group.iter().find_map(fc::fcp_spec_of) {
                fc::check_fcp(&run, group, spec)?;
            }
        }
        for entry in &run.short_flows {
            flows::check_short_flows(&run, entry)?;
            flows::check_transport(&entry.name, &entry.transport, None)?;
        }
        if let Some(spec) = run.extrapolate {
            let wrong = |text: &str| Err(RunError::Spec(format!("extrapolate: {text}")));
            let first = run.flows.first().map(|flow| &flow.workload);
            if !matches!(first, Some(WorkloadSpec::Bulk { bytes: Some(_), .. } | WorkloadSpec::Copy(_))) {
                return wrong("the first flow is no bulk with bytes, and no copy");
            }
            if copied_bytes(&run).is_none() || !run.short_flows.is_empty() || run.manager.is_some() {
                return wrong("there is something beside the copy that ends");
            }
            if spec.interval_ns == 0 || spec.first_packets == 0 {
                return wrong("interval_ns and first_packets are above zero");
            }
        }
        Ok(ValidSimulation(run))
    }
}

impl<'a> Deref for ValidSimulation<'a> {
    type Target = ValidRun<'a>;

    fn deref(&self) -> &ValidRun<'a> {
        &self.0
    }
}

/// The connections of each flow of the scenario.
fn groups(flows: &[FlowSpec]) -> impl Iterator<Item = &[FlowSpec]> {
    flows.chunk_by(|one, next| one.group == next.group)
}

/// Bytes that the connections of the one copy carry that `run` is, expected ones where they are drawn; None: its first
/// flow is no copy, or another flow ends.
pub fn copied_bytes(run: &RunSpec) -> Option<u64> {
    let bytes = match &run.flows.first()?.workload {
        WorkloadSpec::Bulk { bytes, .. } => (*bytes)?,
        WorkloadSpec::Copy(copy) if copy.jobs == 1 => copy.mean_sent_bytes(),
        _ => return None,
    };
    let others = &run.flows[copied_flows(run).end..];
    others.iter().all(|flow| matches!(flow.workload, WorkloadSpec::Bulk { bytes: None, .. })).then_some(bytes)
}

/// Connections of the copy that `run` is: those of its first flow.
pub fn copied_flows(run: &RunSpec) -> Range<usize> {
    let first = run.flows.first().map(|flow| flow.group);
    0..run.flows.iter().take_while(|flow| Some(flow.group) == first).count()
}
