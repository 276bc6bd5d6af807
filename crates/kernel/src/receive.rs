//! The receiving end of a run between two hosts.

use crate::error::KernelError;
use crate::program_end_plan::ProgramEndPlan;
use crate::remote_plan::ReceivePlan;
use crate::traffic::{EndReport, Reception};
use experiment::{RunError, ValidRun};
use serde::Serialize;
use spec::WorkloadSpec;
use std::sync::atomic::AtomicBool;

/// Listeners for a run, before it.
pub struct Receiver(Reception);

/// The result of a receiving end.
#[derive(Clone, Debug, Serialize)]
pub struct Received {
    /// Receiver of each flow as the kernel has it; None: its connection never came.
    pub ends: Vec<Option<EndReport>>,
    /// Connections from other addresses, and those from the peer's that showed no token: each was closed.
    pub strangers: u32,
}

impl Receiver {
    /// Listens for the connections of `run`.
    ///
    /// # Errors
    /// Plan and run do not hold together, no port is free, the kernel refused an option.
    pub fn open(run: ValidRun<'_>, plan: ReceivePlan) -> Result<Receiver, KernelError> {
        check(run, plan.flows.len(), &plan.programs)?;
        let names = run.flows.iter().map(|flow| flow.name.clone()).collect();
        let exact = run.flows.iter().map(|flow| !matches!(flow.workload, WorkloadSpec::Bulk { .. })).collect();
        Reception::open(plan, names, exact).map(Receiver)
    }

    /// Port of the connection of reports, and of each flow.
    pub fn ports(&self) -> (u16, Vec<u16>) {
        self.0.ports()
    }

    /// Takes the data, until the sending agent says that the run is over. `report_progress` is called many times a
    /// second with the payload that each flow has brought, bytes.
    ///
    /// # Errors
    /// [`KernelError::Stopped`] when `stop` was set; the sending agent does not come, or goes.
    pub fn run(self, stop: &AtomicBool, report_progress: &mut dyn FnMut(&[u64])) -> Result<Received, KernelError> {
        let taken = self.0.run(stop, report_progress)?;
        Ok(Received { ends: taken.ends, strangers: taken.strangers })
    }
}

/// Checks that hosts can carry the flows of `run`, of which a plan has `planned`.
pub(crate) fn check(run: ValidRun<'_>, planned: usize, programs: &[Option<ProgramEndPlan>]) -> Result<(), KernelError> {
    let wrong = |text: String| Err(KernelError::Spec(RunError::Spec(text)));
    if planned != run.flows.len() || programs.len() != run.flows.len() {
        let (flows, programs) = (run.flows.len(), programs.len());
        return wrong(format!("the plan has {planned} flows and {programs} for programs, the spec {flows}"));
    }
    let Some(first) = run.flows.first() else { return wrong("the spec has no flows".to_owned()) };
    if let Some(entry) = run.short_flows.first() {
        return wrong(format!("short flows {}: the simulator alone carries them", entry.name));
    }
    if let Some(gateway) = run.gateways.first() {
        return wrong(format!("node {}: the simulator alone has gateways", run.nodes[gateway.node]));
    }
    for (flow, program) in run.flows.iter().zip(programs) {
        if flow.source != first.source {
            let (one, other) = (&first.name, &flow.name);
            return wrong(format!(
                "flows {one} and {other} begin at different nodes: between hosts a run has one direction"
            ));
        }
        match (&flow.workload, program) {
            (WorkloadSpec::Program(_), Some(program)) if program.port() > 0 && !program.words.is_empty() => {}
            (WorkloadSpec::Program(_), _) | (_, Some(_)) => {
                return wrong(format!("flow {}: a program in the spec has its end, with words and port", flow.name));
            }
            (workload, None) => check_workload(&flow.name, workload)?,
        }
    }
    Ok(())
}

fn check_workload(flow: &str, workload: &WorkloadSpec) -> Result<(), KernelError> {
    let wrong = |text: String| Err(KernelError::Spec(RunError::Spec(text)));
    match workload {
        WorkloadSpec::Bulk { .. } | WorkloadSpec::Replicate { .. } | WorkloadSpec::Copy(_) => Ok(()),
        WorkloadSpec::ConstantRate { credits: None, .. } => Ok(()),
        WorkloadSpec::ConstantRate { .. } => wrong(format!(
            "flow {flow}: credits: between hosts a credit would take the way back, and the model's takes none"
        )),
        WorkloadSpec::Program { .. } | WorkloadSpec::Iscsi(_) | WorkloadSpec::Fc(_) | WorkloadSpec::Fcp(_) => {
            let what = "the agents carry bulk, constant_rate, replicate, copy and programs";
            wrong(format!("flow {flow}: its workload runs on other backends: {what}"))
        }
    }
}
