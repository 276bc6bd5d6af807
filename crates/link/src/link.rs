//! The link as its users see it.

use crate::config::{LinkConfig, LossModel, QueueConfig};
use crate::fifo::Fifo;
use crate::gate::{Gate, Hold, Kept};
use crate::ledger::{DropReason, Ledger, Stats};
use crate::loss::Loss;
use crate::pacer::Pacer;
use crate::passage::Passage;
use crate::random::{stream_seed, Random};
use crate::red::Red;
use crate::ring::Ring;
use crate::server::Server;
use crate::Packet;
use units::{Rate, Span, Time};

/// What became of a packet that was handed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission<P> {
    /// It is inside: it will be delivered, or reported by [`Link::poll_dropped`].
    Queued,
    /// It was refused, and is not reported again.
    Dropped(P, DropReason),
}

/// What is wrong when a link made by [`Link::fixed`] is changed.
const CHANGED: &str = "a link that was made to stay as it is cannot be changed, nor can a gate";

// Links are few and each is used all the time: an indirection to the FIFO would cost every packet a load.
#[allow(clippy::large_enum_variant)]
enum Engine<P> {
    Fifo(Fifo<P>),
    Served(Box<Server<P>>),
    /// With the packets that will be at the far end at a time that is known.
    Passage(Passage, Ring<P, ()>),
    Gate(Box<Gate<P>>),
}

impl<P: Packet> Engine<P> {
    /// One that may be changed.
    fn with_events(config: &LinkConfig, seed: u64) -> Engine<P> {
        let seed = |name: &str| stream_seed(seed, name);
        let analytic = matches!(config.queue, QueueConfig::DropTail { .. } | QueueConfig::Red { .. });
        if analytic && config.jitter.is_none() {
            let red = Red::new(&config.queue, config.rate, Random::new(seed("red")));
            let loss = Loss::new(&config.loss, seed("loss"));
            Engine::Fifo(Fifo::new(config.rate, config.delay.0, config.queue.limits(), red, loss))
        } else {
            Engine::Served(Box::new(Server::new(config, seed)))
        }
    }
}

/// One direction of a link. See the crate's documentation.
///
/// Times handed in must not go back. Whoever calls late (a real clock) gets what was due by then; a packet's time on the link
/// is computed from its own arrival, not from the call.
pub struct Link<P> {
    /// Copy of the engine's next event, so that asking for it is one load.
    due: u64,
    engine: Engine<P>,
    ledger: Ledger<P>,
}

impl<P: Packet> Link<P> {
    /// A link that is up, its streams of random numbers derived from `seed`.
    ///
    /// # Panics
    /// When [`LinkConfig::check`] refuses `config`.
    pub fn new(config: LinkConfig, seed: u64) -> Link<P> {
        Link::of(&config, || Engine::with_events(&config, seed))
    }

    /// A link that is up and stays as it is: changing it panics. Where its kind allows (drop-tail without jitter), what becomes
    /// of a packet is then computed when it comes: see [`Link::pass`].
    ///
    /// # Panics
    /// When [`LinkConfig::check`] refuses `config`.
    pub fn fixed(config: LinkConfig, seed: u64) -> Link<P> {
        Link::of(&config, || match Passage::new(&config, stream_seed(seed, "loss")) {
            Some(passage) => Engine::Passage(passage, Ring::new()),
            None => Engine::with_events(&config, seed),
        })
    }

    /// A delay line without a delay ([`Link::begin_hold`] gives it one) before the line of `pacer`: what is kept back is let go as
    /// that line can send it, in turn with other gates for it. Without `limit_bytes` it takes whatever comes. It has neither
    /// loss nor outage, and its only changes are a hold and a pace.
    pub fn gate(pacer: &Pacer, limit_bytes: Option<u64>) -> Link<P> {
        let engine = Engine::Gate(Box::new(Gate::new(pacer.clone(), limit_bytes)));
        Link { due: u64::MAX, engine, ledger: Ledger::new() }
    }

    /// From `now` on packets are kept back as `hold` says. What is inside leaves as it would have.
    ///
    /// # Panics
    /// When the link is not a gate.
    pub fn begin_hold(&mut self, now: Time, hold: Hold) {
        let Engine::Gate(gate) = &mut self.engine else { panic!("only a gate holds packets back") };
        gate.begin(now.0, hold);
    }

    /// From now on the gates of this one's line that take turns let go at `rate` together; turns that are taken stay.
    ///
    /// # Panics
    /// When the link is not a gate; when `rate` is zero or above [`crate::MAX_RATE`].
    pub fn set_pace(&mut self, rate: Rate) {
        let Engine::Gate(gate) = &mut self.engine else { panic!("only a gate has a pace") };
        gate.set_pace(rate);
    }

    /// Whether what comes to a gate at `now` may have to wait: until its hold is over, and as long as it or another that it takes turns
    /// with keeps something back. None when the link is of another kind.
    pub fn is_closed(&mut self, now: Time) -> Option<bool> {
        match &mut self.engine {
            Engine::Gate(gate) => Some(gate.is_closed(now.0)),
            _ => None,
        }
    }

    /// What a gate has kept back so far; None when the link is of another kind.
    pub fn kept(&self) -> Option<Kept> {
        match &self.engine {
            Engine::Gate(gate) => Some(gate.kept()),
            _ => None,
        }
    }

    /// The same, and begins to count anew: what comes now is kept back for another reason.
    pub fn take_kept(&mut self) -> Option<Kept> {
        match &mut self.engine {
            Engine::Gate(gate) => Some(gate.take_kept()),
            _ => None,
        }
    }

    fn of(config: &LinkConfig, engine: impl FnOnce() -> Engine<P>) -> Link<P> {
        if let Err(error) = config.check() {
            panic!("a link cannot be made: {error}");
        }
        Link { due: u64::MAX, engine: engine(), ledger: Ledger::new() }
    }

    /// Whether [`Link::pass`] may be called.
    #[inline]
    pub fn is_passage(&self) -> bool {
        matches!(self.engine, Engine::Passage(..))
    }

    /// `packet` comes at `at`, which may be later than `now`: when it reaches the far end, or why it does not. The packet
    /// stays with the caller, who may hand it on to the link that follows, or leave it here with [`Link::hold`].
    ///
    /// Neither `now` nor `at` may go back, whoever hands packets in.
    ///
    /// # Errors
    /// Why the packet is dropped; it is not reported again.
    ///
    /// # Panics
    /// When [`Link::is_passage`] says no.
    #[inline]
    pub fn pass(&mut self, now: Time, at: Time, packet: &P) -> Result<Time, DropReason> {
        let Engine::Passage(passage, _) = &mut self.engine else { unreachable!("not a passage") };
        passage.pass(now.0, at.0, packet, &mut self.ledger.stats).map(Time)
    }

    /// Keeps a packet that has passed until `at`, its time at the far end, for [`Link::poll_delivery`].
    ///
    /// # Panics
    /// When [`Link::is_passage`] says no.
    #[inline]
    pub fn hold(&mut self, at: Time, packet: P) {
        let Engine::Passage(_, arriving) = &mut self.engine else { unreachable!("not a passage") };
        arriving.push(at.0, (), packet, false);
        self.due = self.due.min(at.0);
    }

    /// A packet arrives at the queue at `now`.
    #[inline]
    pub fn handle_packet(&mut self, now: Time, packet: P) -> Admission<P> {
        match &mut self.engine {
            Engine::Fifo(fifo) => {
                let admission = fifo.handle_packet(now.0, packet, &mut self.ledger);
                self.due = fifo.due();
                admission
            }
            Engine::Served(server) => {
                let admission = server.handle_packet(now.0, packet, &mut self.ledger);
                self.due = server.due();
                admission
            }
            Engine::Gate(gate) => {
                let admission = gate.handle_packet(now.0, packet, &mut self.ledger);
                self.due = gate.due();
                admission
            }
            Engine::Passage(..) => match self.pass(now, now, &packet) {
                Ok(at) => {
                    self.hold(at, packet);
                    Admission::Queued
                }
                Err(reason) => Admission::Dropped(packet, reason),
            },
        }
    }

    /// The time of [`Link::poll_timeout`] has come. Poll for deliveries and drops afterwards.
    #[inline]
    pub fn handle_timeout(&mut self, now: Time) {
        match &mut self.engine {
            Engine::Served(server) => {
                server.handle_timeout(now.0, &mut self.ledger);
                self.due = server.due();
            }
            Engine::Gate(gate) => {
                gate.take_turn(now.0);
                self.due = gate.due();
            }
            Engine::Fifo(_) | Engine::Passage(..) => {}
        }
    }

    /// The next packet that has reached the far end by `now`; call until None, or once per [`Link::poll_timeout`].
    #[inline]
    pub fn poll_delivery(&mut self, now: Time) -> Option<P> {
        if self.due > now.0 {
            return None;
        }
        match &mut self.engine {
            Engine::Fifo(fifo) => {
                let packet = fifo.poll_delivery(now.0, &mut self.ledger);
                self.due = fifo.due();
                packet
            }
            Engine::Served(server) => {
                let packet = server.poll_delivery(now.0, &mut self.ledger);
                self.due = server.due();
                packet
            }
            Engine::Gate(gate) => {
                let packet = gate.poll_delivery(now.0, &mut self.ledger);
                self.due = gate.due();
                packet
            }
            Engine::Passage(_, arriving) => {
                let packet = arriving.pop();
                self.due = arriving.head_time();
                packet
            }
        }
    }

    /// When something happens next: a delivery, a loss that becomes known, or a packet that starts; [`Time::NEVER`] if nothing
    /// will. Never later than the next delivery.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        Time(self.due)
    }

    /// A packet lost after it was admitted, and why; call until None.
    ///
    /// A loss on the line is known when the packet comes (a link made by [`Link::fixed`] that is a passage), when it would have
    /// arrived (drop-tail and RED without jitter) or when it starts (the others); an outage and a drop by CoDel or FQ-CoDel at once.
    pub fn poll_dropped(&mut self) -> Option<(P, DropReason)> {
        self.ledger.dropped.pop_front()
    }

    /// Whether [`Link::poll_dropped`] has something.
    #[inline]
    pub fn has_dropped(&self) -> bool {
        !self.ledger.dropped.is_empty()
    }

    /// The line's rate is `rate` from `now` on. The packet being sent ends as it began; those that wait go at the new rate.
    ///
    /// # Panics
    /// When `rate` is zero or above [`crate::MAX_RATE`].
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        assert!((1..=crate::MAX_RATE.0).contains(&rate.0), "rate = {rate}: must be from 1 bit/s to 2^62 bit/s");
        match &mut self.engine {
            Engine::Fifo(fifo) => fifo.set_rate(now.0, rate),
            Engine::Served(server) => server.set_rate(now.0, rate, &mut self.ledger),
            Engine::Passage(..) | Engine::Gate(_) => panic!("{CHANGED}"),
        }
        self.refresh();
    }

    /// Packets that start from `now` on take `delay`. Those on the line keep theirs; no packet overtakes them even when the
    /// delay shrinks (it arrives with the last of them, lost ones included), unless the link has jitter with reordering.
    pub fn set_delay(&mut self, now: Time, delay: Span) {
        match &mut self.engine {
            Engine::Fifo(fifo) => fifo.set_delay(now.0, delay.0, &self.ledger),
            Engine::Served(server) => server.set_delay(now.0, delay.0, &mut self.ledger),
            Engine::Passage(..) | Engine::Gate(_) => panic!("{CHANGED}"),
        }
        self.refresh();
    }

    /// Packets that start from `now` on are lost by `model`, which counts them from 1.
    ///
    /// # Panics
    /// When [`LossModel::check`] refuses `model`.
    pub fn set_loss(&mut self, now: Time, model: LossModel) {
        if let Err(error) = model.check() {
            panic!("a link cannot lose packets so: {error}");
        }
        match &mut self.engine {
            Engine::Fifo(fifo) => fifo.set_loss(now.0, &model, &self.ledger),
            Engine::Served(server) => server.set_loss(now.0, &model, &mut self.ledger),
            Engine::Passage(..) | Engine::Gate(_) => panic!("{CHANGED}"),
        }
        self.refresh();
    }

    /// Takes the link down or up. Going down loses what is on the line (and being sent); what waits stays and goes when the
    /// link comes up. While it is down, packets are queued within the queue's limits.
    pub fn set_up(&mut self, now: Time, up: bool) {
        match &mut self.engine {
            Engine::Fifo(fifo) => fifo.set_up(now.0, up, &mut self.ledger),
            Engine::Served(server) => server.set_up(now.0, up, &mut self.ledger),
            Engine::Passage(..) | Engine::Gate(_) => panic!("{CHANGED}"),
        }
        self.refresh();
    }

    /// Whether it carries; a link that nothing takes down does.
    pub fn is_up(&self) -> bool {
        match &self.engine {
            Engine::Fifo(fifo) => fifo.is_up(),
            Engine::Served(server) => server.is_up(),
            Engine::Passage(..) | Engine::Gate(_) => true,
        }
    }

    /// Packets and bytes that wait at `now`, the packet being sent not among them.
    pub fn queue(&mut self, now: Time) -> (u64, u64) {
        let queue = match &mut self.engine {
            Engine::Fifo(fifo) => fifo.queue(now.0),
            Engine::Served(server) => server.queue(now.0, &mut self.ledger),
            Engine::Gate(gate) => gate.queue(),
            Engine::Passage(passage, _) => {
                let queue = passage.queue(now.0);
                self.ledger.stats.enqueued = passage.arrived();
                return queue;
            }
        };
        self.refresh();
        queue
    }

    /// Packets inside: waiting, being sent, on the line. Those that [`Link::poll_dropped`] has not handed out are not.
    pub fn packets_inside(&self) -> u64 {
        match &self.engine {
            Engine::Fifo(fifo) => fifo.inside(),
            Engine::Served(server) => server.inside(),
            Engine::Passage(passage, _) => passage.inside(),
            Engine::Gate(gate) => gate.inside(),
        }
    }

    /// Brings counters to `now`: those of a passage are not up to date otherwise. What has been enqueued, and what
    /// [`Link::packets_inside`] says, is as of the last look at the queue.
    pub fn settle(&mut self, now: Time) {
        if let Engine::Passage(passage, _) = &mut self.engine {
            passage.settle(now.0, &mut self.ledger.stats);
        }
    }

    /// Counters since the link was made.
    pub fn stats(&self) -> &Stats {
        &self.ledger.stats
    }

    fn refresh(&mut self) {
        self.due = match &self.engine {
            Engine::Fifo(fifo) => fifo.due(),
            Engine::Served(server) => server.due(),
            Engine::Passage(_, arriving) => arriving.head_time(),
            Engine::Gate(gate) => gate.due(),
        };
    }
}
