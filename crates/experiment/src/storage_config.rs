//! A trace's format and a disk's scheduler in the storage crate's form.

use spec::{SchedulerSpec, TraceFormatSpec, TraceSpec};
use storage::disk::Scheduler;
use storage::{Format, TraceError};

/// The format of a trace; None: by its content.
///
/// # Errors
/// [`TraceError::Columns`] if its columns are missing or wrong.
pub fn trace_format(spec: &TraceSpec) -> Result<Option<Format>, TraceError> {
    Format::from_name(format_name(spec.format), spec.columns.as_deref())
}

/// The name of the format that `spec` asks for.
fn format_name(spec: TraceFormatSpec) -> &'static str {
    let format = match spec {
        TraceFormatSpec::Auto => return "auto",
        TraceFormatSpec::Columns => return "columns",
        TraceFormatSpec::Alibaba => Format::Alibaba,
        TraceFormatSpec::Blkparse => Format::Blkparse,
        TraceFormatSpec::Disksim => Format::Disksim,
        TraceFormatSpec::DisksimValidate => Format::DisksimValidate,
        TraceFormatSpec::Fio => Format::Fio,
        TraceFormatSpec::Fiu => Format::Fiu,
        TraceFormatSpec::HpSrt => Format::HpSrt,
        TraceFormatSpec::Mqsim => Format::Mqsim,
        TraceFormatSpec::Msr => Format::Msr,
        TraceFormatSpec::Spc => Format::Spc,
        TraceFormatSpec::Systor => Format::Systor,
        TraceFormatSpec::Tencent => Format::Tencent,
    };
    format.name()
}

/// The scheduler that `spec` names.
pub fn scheduler(spec: SchedulerSpec) -> Scheduler {
    match spec {
        SchedulerSpec::Fcfs => Scheduler::Fcfs,
        SchedulerSpec::Sstf => Scheduler::Sstf,
        SchedulerSpec::Look => Scheduler::Look,
        SchedulerSpec::CLook => Scheduler::CLook,
        SchedulerSpec::Sptf => Scheduler::Sptf,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<T: serde::de::DeserializeOwned>(name: &str) -> T {
        serde_json::from_value(name.into()).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    #[test]
    fn a_specification_can_name_every_format_and_every_scheduler() {
        for name in Format::ALL.map(Format::name).into_iter().chain(["auto", "columns"]) {
            assert_eq!(format_name(named(name)), name);
        }
        for known in Scheduler::ALL {
            assert_eq!(scheduler(named(known.name())), known);
        }
    }
}
