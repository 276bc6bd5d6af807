//! A FIFO link, analytic: drop-tail or RED without jitter. A packet's departure is known when it is admitted.
//!
//! One ring holds the packets that wait and, before them, those on the line; a cursor marks the first that waits. The
//! cursor is moved when someone asks (an arrival, a delivery at the cursor, a reader), not by an event of its own, and
//! passes each packet once.

use crate::admission::Admission;
use crate::config::{LinkConfig, LossModel};
use crate::counters::{DropReason, LinkCounters};
use crate::loss::Loss;
use crate::packet::Packet;
use crate::red::{Red, RedDecision};
use crate::ring::Ring;
use crate::serializer::Serializer;
use std::collections::VecDeque;
use units::{Rate, Time};

/// A FIFO link with one pending event: the arrival of its oldest packet.
pub struct FifoLink<P> {
    /// Time at which the oldest packet arrives at the far end (or is noticed to be lost).
    due: u64,
    /// Packets with their departures; `u64::MAX` for those that wait while the link is down.
    ring: Ring<P>,
    transmitter: Serializer,
    waiting_bytes: u64,
    /// Time at which the first waiting packet starts, as the one before it has left. Undefined when none waits.
    next_start: u64,
    limit_packets: u64,
    limit_bytes: u64,
    up: bool,
    /// Delay of the oldest packet.
    delay: u64,
    loss: Loss,
    /// Every packet inside has the same delay and its loss still to be drawn: nothing below is in use.
    unchanged: bool,
    /// Later delays: (number of the first packet, delay). Numbers count all packets that were in the ring, from 0.
    delays: VecDeque<(u64, u64)>,
    /// Packets numbered below were on the line when the loss model changed: their fate is in `lost_in_transit`.
    drawn_below: u64,
    /// Numbers of the packets below `drawn_below` that are lost, ascending.
    lost_in_transit: VecDeque<u64>,
    /// Number of the packet that [`FifoLink::foresee`] comes to next, and arrival of the one before it.
    foreseen: (u64, u64),
    red: Option<Box<Red>>,
    counters: LinkCounters<P>,
}

impl<P: Packet> FifoLink<P> {
    pub(crate) fn new(config: &LinkConfig, red: Option<Red>, loss: Loss) -> FifoLink<P> {
        let (limit_packets, limit_bytes) = config.queue.limits();
        FifoLink {
            due: Time::NEVER.0,
            ring: Ring::new(),
            transmitter: Serializer::new(config.rate, config.framing),
            waiting_bytes: 0,
            next_start: 0,
            limit_packets,
            limit_bytes,
            up: true,
            delay: config.delay.0,
            loss,
            unchanged: true,
            delays: VecDeque::new(),
            drawn_below: 0,
            lost_in_transit: VecDeque::new(),
            foreseen: (0, 0),
            red: red.map(Box::new),
            counters: LinkCounters::new(),
        }
    }

    #[inline]
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    #[inline]
    pub(crate) fn counters(&self) -> &LinkCounters<P> {
        &self.counters
    }

    pub(crate) fn counters_mut(&mut self) -> &mut LinkCounters<P> {
        &mut self.counters
    }

    pub(crate) fn inside(&self) -> u64 {
        self.ring.len()
    }

    pub(crate) fn queue(&mut self, now: u64) -> (u64, u64) {
        self.advance(now);
        (self.ring.waiting(), self.waiting_bytes)
    }

    // Once per packet and hop; as a call, which it becomes for its second caller (policed), it takes a twentieth more
    // instructions of the engine (callgrind).
    #[inline(always)]
    pub(crate) fn handle_packet(&mut self, now: u64, mut packet: P) -> Admission<P> {
        let bytes = packet.bytes();
        self.advance(now);
        let free_at = self.transmitter.free_at();
        if self.red.is_some() {
            match self.red_decision(now, free_at, &packet) {
                RedDecision::Pass => {}
                RedDecision::Mark => {
                    packet.mark_ce();
                    self.counters.stats.marked += 1;
                }
                RedDecision::Drop => return refuse(packet, DropReason::Aqm, &mut self.counters),
            }
        }
        // A free line takes the packet at once: it never waits and no limit holds for it.
        let waits = now < free_at;
        if waits {
            let (others, total) = (self.ring.waiting(), self.waiting_bytes + u64::from(bytes));
            if others >= self.limit_packets || total > self.limit_bytes {
                return refuse(packet, DropReason::QueueFull, &mut self.counters);
            }
            if others == 0 {
                self.next_start = free_at;
            }
            self.waiting_bytes = total;
            self.counters.stats.record_queue(others + 1, total);
        }
        self.counters.stats.enqueued += 1;
        let depart = self.transmitter.send(now, bytes);
        self.ring.push(depart, bytes, packet, waits);
        if self.ring.len() == 1 {
            self.due = self.head_due();
            return Admission::Queued { next_event: Some(Time(self.due)) };
        }
        // A packet that joins behind another one does not change the next event.
        Admission::Queued { next_event: None }
    }

    /// The next packet that has arrived; those lost on the line go to the counters.
    #[inline]
    pub(crate) fn poll_delivery(&mut self, now: u64) -> Option<P> {
        while self.due <= now {
            if self.ring.in_transit() == 0 {
                // The oldest packet still counts as waiting: it has started since the last call.
                self.advance(now);
                if self.ring.in_transit() == 0 {
                    return None;
                }
            }
            let bytes = self.ring.head_bytes();
            let lost = self.oldest_is_lost(bytes);
            let packet = self.take_oldest();
            if !lost {
                self.counters.deliver(bytes);
                return packet;
            }
            self.counters.drop_inside_if_any(packet, DropReason::Loss);
        }
        None
    }

    #[inline]
    fn oldest_is_lost(&mut self, bytes: u32) -> bool {
        if self.unchanged {
            self.draw_for_oldest(bytes)
        } else {
            self.oldest_was_drawn_lost(bytes)
        }
    }

    #[inline]
    fn draw_for_oldest(&mut self, bytes: u32) -> bool {
        let ring = &self.ring;
        self.loss.loses(bytes, || ring.head_packet().map_or(0, P::flow_hash))
    }

    #[cold]
    fn oldest_was_drawn_lost(&mut self, bytes: u32) -> bool {
        let oldest = self.oldest();
        if oldest >= self.drawn_below {
            return self.draw_for_oldest(bytes);
        }
        let lost_in_transit = self.lost_in_transit.front() == Some(&oldest);
        if lost_in_transit {
            self.lost_in_transit.pop_front();
        }
        lost_in_transit
    }

    /// Hands over copies of the packets that arrive at the far end before `before` if nothing changes until then, with
    /// their times, each once. They stay here.
    pub(crate) fn foresee(&mut self, before: u64, mut hand: impl FnMut(u64, &P)) {
        if self.due >= before {
            return;
        }
        let oldest = self.oldest();
        let draws = !self.loss.is_never();
        let FifoLink { ring, due, delay, delays, loss, drawn_below, lost_in_transit, foreseen, .. } = self;
        let (mut number, mut last) = (foreseen.0.max(oldest), foreseen.1);
        let mut later = delays.iter().peekable();
        let mut delay = *delay;
        ring.read(0, |depart, bytes, packet| {
            while let Some(&(_, next)) = later.next_if(|&&(from, _)| from <= number) {
                delay = next;
            }
            let at = if number == oldest { *due } else { depart.saturating_add(delay).max(last) };
            if at >= before {
                return false;
            }
            last = at;
            let mut is_lost = false;
            if number < *drawn_below {
                is_lost = lost_in_transit.binary_search(&number).is_ok();
            } else if draws {
                is_lost = loss.loses(bytes, || packet.flow_hash());
                *drawn_below = number + 1;
                if is_lost {
                    lost_in_transit.push_back(number);
                }
            }
            if !is_lost {
                hand(at, packet);
            }
            number += 1;
            *foreseen = (number, at);
            true
        });
        self.unchanged &= self.drawn_below <= oldest;
    }

    /// Delay of packets that start from now on.
    pub(crate) fn delay(&self) -> u64 {
        self.delays.back().map_or(self.delay, |&(_, delay)| delay)
    }

    #[inline]
    fn take_oldest(&mut self) -> Option<P> {
        let packet = self.ring.pop();
        if !self.unchanged {
            self.apply_changes();
        }
        // A delay that became shorter does not let packets overtake.
        self.due = self.head_due().max(self.due);
        packet
    }

    /// Time at which the oldest packet would arrive if none were before it.
    #[inline]
    fn head_due(&self) -> u64 {
        self.ring.head_time().saturating_add(self.delay)
    }

    /// Makes what has changed hold for the oldest packet, and forgets changes that all packets inside have seen.
    #[cold]
    fn apply_changes(&mut self) {
        let oldest = self.oldest();
        while let Some(&(from, delay)) = self.delays.front() {
            if from > oldest {
                break;
            }
            self.delay = delay;
            self.delays.pop_front();
        }
        self.unchanged = self.delays.is_empty() && oldest >= self.drawn_below;
    }

    /// Number of the oldest packet; of the next to come when there is none.
    fn oldest(&self) -> u64 {
        self.counters.stats.enqueued - self.ring.len()
    }

    /// Puts onto the line what has started by `now`.
    #[inline]
    fn advance(&mut self, now: u64) {
        while self.ring.waiting() > 0 && self.next_start <= now {
            let Some((depart, bytes)) = self.ring.start(|depart, bytes, _| (depart, bytes)) else { return };
            self.waiting_bytes -= u64::from(bytes);
            self.next_start = depart;
        }
    }

    #[cold]
    fn red_decision(&mut self, now: u64, free_at: u64, packet: &P) -> RedDecision {
        let Some(red) = &mut self.red else { return RedDecision::Pass };
        // RED's queue is idle once the line asked for a packet and got none.
        let idle_since = (self.ring.waiting() == 0 && free_at <= now).then_some(free_at);
        red.admit(now, self.waiting_bytes, idle_since, packet.is_ect())
    }

    /// Number of the first packet that waits; of the next to come when none does.
    fn first_waiting(&self) -> u64 {
        self.counters.stats.enqueued - self.ring.waiting()
    }

    /// Sends what waits again: from `start` on at the present rate, or never while the link is down.
    fn resend_waiting(&mut self, start: u64) {
        if self.up {
            self.transmitter.restart(start);
        } else {
            self.transmitter.halt();
        }
        self.next_start = self.transmitter.free_at();
        let line = &mut self.transmitter;
        self.ring.retime_waiting(|bytes| line.send(start, bytes));
        self.update_due();
    }

    /// After departures or delays of what waits have changed.
    fn update_due(&mut self) {
        if self.ring.in_transit() == 0 {
            self.due = self.head_due();
        }
    }

    pub(crate) fn set_rate(&mut self, now: u64, rate: Rate) {
        self.advance(now);
        self.transmitter.set_rate(rate);
        if let Some(red) = &mut self.red {
            red.set_rate(rate);
        }
        if self.ring.waiting() > 0 {
            self.resend_waiting(self.next_start);
        }
    }

    pub(crate) fn set_delay(&mut self, now: u64, delay: u64) {
        self.advance(now);
        let from = self.first_waiting();
        while self.delays.back().is_some_and(|d| d.0 >= from) {
            self.delays.pop_back();
        }
        self.delays.push_back((from, delay));
        self.apply_changes();
        self.update_due();
    }

    pub(crate) fn set_loss(&mut self, now: u64, model: &LossModel) {
        self.advance(now);
        self.draw_in_transit();
        self.loss.replace(model);
        self.apply_changes();
    }

    /// Decides by the present model which packets on the line are lost, before another takes over.
    fn draw_in_transit(&mut self) {
        let mut number = self.oldest();
        let FifoLink { ring, loss, lost_in_transit, drawn_below, .. } = self;
        ring.for_each_in_transit(|bytes, packet| {
            if number >= *drawn_below && loss.loses(bytes, || packet.flow_hash()) {
                lost_in_transit.push_back(number);
            }
            number += 1;
        });
        *drawn_below = number.max(*drawn_below);
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    pub(crate) fn set_up(&mut self, now: u64, up: bool) {
        if up == self.up {
            return;
        }
        self.advance(now);
        self.up = up;
        if !up {
            while self.ring.in_transit() > 0 {
                let bytes = self.ring.head_bytes();
                let lost = self.oldest_is_lost(bytes);
                let packet = self.take_oldest();
                self.counters.drop_inside_if_any(packet, if lost { DropReason::Loss } else { DropReason::Outage });
            }
        }
        self.resend_waiting(now);
    }
}

#[cold]
fn refuse<P>(packet: P, reason: DropReason, counters: &mut LinkCounters<P>) -> Admission<P> {
    counters.stats.count_drop(reason);
    Admission::Dropped(packet, reason)
}
