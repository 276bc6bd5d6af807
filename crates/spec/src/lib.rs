//! The specification of one run, as a front hands it to a backend: JSON, every quantity an integer in the unit of its
//! name.
//!
//! The crate defines [`RunSpec`] and its parts, one subject per file, and their JSON Schema. It does not check that the
//! parts fit each other (`experiment`), or build a run of them.
//!
//! **Invariant: a specification is complete. Its writer resolves every default, so that a stored one says all.**

mod active;
mod background;
mod block;
mod copy;
mod event;
mod extrapolate;
mod fc;
mod fcp;
mod flow;
mod gateway;
mod iscsi;
mod link;
mod manager;
mod measure;
mod mitigation;
mod program;
mod run;
mod schema;
mod short_flows;
mod trace;
mod transport;
mod workload;
mod writes;

pub use active::ActiveSpec;
pub use background::{BackgroundSpec, CodecSpec, FramesSpec};
pub use block::{DiskSpec, OutOfRangeSpec, SchedulerSpec, SourceSpec};
pub use copy::{CopySpec, FilesSpec, ALL_CHANGED_PPM};
pub use event::{ActionSpec, EventSpec, WhenSpec};
pub use extrapolate::ExtrapolateSpec;
pub use fc::{FcLoadSpec, FcProtocolSpec, FcSpec};
pub use fcp::FcpSpec;
pub use flow::FlowSpec;
pub use gateway::GatewaySpec;
pub use iscsi::{AllegianceSpec, IscsiSpec};
pub use link::{BatchingSpec, FramingSpec, JitterKind, JitterSpec, LinkSpec, LossSpec, PolicerSpec, QueueSpec};
pub use manager::{LightpathSpec, ManagerSpec, PathMitigationSpec};
pub use measure::{MeasureSpec, WindowSpec};
pub use mitigation::{CwndReductionSpec, HoldBufferSpec, MitigationSpec, QueueDelaySpec, ReorderingToleranceSpec};
pub use program::{MediumSpec, ProgramName, ProgramSpec};
pub use run::{EmulatorSpec, RunSpec, FORMAT};
pub use schema::schema;
pub use short_flows::{ShortFlowsSpec, SizesSpec};
pub use trace::{TraceContent, TraceFormatSpec, TraceSpec};
pub use transport::{
    CountSpec, LostRetransmissionsSpec, ReceiveBuffersSpec, RecoverySpec, SendOverheadSpec, TransportSpec, UdtSpec,
    UdtVersionSpec,
};
pub use workload::{DistributionSpec, WorkloadSpec};
pub use writes::{ArrivalsSpec, WriteSizesSpec, WritesSpec};
