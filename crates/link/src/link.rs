//! A link of any kind, with static dispatch to the kind's own type.

use crate::admission::Admission;
use crate::batched::BatchedLink;
use crate::config::{LinkConfig, PolicerConfig};
use crate::counters::{DropReason, Stats};
use crate::hold_buffer::HoldBuffer;
use crate::pacer::Pacers;
use crate::packet::Packet;
use crate::policed::PolicedLink;
use crate::precomputed::PrecomputedLink;
use crate::prefetch::prefetch;
use crate::random::stream_seed;
use crate::sampling::Sample;
use crate::variable::{LinkEvent, VariableLink};
use units::{Span, Time};

/// Bytes of a link that a sample reads.
const SAMPLED_BYTES: usize = 256;

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
    /// A link that may change, behind a policer.
    Policed(Box<PolicedLink<P>>),
    /// It takes packets in batches.
    Batched(Box<BatchedLink<P>>),
}

impl<P: Packet> Link<P> {
    /// A [`VariableLink`] that is up, its streams of random numbers derived from `seed`, behind its policer if `config`
    /// has one; a [`BatchedLink`], which does not change, if it has batches.
    ///
    /// # Panics
    /// When [`LinkConfig::check`] refuses `config`.
    pub fn variable(config: &LinkConfig, seed: u64) -> Link<P> {
        if let Some(batching) = config.batching {
            config.require();
            return Link::Batched(Box::new(BatchedLink::new(config, batching)));
        }
        let link = VariableLink::new(config, seed);
        match &config.policer {
            Some(policer) => Link::Policed(Box::new(PolicedLink::new(Some(policer), link))),
            None => Link::Variable(link),
        }
    }

    /// As [`Link::variable`], and its policer may change, too: [`Link::set_policer`].
    ///
    /// # Panics
    /// When [`LinkConfig::check`] refuses `config`.
    pub fn live(config: &LinkConfig, seed: u64) -> Link<P> {
        if config.batching.is_some() {
            return Link::variable(config, seed);
        }
        Link::Policed(Box::new(PolicedLink::new(config.policer.as_ref(), VariableLink::new(config, seed))))
    }

    /// A link that is up and never changes: a [`PrecomputedLink`] where `config` allows one, else as
    /// [`Link::variable`].
    ///
    /// # Panics
    /// When [`LinkConfig::check`] refuses `config`.
    pub fn fixed(config: &LinkConfig, seed: u64) -> Link<P> {
        config.require();
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

    /// Returns true if the packet that this link delivered last has another one of its batch behind it.
    #[inline]
    pub fn is_followed(&self) -> bool {
        matches!(self, Link::Batched(link) if link.is_followed())
    }

    /// This link, when it may change.
    pub fn as_variable_mut(&mut self) -> Option<&mut VariableLink<P>> {
        match self {
            Link::Variable(link) => Some(link),
            Link::Policed(policed) => Some(policed.link_mut()),
            _ => None,
        }
    }

    /// Packets that come from now on pass `policer`, whose bucket is full; None: no policer. False: the link is none
    /// of [`Link::live`], and unchanged.
    ///
    /// # Panics
    /// When [`PolicerConfig::check`] refuses `policer`.
    pub fn set_policer(&mut self, policer: Option<&PolicerConfig>) -> bool {
        let Link::Policed(policed) = self else { return false };
        if let Some(Err(error)) = policer.map(PolicerConfig::check) {
            panic!("policer out of range: {error}");
        }
        policed.set_policer(policer);
        true
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
            Link::Variable(link) => link.handle_packet(now.0, packet),
            Link::HoldBuffer(buffer) => buffer.handle_packet(now.0, packet, pacers),
            Link::Policed(policed) => policed.handle_packet(now.0, packet),
            Link::Batched(link) => link.handle_packet(now.0, packet),
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
            Link::Variable(link) => link.handle_event(now.0),
            Link::HoldBuffer(buffer) => {
                let delivered = buffer.poll_delivery(now.0, pacers);
                LinkEvent { delivered, next_event: Time(buffer.due()), has_dropped: false }
            }
            Link::Policed(policed) => policed.link_mut().handle_event(now.0),
            Link::Batched(link) => link.handle_event(now.0),
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
            Link::Policed(policed) => policed.link().due(),
            Link::Batched(link) => link.due(),
        })
    }

    /// Least time from the departure of a packet that starts from now on to its arrival at the far end.
    pub fn delay(&self) -> Span {
        match self {
            Link::Precomputed(link) => link.delay(),
            Link::Variable(link) => Span(link.delay()),
            Link::Policed(policed) => Span(policed.link().delay()),
            Link::Batched(link) => Span(link.delay()),
            Link::HoldBuffer(_) => Span::ZERO,
        }
    }

    /// Hands over copies of the packets that reach the far end before `before`, with their times, ns, each once over
    /// all calls, and keeps the packets: [`Link::handle_event`] delivers them as ever. The caller has handled all that
    /// comes here up to [`Link::delay`] before that time, and changes nothing until then.
    ///
    /// A precomputed link and a hold buffer hand over nothing.
    #[inline]
    pub fn foresee(&mut self, before: u64, hand: impl FnMut(u64, &P)) {
        match self {
            Link::Variable(link) => link.foresee(before, hand),
            Link::Policed(policed) => policed.link_mut().foresee(before, hand),
            Link::Batched(link) => link.foresee(before, hand),
            Link::Precomputed(_) | Link::HoldBuffer(_) => {}
        }
    }

    /// A packet lost after it was admitted, and why; call until None.
    ///
    /// A loss on the line is known when it would have arrived (FIFO) or when it starts (scheduled queue); an outage
    /// and a drop by CoDel or FQ-CoDel at once. A precomputed link reports a loss when the packet arrives, and never
    /// here.
    pub fn poll_dropped(&mut self) -> Option<(P, DropReason)> {
        match self {
            Link::Variable(link) => link.counters_mut().dropped.pop_front(),
            Link::Policed(policed) => policed.link_mut().counters_mut().dropped.pop_front(),
            Link::Precomputed(_) | Link::HoldBuffer(_) | Link::Batched(_) => None,
        }
    }

    /// Returns whether [`Link::poll_dropped`] has packets.
    #[inline]
    pub fn has_dropped(&self) -> bool {
        match self {
            Link::Variable(link) => link.counters().has_dropped(),
            Link::Policed(policed) => policed.link().counters().has_dropped(),
            Link::Precomputed(_) | Link::HoldBuffer(_) | Link::Batched(_) => false,
        }
    }

    /// Returns whether the link is up.
    pub fn is_up(&self) -> bool {
        match self {
            Link::Variable(link) => link.is_up(),
            Link::Policed(policed) => policed.link().is_up(),
            Link::Precomputed(_) | Link::HoldBuffer(_) | Link::Batched(_) => true,
        }
    }

    /// Packets and bytes that wait at `now`, without the packet being sent.
    pub fn queue(&mut self, now: Time) -> (u64, u64) {
        match self {
            Link::Precomputed(link) => link.queue(now.0),
            Link::Variable(link) => link.queue(now.0),
            Link::HoldBuffer(buffer) => buffer.queue(),
            Link::Policed(policed) => policed.link_mut().queue(now.0),
            Link::Batched(link) => link.queue(),
        }
    }

    /// Takes samples at `first` and every `interval` behind it: [`Link::sample`] is asked at these times then, in their
    /// order, and need not be kept in mind for anything else that is computed ahead of time.
    pub fn take_samples(&mut self, first: Time, interval: Span) {
        if let Link::Precomputed(link) = self {
            link.take_samples(first.0, interval.0);
        }
    }

    /// Begins to fetch what [`Link::sample`] needs: the link, or, with `next`, what that leads to.
    #[inline]
    pub fn prefetch_sample(&self, next: bool) {
        match self {
            _ if !next => prefetch(self, SAMPLED_BYTES),
            Link::Precomputed(link) => link.prefetch_sample(),
            _ => {}
        }
    }

    /// The sample at `now`.
    pub fn sample(&mut self, now: Time) -> Sample {
        if let Link::Precomputed(link) = self {
            if let Some(sample) = link.sample(now.0) {
                return sample;
            }
        }
        self.settle(now);
        let (queue_packets, queue_bytes) = self.queue(now);
        let stats = self.stats();
        Sample { queue_packets, queue_bytes, dropped_packets: stats.dropped(), delivered_bytes: stats.delivered_bytes }
    }

    /// Packets inside: waiting, being sent, on the line; without those that [`Link::poll_dropped`] has yet to report.
    pub fn packets_inside(&self) -> u64 {
        match self {
            Link::Precomputed(link) => link.inside(),
            Link::Variable(link) => link.inside(),
            Link::HoldBuffer(buffer) => buffer.inside(),
            Link::Policed(policed) => policed.link().inside(),
            Link::Batched(link) => link.inside(),
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
            Link::Variable(link) => &link.counters().stats,
            Link::HoldBuffer(buffer) => &buffer.counters().stats,
            Link::Policed(policed) => &policed.link().counters().stats,
            Link::Batched(link) => &link.counters().stats,
        }
    }
}
