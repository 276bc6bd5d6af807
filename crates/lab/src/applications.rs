//! From a flow's spec to its application.

use crate::error::LabError;
use crate::spec::{FlowSpec, TraceSpec, WorkloadSpec};
use crate::workload::{Generator, Workload};
use std::collections::BTreeMap;
use storage::{Format, Replay, TraceError, Writes};
use units::{Rate, Size};

/// Makes the applications of a run; each trace is read once.
#[derive(Default)]
pub struct Applications {
    traces: BTreeMap<String, Writes>,
}

impl Applications {
    /// The application of the flow `spec`.
    ///
    /// # Errors
    /// [`LabError`]: a rate or size of zero, or a trace that cannot be read; it says which flow or file.
    pub fn build(&mut self, spec: &FlowSpec) -> Result<Workload, LabError> {
        let limited = spec.stack.send_buffer_bytes.is_some();
        Ok(match &spec.workload {
            WorkloadSpec::Bulk { bytes } | WorkloadSpec::Program { bytes, .. } => Workload::bulk(*bytes, limited),
            WorkloadSpec::Offered { frame_bytes, rate_bps, credits } => {
                if *frame_bytes == 0 || *rate_bps == 0 {
                    let name = &spec.name;
                    return Err(LabError::Spec(format!("flow {name}: offered: frame and rate must be above zero")));
                }
                Workload::offered(Generator::frames(Size(*frame_bytes), Rate(*rate_bps)), *credits, limited)
            }
            WorkloadSpec::Iscsi(_) => Workload::iscsi(),
            WorkloadSpec::Replicate { trace } => {
                let loaded = self.trace(trace)?;
                let replay = Replay::new(loaded, trace.slowdown_e6, trace.looped);
                Workload::replicate(Generator::trace(replay, u64::from(trace.header_bytes)), limited)
            }
        })
    }

    fn trace(&mut self, spec: &TraceSpec) -> Result<Writes, LabError> {
        if let Some(trace) = self.traces.get(&spec.path) {
            return Ok(trace.clone());
        }
        let wrong = |e: TraceError| LabError::Trace(e.to_string());
        let format = Format::asked(&spec.format).map_err(wrong)?;
        let trace = Writes::read(storage::stream(&spec.path, format).map_err(wrong)?).map_err(wrong)?;
        self.traces.insert(spec.path.clone(), trace.clone());
        Ok(trace)
    }
}
