//! One direction of a link: a queue, a transmitter of fixed rate, a line with delay, loss and jitter.
//!
//! The crate computes when each packet arrives at the other end, or why it does not: a policer, then drop-tail, RED,
//! CoDel or FQ-CoDel before the line; independent, bursty, periodic, bit-error or listed loss on it; constant or random
//! delay, with or without reordering; rate, delay, loss and outage that change while packets are inside. It reads no
//! clock and no unseeded random source, and knows of a packet only [`Packet`]. The same model runs in virtual time and,
//! with a real clock and real packets, as an emulator.
//!
//! **Invariant: packets in = packets delivered + packets reported as dropped + packets inside, at every moment, and
//! packets leave in the order in which they came, unless jitter with reordering or FQ-CoDel was asked for; of a batch
//! link those of one flow do.**
//!
//! Use: [`Link::handle_packet`] for each arrival, [`Link::handle_event`] when the time of [`Link::poll_timeout`] has
//! come, [`Link::poll_dropped`] for packets dropped inside.
//!
//! Each kind of link is a type of its own: [`PrecomputedLink`], [`FifoLink`], [`ScheduledQueue`], [`HoldBuffer`],
//! [`PolicedLink`], [`BatchedLink`]. [`Link`] dispatches to them statically.
//!
//! Cost: drop-tail and RED without jitter are analytic: a packet's departure is known when it is admitted, so a packet
//! costs one append, one removal and no event of its own. Disciplines that decide at dequeue (CoDel, FQ-CoDel), and
//! jitter, use one pending event.

#![deny(unsafe_code)]

mod admission;
mod batched;
mod calm;
mod codel;
mod config;
mod counters;
mod delay_line;
mod fifo;
mod fq_codel;
mod framing;
pub mod hold_buffer;
mod jitter;
mod link;
mod loss;
mod loss_schedule;
mod pacer;
mod packet;
mod per_flow_loss;
mod policed;
mod policer;
mod precomputed;
mod prefetch;
pub mod random;
mod red;
mod ring;
mod sampling;
mod scheduled_queue;
mod serializer;
#[cfg(test)]
mod tests;
mod variable;
mod waiting;

pub use admission::Admission;
pub use batched::BatchedLink;
pub use config::{
    Batching, ConfigError, Jitter, JitterDistribution, LinkConfig, LossModel, PolicerConfig, QueueConfig, MAX_RATE,
};
pub use counters::{DropReason, Stats};
pub use fifo::FifoLink;
pub use framing::{Framing, MAX_OVERHEAD_BYTES};
pub use hold_buffer::HoldBuffer;
pub use jitter::JitterSource;
pub use link::Link;
pub use loss_schedule::LossSchedule;
pub use pacer::{PacerId, Pacers};
pub use packet::Packet;
pub use policed::PolicedLink;
pub use precomputed::PrecomputedLink;
pub use prefetch::{prefetch, prefetch_behind, prefetch_part};
pub use sampling::Sample;
pub use scheduled_queue::ScheduledQueue;
pub use variable::{LinkEvent, VariableLink};
