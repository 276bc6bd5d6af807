//! A trace's format and a disk's scheduler in the storage crate's form.

use spec::{SchedulerSpec, TraceFormatSpec};
use storage::disk::Scheduler;
use storage::Format;

/// The format that `spec` asks for; None: told by the content.
pub fn trace_format(spec: TraceFormatSpec) -> Option<Format> {
    Some(match spec {
        TraceFormatSpec::Auto => return None,
        TraceFormatSpec::Blkparse => Format::Blkparse,
        TraceFormatSpec::Disksim => Format::Disksim,
        TraceFormatSpec::DisksimValidate => Format::DisksimValidate,
        TraceFormatSpec::Fio => Format::Fio,
        TraceFormatSpec::HpSrt => Format::HpSrt,
        TraceFormatSpec::Mqsim => Format::Mqsim,
        TraceFormatSpec::Msr => Format::Msr,
        TraceFormatSpec::Spc => Format::Spc,
    })
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
        for format in Format::ALL {
            assert_eq!(trace_format(named(format.name())), Some(format));
        }
        assert_eq!(trace_format(named("auto")), None);
        for known in Scheduler::ALL {
            assert_eq!(scheduler(named(known.name())), known);
        }
    }
}
