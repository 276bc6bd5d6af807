//! A link of any kind, with static dispatch to the kind's own type.

use crate::admission::Admission;
use crate::config::{LinkConfig, LossModel, QueueConfig, MAX_RATE};
use crate::counters::{DropReason, Stats};
use crate::fifo::FifoLink;
use crate::hold_buffer::HoldBuffer;
use crate::loss::Loss;
use crate::pacer::Pacers;
use crate::packet::Packet;
use crate::precomputed::PrecomputedLink;
use crate::random::{stream_seed, Random};
use crate::red::Red;
use crate::scheduled_queue::ScheduledQueue;
use units::{Rate, Span, Time};

/// The outcome of [`Link::handle_event`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkEvent<P> {
    /// The packet that has reached the far end.
    pub delivered: Option<P>,
    /// [`Link::poll_timeout`] after the event.
    pub next_event: Time,
    /// True if [`Link::poll_dropped`] has packets.
    pub has_dropped: bool,
}

/// One direction of a link. See the crate's documentation.
///
/// Times handed in must not go back. A caller that is late (a real clock) gets what was due by then; a packet's time
/// on the link is computed from its own arrival, not from the call. `pacers` are those of the network: only a hold
/// buffer uses them.
#[allow(clippy::large_enum_variant, reason = "links are few: a pointer to the FIFO would cost every packet a load")]
pub enum Link<P> {
    /// Drop-tail with a configuration that never changes.
    Precomputed(PrecomputedLink<P>),
    /// Its rate, delay, loss and state may change.
    Variable(VariableLink<P>),
    /// A delay line that holds the packets of moved flows.
    HoldBuffer(Box<HoldBuffer<P>>),
}

/// A link whose rate, delay, loss and state may change while packets are inside.
#[allow(clippy::large_enum_variant, reason = "links are few: a pointer to the FIFO would cost every packet a load")]
pub enum VariableLink<P> {
    /// Drop-tail or RED without jitter.
    Fifo(FifoLink<P>),
    /// Any queue discipline, with jitter or without.
    Scheduled(Box<ScheduledQueue<P>>),
}

impl<P: Packet> Link<P> {
    /// A [`VariableLink`] that is up, its streams of random numbers derived from `seed`.
    ///
    /// # Panics
    /// When [`LinkConfig::check`] refuses `config`.
    pub fn variable(config: &LinkConfig, seed: u64) -> Link<P> {
        Link::Variable(VariableLink::new(config, seed))
    }

    /// A link that is up and never changes: a [`PrecomputedLink`] where `config` allows one, else a [`VariableLink`].
    ///
    /// # Panics
    /// When [`LinkConfig::check`] refuses `config`.
    pub fn fixed(config: &LinkConfig, seed: u64) -> Link<P> {
        check(config);
        match PrecomputedLink::new(config, stream_seed(seed, "loss")) {
            Some(link) => Link::Precomputed(link),
            None => Link::variable(config, seed),
        }
    }

    /// A hold buffer.
    pub fn hold_buffer(config: crate::hold_buffer::Config) -> Link<P> {
        Link::HoldBuffer(Box::new(HoldBuffer::new(config)))
    }

    /// This link, when it is a hold buffer.
    pub fn as_hold_buffer(&self) -> Option<&HoldBuffer<P>> {
        match self {
            Link::HoldBuffer(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// This link, when it is a hold buffer.
    pub fn as_hold_buffer_mut(&mut self) -> Option<&mut HoldBuffer<P>> {
        match self {
            Link::HoldBuffer(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// This link, when it may change.
    pub fn as_variable_mut(&mut self) -> Option<&mut VariableLink<P>> {
        match self {
            Link::Variable(link) => Some(link),
            _ => None,
        }
    }

    /// Returns whether the link is a [`PrecomputedLink`].
    #[inline]
    pub fn is_precomputed(&self) -> bool {
        matches!(self, Link::Precomputed(_))
    }

    /// A packet arrives at the queue at `now`.
    #[inline]
    pub fn handle_packet(&mut self, now: Time, packet: P, pacers: &mut Pacers) -> Admission<P> {
        match self {
            Link::Precomputed(link) => link.handle_packet(now, packet),
            Link::Variable(VariableLink::Fifo(link)) => link.handle_packet(now.0, packet),
            Link::Variable(VariableLink::Scheduled(link)) => link.handle_packet(now.0, packet),
            Link::HoldBuffer(buffer) => buffer.handle_packet(now.0, packet, pacers),
        }
    }

    /// The time of [`Link::poll_timeout`] has come.
    #[inline]
    pub fn handle_event(&mut self, now: Time, pacers: &mut Pacers) -> LinkEvent<P> {
        match self {
            Link::Precomputed(link) => {
                let delivered = link.poll_delivery(now.0);
                LinkEvent { delivered, next_event: Time(link.due()), has_dropped: false }
            }
            Link::Variable(VariableLink::Fifo(link)) => {
                let delivered = link.poll_delivery(now.0);
                LinkEvent { delivered, next_event: Time(link.due()), has_dropped: link.counters().has_dropped() }
            }
            Link::Variable(VariableLink::Scheduled(link)) => {
                let delivered = link.poll_delivery(now.0);
                LinkEvent { delivered, next_event: Time(link.due()), has_dropped: link.counters().has_dropped() }
            }
            Link::HoldBuffer(buffer) => {
                let delivered = buffer.poll_delivery(now.0, pacers);
                LinkEvent { delivered, next_event: Time(buffer.due()), has_dropped: false }
            }
        }
    }

    /// The link's next event: a delivery, a loss that becomes known, or a packet that starts; [`Time::NEVER`] when
    /// none is pending. Never later than the next delivery.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        Time(match self {
            Link::Precomputed(link) => link.due(),
            Link::Variable(link) => link.due(),
            Link::HoldBuffer(buffer) => buffer.due(),
        })
    }

    /// A packet lost after it was admitted, and why; call until None.
    ///
    /// A loss on the line is known when it would have arrived (FIFO) or when it starts (scheduled queue); an outage
    /// and a drop by CoDel or FQ-CoDel at once. A precomputed link reports a loss when the packet arrives, and never
    /// here.
    pub fn poll_dropped(&mut self) -> Option<(P, DropReason)> {
        match self {
            Link::Variable(VariableLink::Fifo(link)) => link.counters_mut().dropped.pop_front(),
            Link::Variable(VariableLink::Scheduled(link)) => link.counters_mut().dropped.pop_front(),
            Link::Precomputed(_) | Link::HoldBuffer(_) => None,
        }
    }

    /// Returns whether [`Link::poll_dropped`] has packets.
    #[inline]
    pub fn has_dropped(&self) -> bool {
        match self {
            Link::Variable(VariableLink::Fifo(link)) => link.counters().has_dropped(),
            Link::Variable(VariableLink::Scheduled(link)) => link.counters().has_dropped(),
            Link::Precomputed(_) | Link::HoldBuffer(_) => false,
        }
    }

    /// Returns whether the link is up.
    pub fn is_up(&self) -> bool {
        match self {
            Link::Variable(link) => link.is_up(),
            Link::Precomputed(_) | Link::HoldBuffer(_) => true,
        }
    }

    /// Packets and bytes that wait at `now`, without the packet being sent.
    pub fn queue(&mut self, now: Time) -> (u64, u64) {
        match self {
            Link::Precomputed(link) => link.queue(now.0),
            Link::Variable(VariableLink::Fifo(link)) => link.queue(now.0),
            Link::Variable(VariableLink::Scheduled(link)) => link.queue(now.0),
            Link::HoldBuffer(buffer) => buffer.queue(),
        }
    }

    /// Packets inside: waiting, being sent, on the line; without those that [`Link::poll_dropped`] has yet to report.
    pub fn packets_inside(&self) -> u64 {
        match self {
            Link::Precomputed(link) => link.inside(),
            Link::Variable(VariableLink::Fifo(link)) => link.inside(),
            Link::Variable(VariableLink::Scheduled(link)) => link.inside(),
            Link::HoldBuffer(buffer) => buffer.inside(),
        }
    }

    /// Brings counters to `now`: those of a precomputed link are not up to date otherwise. `enqueued` and
    /// [`Link::packets_inside`] are as of the last [`Link::queue`].
    pub fn settle(&mut self, now: Time) {
        if let Link::Precomputed(link) = self {
            link.settle(now.0);
        }
    }

    /// Counters since the link was made.
    pub fn stats(&self) -> &Stats {
        match self {
            Link::Precomputed(link) => link.stats(),
            Link::Variable(VariableLink::Fifo(link)) => &link.counters().stats,
            Link::Variable(VariableLink::Scheduled(link)) => &link.counters().stats,
            Link::HoldBuffer(buffer) => &buffer.counters().stats,
        }
    }
}

impl<P: Packet> VariableLink<P> {
    /// A link that is up, its streams of random numbers derived from `seed`.
    ///
    /// # Panics
    /// When [`LinkConfig::check`] refuses `config`.
    pub fn new(config: &LinkConfig, seed: u64) -> VariableLink<P> {
        check(config);
        let seed = |name: &str| stream_seed(seed, name);
        let analytic = matches!(config.queue, QueueConfig::DropTail { .. } | QueueConfig::Red { .. });
        if analytic && config.jitter.is_none() {
            let red = Red::new(&config.queue, config.rate, Random::new(seed("red")));
            let loss = Loss::new(&config.loss, seed("loss"));
            VariableLink::Fifo(FifoLink::new(config.rate, config.delay.0, config.queue.limits(), red, loss))
        } else {
            VariableLink::Scheduled(Box::new(ScheduledQueue::new(config, seed)))
        }
    }

    #[inline]
    pub(crate) fn due(&self) -> u64 {
        match self {
            VariableLink::Fifo(link) => link.due(),
            VariableLink::Scheduled(link) => link.due(),
        }
    }

    /// The line's rate is `rate` from `now` on. The packet being sent keeps its old rate; waiting packets take the new
    /// one.
    ///
    /// # Panics
    /// When `rate` is zero or above [`crate::MAX_RATE`].
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        assert!((1..=MAX_RATE.0).contains(&rate.0), "rate = {rate}: must be from 1 bit/s to 2^62 bit/s");
        match self {
            VariableLink::Fifo(link) => link.set_rate(now.0, rate),
            VariableLink::Scheduled(link) => link.set_rate(now.0, rate),
        }
    }

    /// Packets that start from `now` on take `delay`. Packets on the line keep theirs; no packet overtakes them even
    /// when the delay shrinks (it arrives with the last of them, lost ones included), unless the link has jitter with
    /// reordering.
    pub fn set_delay(&mut self, now: Time, delay: Span) {
        match self {
            VariableLink::Fifo(link) => link.set_delay(now.0, delay.0),
            VariableLink::Scheduled(link) => link.set_delay(now.0, delay.0),
        }
    }

    /// Packets that start from `now` on are lost by `model`, which counts them from 1.
    ///
    /// # Panics
    /// When [`LossModel::check`] refuses `model`.
    pub fn set_loss(&mut self, now: Time, model: LossModel) {
        if let Err(error) = model.check() {
            panic!("loss model out of range: {error}");
        }
        match self {
            VariableLink::Fifo(link) => link.set_loss(now.0, &model),
            VariableLink::Scheduled(link) => link.set_loss(now.0, &model),
        }
    }

    /// Takes the link down or up. Going down loses the packets on the line (and the one being sent); waiting packets
    /// stay and leave when the link comes up. While it is down, packets are queued within the queue's limits.
    pub fn set_up(&mut self, now: Time, up: bool) {
        match self {
            VariableLink::Fifo(link) => link.set_up(now.0, up),
            VariableLink::Scheduled(link) => link.set_up(now.0, up),
        }
    }

    /// Returns whether the link is up.
    pub fn is_up(&self) -> bool {
        match self {
            VariableLink::Fifo(link) => link.is_up(),
            VariableLink::Scheduled(link) => link.is_up(),
        }
    }
}

fn check(config: &LinkConfig) {
    if let Err(error) = config.check() {
        panic!("link configuration out of range: {error}");
    }
}
