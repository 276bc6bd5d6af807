//! Builds a simulated run from a validated scenario and runs it: the only place that knows network and storage alike.
//!
//! The crate turns a [`spec::RunSpec`] into endpoints, links and workloads, runs them in [`sim`], measures, and returns
//! an [`Outcome`]. It does not parse scenarios, store results, read clocks. It reads the files that the spec names
//! (traces, a user's algorithm) and writes the capture that it asks for.
//!
//! **Invariant: the outcome is a function of the spec alone: same spec and version, same outcome to the byte.**

mod active;
mod applications;
mod arrivals;
mod background;
mod block;
mod build;
mod built_in_node;
mod capture;
mod capture_notes;
mod captured_stream;
mod constant_traffic;
mod copy_study;
mod counters;
mod environment;
mod error;
mod events;
mod fc;
mod fc_counters;
mod fcp_counters;
mod flow;
mod frame_clock;
mod framed_stream;
mod hold_buffers;
mod iscsi;
mod link_config;
mod manager;
mod measure;
mod message_times;
mod metric;
mod mixed_transport;
mod network;
mod node;
mod node_number;
mod packet;
mod packet_times;
mod path_test_ends;
mod path_test_run;
mod path_test_spec;
mod probe;
mod processes;
mod rate_bound;
mod reconnect;
mod request_counters;
mod routes;
mod run;
mod send_overhead;
mod sender_command;
mod series;
mod shared;
mod short_flows;
mod side;
mod steady;
mod storage_config;
mod summary;
mod tcp_config;
mod tcp_pool;
mod tcp_transport;
mod transport;
mod udt_pool;
mod udt_transport;
mod validate;
mod windows;
mod workload;
mod world;

pub use applications::Applications;
pub use background::BackgroundPacket;
pub use build::{check_trace, Parts};
pub use capture::Capture;
pub use copy_study::{CopyResult, Steady};
pub use counters::{
    BackgroundCounters, FlowCounters, HoldBufferCounters, MeasuredFlow, MeasuredRun, MeasuredWindow, NetworkCounters,
    ReverseCounters, Rtt, SendingTimes, ShortFlowsSummary, WindowCounters, WindowReduction,
};
pub use environment::{Environment, Numbering, Senders};
pub use error::RunError;
pub use events::FlowProgress;
pub use fc_counters::{CreditStalls, FcCounters};
pub use fcp_counters::{ExchangeCounters, FcpCounters};
pub use manager::{ManagerOutcome, Timeline};
pub use measure::{Progress, DRAIN_LIMIT};
pub use message_times::MessageTimes;
pub use metric::{Metric, Metrics, QUANTILES_PER_MILLE};
pub use node::{Ends, Node, NodeCounters, Surroundings};
pub use node_number::{EndNodes, NodeNumber};
pub use packet::Packet;
pub use packet_times::PacketDelays;
pub use path_test_ends::{JudgedOutcome, LinkTruth, PathTruth};
pub use path_test_run::path_test;
pub use path_test_spec::PathTestSpec;
pub use probe::{FlowObservation, Probe, ProbeView, QueueObservation};
pub use request_counters::{RequestCounters, RequestKindCounters};
pub use run::{is_shared, simulate, simulate_with, simulate_with_engine, without_horizons, Engine};
pub use sender_command::{AddressedCommand, MoveId, Preparation, SenderCommand};
pub use series::{ssthresh, FlowRow, FlowSeries, LinkSeries, ReverseSeries, SenderSample, UdtSample, UdtSeries};
pub use side::Side;
pub use storage::Format as TraceFormat;
pub use summary::{bottleneck, summarize, Outcome};
pub use tcp_config::Algorithms;
pub use transport::{SegmentPool, Transport, TransportMaker};
pub use validate::{check_route, ValidRun};
pub use workload::{
    Application, ConstantRate, Generator, Lanes, Messages, Order, Peak, RandomWrites, Replicate, SendingEnd, Share,
    Source, Stripe, Workload, BLOCK_BYTES,
};
