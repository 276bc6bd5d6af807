//! From the specs of a run's flows to their applications.

use crate::error::LabError;
use crate::spec::{DistributionSpec, FlowSpec, RunSpec, TraceSpec, WorkloadSpec};
use crate::workload::{Generator, Share, Stripe, Workload};
use std::collections::BTreeMap;
use storage::{Format, Replay, TraceError, Writes};
use units::{Rate, Size};

/// Makes the applications of a run; each trace is read once.
pub struct Applications {
    traces: Traces,
    stripes: Vec<Stripe>,
    /// Of each flow of the spec.
    shares: Vec<Option<Share>>,
}

impl Applications {
    /// Finds the flows of `run` that share a workload.
    ///
    /// # Errors
    /// [`LabError`]: connections that share a workload differ in it, a rate or size of zero, or a trace that cannot be read.
    pub fn new(run: &RunSpec) -> Result<Applications, LabError> {
        let mut made = Applications { traces: Traces::default(), stripes: vec![], shares: vec![None; run.flows.len()] };
        let mut first = 0;
        while first < run.flows.len() {
            let flow = &run.flows[first];
            let count = run.flows[first..].iter().take_while(|other| other.group == flow.group).count();
            if flow.distribution == DistributionSpec::Striped {
                made.stripe(&run.flows, first, count)?;
            }
            first += count;
        }
        Ok(made)
    }

    fn stripe(&mut self, flows: &[FlowSpec], first: usize, count: usize) -> Result<(), LabError> {
        let flow = &flows[first];
        for other in &flows[first..first + count] {
            let key = |f: &FlowSpec| (f.source, f.destination, f.stop_ns, f.distribution);
            if other.workload != flow.workload || key(other) != key(flow) {
                return Err(wrong(other, "connections that share a workload have the same one, ends and stop"));
            }
        }
        let stripe = match &flow.workload {
            WorkloadSpec::Bulk { bytes: Some(bytes) } => Stripe::copy(first, count, *bytes),
            WorkloadSpec::Offered { credits, .. } => {
                Stripe::frames(first, count, self.traces.generator(flow)?, *credits)
            }
            WorkloadSpec::Replicate { .. } => Stripe::writes(first, count, self.traces.generator(flow)?),
            // Each connection has its own: as much as it takes, a program, or the session that shares requests by itself.
            WorkloadSpec::Bulk { bytes: None } | WorkloadSpec::Program { .. } | WorkloadSpec::Iscsi(_) => return Ok(()),
        };
        for lane in 0..count {
            self.shares[first + lane] = Some(Share { stripe: self.stripes.len(), lane });
        }
        self.stripes.push(stripe);
        Ok(())
    }

    /// The application of flow `index`; of one beyond those of the spec's own, by its `spec` alone.
    ///
    /// # Errors
    /// [`LabError`]: a rate or size of zero, or a trace that cannot be read; it says which flow or file.
    pub fn build(&mut self, index: usize, spec: &FlowSpec) -> Result<Workload, LabError> {
        let limited = spec.stack.send_buffer_bytes.is_some();
        if let Some(share) = self.shares.get(index).copied().flatten() {
            return Ok(Workload::shared(share, self.stripes[share.stripe].is_copy(), limited));
        }
        Ok(match &spec.workload {
            WorkloadSpec::Bulk { bytes } | WorkloadSpec::Program { bytes, .. } => Workload::bulk(*bytes, limited),
            WorkloadSpec::Offered { credits, .. } => Workload::offered(self.traces.generator(spec)?, *credits, limited),
            WorkloadSpec::Iscsi(_) => Workload::iscsi(),
            WorkloadSpec::Replicate { .. } => Workload::replicate(self.traces.generator(spec)?, limited),
        })
    }

    /// Workloads that several flows share.
    pub fn into_stripes(self) -> Vec<Stripe> {
        self.stripes
    }
}

fn wrong(flow: &FlowSpec, what: &str) -> LabError {
    LabError::Spec(format!("flow {}: {what}", flow.name))
}

/// Traces by path.
#[derive(Default)]
struct Traces(BTreeMap<String, Writes>);

impl Traces {
    /// What issues the messages of `spec`'s workload, which has some.
    fn generator(&mut self, spec: &FlowSpec) -> Result<Generator, LabError> {
        match &spec.workload {
            WorkloadSpec::Offered { frame_bytes, rate_bps, .. } => {
                if *frame_bytes == 0 || *rate_bps == 0 {
                    return Err(wrong(spec, "offered: frame and rate must be above zero"));
                }
                Ok(Generator::frames(Size(*frame_bytes), Rate(*rate_bps)))
            }
            WorkloadSpec::Replicate { trace } => {
                let replay = Replay::new(self.read(trace)?, trace.slowdown_e6, trace.looped);
                Ok(Generator::trace(replay, u64::from(trace.header_bytes)))
            }
            WorkloadSpec::Bulk { .. } | WorkloadSpec::Program { .. } | WorkloadSpec::Iscsi(_) => {
                Err(wrong(spec, "its workload has no messages"))
            }
        }
    }

    fn read(&mut self, spec: &TraceSpec) -> Result<Writes, LabError> {
        if let Some(trace) = self.0.get(&spec.path) {
            return Ok(trace.clone());
        }
        let wrong = |e: TraceError| LabError::Trace(e.to_string());
        let format = Format::asked(&spec.format).map_err(wrong)?;
        let trace = Writes::read(storage::stream(&spec.path, format).map_err(wrong)?).map_err(wrong)?;
        self.0.insert(spec.path.clone(), trace.clone());
        Ok(trace)
    }
}
