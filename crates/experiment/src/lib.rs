//! Builds a simulated run from a validated scenario and runs it: the only place that knows network and storage alike.
//!
//! What it does: turns a [`spec::RunSpec`] into endpoints, links and workloads, runs them in [`sim`], measures, and returns
//! an [`Outcome`]. What it does not: parse scenarios, store results, read clocks. It reads the files that the spec names
//! (traces, a user's algorithm) and writes the capture that it asks for.
//!
//! **Invariant: the outcome is a function of the spec alone: same spec and version, same outcome to the byte.**

mod anew;
mod applications;
mod assemble;
mod background;
mod capture;
mod changes;
mod crowd;
mod entry;
mod error;
mod extrapolated;
mod flow;
mod gates;
mod iscsi;
mod managed;
mod measure;
pub mod network;
mod outcome;
mod packet;
mod quantiles;
mod run;
pub mod spec;
mod steady;
mod striped;
mod study;
mod tally;
mod transport;
pub mod ways;
mod workload;
mod world;

pub use applications::Applications;
pub use assemble::check_trace;
pub use background::Background;
pub use changes::{apply_change, Change, Look, Notice};
pub use crowd::CrowdTally;
pub use error::LabError;
pub use flow::Side;
pub use iscsi::{ConnectionTally, KindTally};
pub use managed::{Management, ManagerOutcome, Timeline, Word};
pub use measure::{FlowSeries, LinkSeries, ReverseSeries};
pub use outcome::{bottleneck, sum_up, Metric, Metrics, Outcome};
pub use quantiles::QUANTILES_PER_MILLE;
pub use run::{simulate, Pulse, Verdict, DRAIN_LIMIT};
pub use storage::Format as TraceFormat;
pub use study::{Found, Steady};
pub use tally::{
    gates_of, BackgroundTally, FlowCounters, FlowTally, ReverseCounters, Rtt, RunTally, TrimTally, TrimmedFor,
};
pub use workload::{
    Drawn, Generator, Lanes, Messages, Most, Offered, Order, Replicate, SendingEnd, Share, Source, Stripe, Times,
    Workload, BLOCK_BYTES,
};
