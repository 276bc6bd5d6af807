//! From the specs of a run's flows to their applications.

use crate::error::RunError;
use crate::fc_counters::FcCounters;
use crate::fcp_counters::FcpCounters;
use crate::storage_config::trace_format;
use crate::validate::ValidRun;
use crate::workload::{FileCopy, Generator, RandomWrites, Share, Source, Stripe, Workload};
use spec::{ActiveSpec, DistributionSpec, FlowSpec, ProgramSpec, TraceContent, TraceSpec, WorkloadSpec, WritesSpec};
use std::collections::BTreeMap;
use storage::{Replay, TraceError, Writes};
use units::{Rate, Size, Time};

/// Makes the applications of a run; each trace is read once.
pub struct Applications {
    messages: Messages,
    /// Start of the measured interval.
    from: Time,
    stripes: Vec<Stripe>,
    /// Of each flow of the spec.
    shares: Vec<Option<Share>>,
}

impl Applications {
    /// Finds the flows of `run` that share a workload.
    ///
    /// # Errors
    /// [`RunError::Trace`]: a trace cannot be read.
    pub fn new(run: ValidRun<'_>) -> Result<Applications, RunError> {
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
            WorkloadSpec::Bulk { bytes: Some(bytes), .. } => Stripe::copy(first, count, *bytes),
            WorkloadSpec::ConstantRate { frame_bytes, rate_bps, credits, active } => {
                Stripe::frames(first, count, frames(*frame_bytes, *rate_bps, *active), *credits, self.from)
            }
            WorkloadSpec::Replicate { trace, writes } => {
                let writes = self.messages.writes(trace.as_ref(), writes.as_ref(), name(flow))?;
                Stripe::writes(first, count, writes, self.from)
            }
            WorkloadSpec::Copy(copy) => {
                let files = FileCopy::new(copy, count, self.messages.seed, name(flow), self.from);
                Stripe::files(first, count, files)
            }
            // The streams of one program.
            WorkloadSpec::Program(ProgramSpec { bytes: Some(bytes), streams: 2.., .. }) => {
                Stripe::copy(first, count, *bytes)
            }
            // Each connection has its own: as much as it takes, a program, or the session that shares requests by
            // itself.
            WorkloadSpec::Bulk { bytes: None, .. }
            | WorkloadSpec::Program(_)
            | WorkloadSpec::Iscsi(_)
            | WorkloadSpec::Fc(_)
            | WorkloadSpec::Fcp(_) => return Ok(()),
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
    /// [`RunError::Trace`]: a trace cannot be read.
    pub fn build(&mut self, index: usize, spec: &FlowSpec) -> Result<Workload, RunError> {
        let limited = spec.transport.send_buffer_bytes.is_some();
        if let Some(share) = self.shares.get(index).copied().flatten() {
            return Ok(Workload::shared(share, self.stripes[share.stripe].is_copy(), limited));
        }
        Ok(match &spec.workload {
            WorkloadSpec::Bulk { bytes, .. } => Workload::bulk(*bytes, limited),
            WorkloadSpec::Program(program) => Workload::bulk(program.bytes, limited),
            WorkloadSpec::Copy(_) => unreachable!("a valid run's copies are striped"),
            WorkloadSpec::ConstantRate { frame_bytes, rate_bps, credits, active } => {
                Workload::constant_rate(frames(*frame_bytes, *rate_bps, *active), *credits, self.from, limited)
            }
            WorkloadSpec::Iscsi(_) => Workload::of_node(Source::Iscsi(Box::default())),
            WorkloadSpec::Fc(_) => Workload::of_node(Source::Fc(Box::new(FcCounters::new(self.from)))),
            WorkloadSpec::Fcp(_) => {
                Workload::of_node(Source::Fcp(Box::new(FcpCounters::new(FcCounters::new(self.from)))))
            }
            WorkloadSpec::Replicate { trace, writes } => {
                let writes = self.messages.writes(trace.as_ref(), writes.as_ref(), &spec.name)?;
                Workload::replicate(writes, self.from, limited)
            }
        })
    }

    /// Workloads that several flows share.
    pub fn into_stripes(self) -> Vec<Stripe> {
        self.stripes
    }
}

/// Name of the flow of which `spec` is the first connection.
pub fn name(spec: &FlowSpec) -> &str {
    spec.name.strip_suffix(".1").unwrap_or(&spec.name)
}

fn frames(bytes: u64, rate_bps: u64, active: Option<ActiveSpec>) -> Generator {
    Generator::frames(Size(bytes), Rate(rate_bps), active)
}

/// Makes what issues messages.
struct Messages {
    /// Of the run.
    seed: u64,
    /// By path, format and columns.
    traces: BTreeMap<TraceContent, Writes>,
}

impl Messages {
    /// Returns the generator of mirrored writes, from a trace or drawn at random. `name` is that of their random
    /// streams: a flow's, whatever the number of its connections.
    fn writes(
        &mut self,
        trace: Option<&TraceSpec>,
        writes: Option<&WritesSpec>,
        name: &str,
    ) -> Result<Generator, RunError> {
        if let Some(trace) = trace {
            let replay = Replay::new(self.read(trace)?, trace.time_scale_e6, trace.looped);
            return Ok(Generator::trace(replay, u64::from(trace.header_bytes)));
        }
        let writes = writes.expect("a valid run's mirror has a trace or writes");
        Ok(Generator::RandomWrites(Box::new(RandomWrites::new(writes, self.seed, name))))
    }

    fn read(&mut self, spec: &TraceSpec) -> Result<Writes, RunError> {
        if let Some(trace) = self.traces.get(&spec.content()) {
            return Ok(trace.clone());
        }
        let wrong = |e: TraceError| RunError::Trace(e.to_string());
        let format = trace_format(spec).map_err(wrong)?;
        let trace = Writes::read(storage::stream(&spec.path, format).map_err(wrong)?).map_err(wrong)?;
        self.traces.insert(spec.content(), trace.clone());
        Ok(trace)
    }
}
