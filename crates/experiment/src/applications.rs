//! From the specs of a run's flows to their applications.

use crate::error::RunError;
use crate::spec::{DistributionSpec, FlowSpec, RunSpec, TraceSpec, WorkloadSpec};
use crate::workload::{Generator, RandomWrites, Share, Stripe, Workload};
use std::collections::BTreeMap;
use storage::{Format, Replay, TraceError, Writes};
use units::{Rate, Size, Time};

/// Makes the applications of a run; each trace is read once.
pub struct Applications {
    messages: Messages,
    /// When the measured interval begins.
    from: Time,
    stripes: Vec<Stripe>,
    /// Of each flow of the spec.
    shares: Vec<Option<Share>>,
}

impl Applications {
    /// Finds the flows of `run` that share a workload.
    ///
    /// # Errors
    /// [`RunError`]: connections that share a workload differ in it, a rate or size of zero, or a trace that cannot be read.
    pub fn new(run: &RunSpec) -> Result<Applications, RunError> {
        let from = Time(run.measure.warmup_ns);
        let messages = Messages { seed: run.seed, traces: BTreeMap::new() };
        let mut made = Applications { messages, from, stripes: vec![], shares: vec![None; run.flows.len()] };
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

    fn stripe(&mut self, flows: &[FlowSpec], first: usize, count: usize) -> Result<(), RunError> {
        let flow = &flows[first];
        let stripe = match &flow.workload {
            WorkloadSpec::Bulk { bytes: Some(bytes) } => Stripe::copy(first, count, *bytes),
            WorkloadSpec::Offered { credits, .. } => {
                Stripe::frames(first, count, self.messages.of(flow, name(flow))?, *credits, self.from)
            }
            WorkloadSpec::Replicate { .. } => {
                Stripe::writes(first, count, self.messages.of(flow, name(flow))?, self.from)
            }
            // Each connection has its own: as much as it takes, a program, or the session that shares requests by itself.
            WorkloadSpec::Bulk { bytes: None } | WorkloadSpec::Program { .. } | WorkloadSpec::Iscsi(_) => return Ok(()),
        };
        for other in &flows[first..first + count] {
            let key = |f: &FlowSpec| (f.source, f.destination, f.stop_ns, f.distribution);
            if other.workload != flow.workload || key(other) != key(flow) {
                return Err(wrong(other, "connections that share a workload have the same one, ends and stop"));
            }
        }
        for lane in 0..count {
            self.shares[first + lane] = Some(Share { stripe: self.stripes.len(), lane });
        }
        self.stripes.push(stripe);
        Ok(())
    }

    /// The application of flow `index`; of one beyond those of the spec's own, by its `spec` alone.
    ///
    /// # Errors
    /// [`RunError`]: a rate or size of zero, or a trace that cannot be read; it says which flow or file.
    pub fn build(&mut self, index: usize, spec: &FlowSpec) -> Result<Workload, RunError> {
        let limited = spec.stack.send_buffer_bytes.is_some();
        if let Some(share) = self.shares.get(index).copied().flatten() {
            return Ok(Workload::shared(share, self.stripes[share.stripe].is_copy(), limited));
        }
        Ok(match &spec.workload {
            WorkloadSpec::Bulk { bytes } | WorkloadSpec::Program { bytes, .. } => Workload::bulk(*bytes, limited),
            WorkloadSpec::Offered { credits, .. } => {
                Workload::constant_rate(self.messages.of(spec, &spec.name)?, *credits, self.from, limited)
            }
            WorkloadSpec::Iscsi(_) => Workload::iscsi(),
            WorkloadSpec::Replicate { .. } => {
                Workload::replicate(self.messages.of(spec, &spec.name)?, self.from, limited)
            }
        })
    }

    /// Workloads that several flows share.
    pub fn into_stripes(self) -> Vec<Stripe> {
        self.stripes
    }
}

fn wrong(flow: &FlowSpec, what: &str) -> RunError {
    RunError::Spec(format!("flow {}: {what}", flow.name))
}

/// Name of the flow of which `spec` is the first connection.
pub fn name(spec: &FlowSpec) -> &str {
    spec.name.strip_suffix(".1").unwrap_or(&spec.name)
}

/// Makes what issues messages.
struct Messages {
    /// Of the run.
    seed: u64,
    /// By path.
    traces: BTreeMap<String, Writes>,
}

impl Messages {
    /// What issues the messages of `spec`'s workload, which has some. `name` is that of their random streams: a flow's, whatever
    /// the number of its connections.
    fn of(&mut self, spec: &FlowSpec, name: &str) -> Result<Generator, RunError> {
        match &spec.workload {
            WorkloadSpec::Offered { frame_bytes, rate_bps, .. } => {
                if *frame_bytes == 0 || *rate_bps == 0 {
                    return Err(wrong(spec, "offered: frame and rate must be above zero"));
                }
                Ok(Generator::frames(Size(*frame_bytes), Rate(*rate_bps)))
            }
            WorkloadSpec::Replicate { trace: Some(trace), writes: None } => {
                let replay = Replay::new(self.read(trace)?, trace.slowdown_e6, trace.looped);
                Ok(Generator::trace(replay, u64::from(trace.header_bytes)))
            }
            WorkloadSpec::Replicate { trace: None, writes: Some(writes) } => {
                let drawn = RandomWrites::new(writes, self.seed, name);
                let drawn = drawn.ok_or_else(|| {
                    wrong(spec, "replicate: rate, sizes, weights and times above zero, Pareto shapes of times above 1")
                })?;
                Ok(Generator::RandomWrites(Box::new(drawn)))
            }
            WorkloadSpec::Replicate { .. } => Err(wrong(spec, "replicate: a trace or writes, not both")),
            WorkloadSpec::Bulk { .. } | WorkloadSpec::Program { .. } | WorkloadSpec::Iscsi(_) => {
                Err(wrong(spec, "its workload has no messages"))
            }
        }
    }

    fn read(&mut self, spec: &TraceSpec) -> Result<Writes, RunError> {
        if let Some(trace) = self.traces.get(&spec.path) {
            return Ok(trace.clone());
        }
        let wrong = |e: TraceError| RunError::Trace(e.to_string());
        let format = Format::asked(&spec.format).map_err(wrong)?;
        let trace = Writes::read(storage::stream(&spec.path, format).map_err(wrong)?).map_err(wrong)?;
        self.traces.insert(spec.path.clone(), trace.clone());
        Ok(trace)
    }
}
