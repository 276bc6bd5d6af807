//! The answer: what limits a flow, how sure that is, and by which counters.

use crate::counters::Counters;
use serde::Serialize;

/// What keeps a flow from being faster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The sending application has nothing to send.
    Application,
    /// The receiving application does not read.
    ReceivingApplication,
    /// The sender's buffer, `SO_SNDBUF` or tcp_wmem.
    SendBuffer,
    /// The window that the receiver offers: `SO_RCVBUF`, tcp_rmem, `TCP_WINDOW_CLAMP`.
    ReceiveWindow,
    /// `SO_MAX_PACING_RATE` of the sender.
    Pacing,
    /// Losses of the path that no queue explains.
    Loss,
    /// The bottleneck: its rate, with its queue in use.
    Queue,
    /// A policer: losses above a rate, without a queue.
    Policer,
    /// The flow is too young: its window still grows.
    StartUp,
}

/// How far the counters lie from another answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Far.
    Clear,
    /// Near: watching longer, or the other end, may say more.
    Likely,
}

/// The end that was watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Most data went from here.
    Sender,
    /// Most data came here.
    Receiver,
}

/// Of one flow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Diagnosis {
    /// Of the end that was watched.
    pub role: Role,
    /// None: the counters do not decide.
    pub limit: Option<Limit>,
    /// None with it.
    pub confidence: Option<Confidence>,
    /// What the answer rests on, or why there is none; a line of text.
    pub because: String,
    /// Payload that the flow moved while it was watched, bytes.
    pub bytes: u64,
    /// And per second, bit/s.
    pub goodput_bps: f64,
    /// Of a sender.
    pub counters: Option<Counters>,
}
