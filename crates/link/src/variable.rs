//! A link whose rate, delay, loss and state may change, with static dispatch to the kind's own type.

use crate::admission::Admission;
use crate::config::{LinkConfig, LossModel, QueueConfig, MAX_RATE};
use crate::counters::LinkCounters;
use crate::fifo::FifoLink;
use crate::loss::Loss;
use crate::packet::Packet;
use crate::random::{stream_seed, Random};
use crate::red::Red;
use crate::scheduled_queue::ScheduledQueue;
use units::{Rate, Span, Time};

/// The outcome of [`crate::Link::handle_event`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkEvent<P> {
    /// The packet that has reached the far end.
    pub delivered: Option<P>,
    /// [`crate::Link::poll_timeout`] after the event.
    pub next_event: Time,
    /// True if [`crate::Link::poll_dropped`] has packets.
    pub has_dropped: bool,
}

/// A link whose rate, delay, loss and state may change while packets are inside.
#[allow(clippy::large_enum_variant, reason = "links are few: a pointer to the FIFO would cost every packet a load")]
pub enum VariableLink<P> {
    /// Drop-tail or RED without jitter.
    Fifo(FifoLink<P>),
    /// Any queue discipline, with jitter or without.
    Scheduled(Box<ScheduledQueue<P>>),
}

impl<P: Packet> VariableLink<P> {
    /// A link that is up, its streams of random numbers derived from `seed`, without the policer of `config`.
    ///
    /// # Panics
    /// When [`LinkConfig::check`] refuses `config`.
    pub fn new(config: &LinkConfig, seed: u64) -> VariableLink<P> {
        config.require();
        let seed = |name: &str| stream_seed(seed, name);
        let analytic = matches!(config.queue, QueueConfig::DropTail { .. } | QueueConfig::Red { .. });
        if analytic && config.jitter.is_none() {
            let red = Red::new(&config.queue, config.rate, Random::new(seed("red")));
            let loss = Loss::new(&config.loss, config.framing, seed("loss"));
            VariableLink::Fifo(FifoLink::new(config, red, loss))
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

    #[inline]
    pub(crate) fn handle_packet(&mut self, now: u64, packet: P) -> Admission<P> {
        match self {
            VariableLink::Fifo(link) => link.handle_packet(now, packet),
            VariableLink::Scheduled(link) => link.handle_packet(now, packet),
        }
    }

    #[inline]
    pub(crate) fn handle_event(&mut self, now: u64) -> LinkEvent<P> {
        match self {
            VariableLink::Fifo(link) => {
                let delivered = link.poll_delivery(now);
                LinkEvent { delivered, next_event: Time(link.due()), has_dropped: link.counters().has_dropped() }
            }
            VariableLink::Scheduled(link) => {
                let delivered = link.poll_delivery(now);
                LinkEvent { delivered, next_event: Time(link.due()), has_dropped: link.counters().has_dropped() }
            }
        }
    }

    #[inline]
    pub(crate) fn counters(&self) -> &LinkCounters<P> {
        match self {
            VariableLink::Fifo(link) => link.counters(),
            VariableLink::Scheduled(link) => link.counters(),
        }
    }

    pub(crate) fn counters_mut(&mut self) -> &mut LinkCounters<P> {
        match self {
            VariableLink::Fifo(link) => link.counters_mut(),
            VariableLink::Scheduled(link) => link.counters_mut(),
        }
    }

    pub(crate) fn foresee(&mut self, before: u64, hand: impl FnMut(u64, &P)) {
        match self {
            VariableLink::Fifo(link) => link.foresee(before, hand),
            VariableLink::Scheduled(link) => link.foresee(before, hand),
        }
    }

    pub(crate) fn delay(&self) -> u64 {
        match self {
            VariableLink::Fifo(link) => link.delay(),
            VariableLink::Scheduled(link) => link.delay(),
        }
    }

    pub(crate) fn queue(&mut self, now: u64) -> (u64, u64) {
        match self {
            VariableLink::Fifo(link) => link.queue(now),
            VariableLink::Scheduled(link) => link.queue(now),
        }
    }

    pub(crate) fn inside(&self) -> u64 {
        match self {
            VariableLink::Fifo(link) => link.inside(),
            VariableLink::Scheduled(link) => link.inside(),
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
