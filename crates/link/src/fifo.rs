//! Drop-tail and RED without jitter, analytically: a packet's departure is known when it is admitted.
//!
//! One ring holds the packets that wait and, before them, those on the line; a cursor marks the first that waits. The cursor is
//! moved when someone asks (an arrival, a delivery at the cursor, a reader), not by an event of its own, and passes each packet once.

use crate::config::LossModel;
use crate::ledger::{DropReason, Ledger};
use crate::loss::Loss;
use crate::red::{Red, Verdict};
use crate::ring::Ring;
use crate::serializer::Serializer;
use crate::{Admission, Packet};
use std::collections::VecDeque;
use units::Rate;

/// A time that does not come.
const NEVER: u64 = u64::MAX;

pub(crate) struct Fifo<P> {
    /// When the oldest packet arrives at the far end (or is noticed to be lost).
    due: u64,
    /// Packets with their departures; NEVER for those that wait while the link is down.
    ring: Ring<P>,
    line: Serializer,
    waiting_bytes: u64,
    /// When the first packet that waits starts: when the packet before it has left. Without meaning when none waits.
    starts: u64,
    limit_packets: u64,
    limit_bytes: u64,
    up: bool,
    /// Delay of the oldest packet.
    delay: u64,
    loss: Loss,
    /// Every packet inside has the same delay and its loss still to be drawn: nothing below is in use.
    plain: bool,
    /// Later delays: (number of the first packet, delay). Numbers count all packets that were in the ring, from 0.
    delays: VecDeque<(u64, u64)>,
    /// Packets numbered below were on the line when the loss model changed: their fate is in `doomed`.
    decided: u64,
    /// Numbers of the packets below `decided` that are lost, ascending.
    doomed: VecDeque<u64>,
    red: Option<Box<Red>>,
}

impl<P: Packet> Fifo<P> {
    pub fn new(rate: Rate, delay: u64, limits: (u64, u64), red: Option<Red>, loss: Loss) -> Fifo<P> {
        Fifo {
            due: NEVER,
            ring: Ring::new(),
            line: Serializer::new(rate),
            waiting_bytes: 0,
            starts: 0,
            limit_packets: limits.0,
            limit_bytes: limits.1,
            up: true,
            delay,
            loss,
            plain: true,
            delays: VecDeque::new(),
            decided: 0,
            doomed: VecDeque::new(),
            red: red.map(Box::new),
        }
    }

    #[inline]
    pub fn due(&self) -> u64 {
        self.due
    }

    pub fn inside(&self) -> u64 {
        self.ring.len()
    }

    pub fn queue(&mut self, now: u64) -> (u64, u64) {
        self.advance(now);
        (self.ring.waiting(), self.waiting_bytes)
    }

    #[inline]
    pub fn handle_packet(&mut self, now: u64, mut packet: P, ledger: &mut Ledger<P>) -> Admission<P> {
        let bytes = packet.bytes();
        self.advance(now);
        let free_at = self.line.free_at();
        if self.red.is_some() {
            match self.ask_red(now, free_at, &packet) {
                Verdict::Pass => {}
                Verdict::Mark => {
                    packet.mark_ce();
                    ledger.stats.marked += 1;
                }
                Verdict::Drop => return refuse(packet, DropReason::Aqm, ledger),
            }
        }
        // A free line takes the packet at once: it never waits and no limit holds for it.
        let waits = now < free_at;
        if waits {
            let (others, total) = (self.ring.waiting(), self.waiting_bytes + u64::from(bytes));
            if others >= self.limit_packets || total > self.limit_bytes {
                return refuse(packet, DropReason::QueueFull, ledger);
            }
            if others == 0 {
                self.starts = free_at;
            }
            self.waiting_bytes = total;
            ledger.stats.saw_queue(others + 1, total);
        }
        ledger.stats.enqueued += 1;
        let depart = self.line.send(now, bytes);
        self.ring.push(depart, bytes, packet, waits);
        if self.ring.len() == 1 {
            self.due = self.head_due();
        }
        Admission::Queued
    }

    /// The next packet that has arrived; those lost on the line go to the ledger.
    #[inline]
    pub fn poll_delivery(&mut self, now: u64, ledger: &mut Ledger<P>) -> Option<P> {
        while self.due <= now {
            if self.ring.on_line() == 0 {
                // The oldest packet still counts as waiting: it started long ago, and nobody asked since.
                self.advance(now);
                if self.ring.on_line() == 0 {
                    return None;
                }
            }
            let bytes = self.ring.head_bytes();
            let lost = self.oldest_is_lost(bytes, ledger);
            let packet = self.take_oldest(ledger);
            if !lost {
                ledger.deliver(bytes);
                return packet;
            }
            ledger.lose_some(packet, DropReason::Loss);
        }
        None
    }

    #[inline]
    fn oldest_is_lost(&mut self, bytes: u32, ledger: &Ledger<P>) -> bool {
        if self.plain {
            self.draw_for_oldest(bytes)
        } else {
            self.oldest_is_doomed(bytes, ledger)
        }
    }

    #[inline]
    fn draw_for_oldest(&mut self, bytes: u32) -> bool {
        let ring = &self.ring;
        self.loss.takes(bytes, || ring.head_packet().map_or(0, P::flow_hash))
    }

    #[cold]
    fn oldest_is_doomed(&mut self, bytes: u32, ledger: &Ledger<P>) -> bool {
        let oldest = self.oldest(ledger);
        if oldest >= self.decided {
            return self.draw_for_oldest(bytes);
        }
        let doomed = self.doomed.front() == Some(&oldest);
        if doomed {
            self.doomed.pop_front();
        }
        doomed
    }

    #[inline]
    fn take_oldest(&mut self, ledger: &Ledger<P>) -> Option<P> {
        let packet = self.ring.pop();
        if !self.plain {
            self.settle(ledger);
        }
        // A delay that became shorter does not let packets overtake.
        self.due = self.head_due().max(self.due);
        packet
    }

    /// When the oldest packet would arrive if none were before it.
    #[inline]
    fn head_due(&self) -> u64 {
        self.ring.head_time().saturating_add(self.delay)
    }

    /// Makes what has changed hold for the oldest packet, and forgets changes that all packets inside have seen.
    #[cold]
    fn settle(&mut self, ledger: &Ledger<P>) {
        let oldest = self.oldest(ledger);
        while let Some(&(from, delay)) = self.delays.front() {
            if from > oldest {
                break;
            }
            self.delay = delay;
            self.delays.pop_front();
        }
        self.plain = self.delays.is_empty() && oldest >= self.decided;
    }

    /// Number of the oldest packet; of the next to come when there is none.
    fn oldest(&self, ledger: &Ledger<P>) -> u64 {
        ledger.stats.enqueued - self.ring.len()
    }

    /// Puts onto the line what has started by `now`.
    #[inline]
    fn advance(&mut self, now: u64) {
        while self.ring.waiting() > 0 && self.starts <= now {
            let Some((depart, bytes)) = self.ring.start(|depart, bytes, _| (depart, bytes)) else { return };
            self.waiting_bytes -= u64::from(bytes);
            self.starts = depart;
        }
    }

    #[cold]
    fn ask_red(&mut self, now: u64, free_at: u64, packet: &P) -> Verdict {
        let Some(red) = &mut self.red else { return Verdict::Pass };
        // RED's queue is idle once the line asked for a packet and got none.
        let idle_since = (self.ring.waiting() == 0 && free_at <= now).then_some(free_at);
        red.admit(now, self.waiting_bytes, idle_since, packet.is_ect())
    }

    /// Number of the first packet that waits; of the next to come when none does.
    fn first_waiting(&self, ledger: &Ledger<P>) -> u64 {
        ledger.stats.enqueued - self.ring.waiting()
    }

    /// Sends what waits again: from `start` on at the present rate, or never while the link is down.
    fn resend_waiting(&mut self, start: u64) {
        if self.up {
            self.line.restart(start);
        } else {
            self.line.halt();
        }
        self.starts = self.line.free_at();
        let line = &mut self.line;
        self.ring.retime_waiting(|bytes| line.send(start, bytes));
        self.update_due();
    }

    /// After departures or delays of what waits have changed.
    fn update_due(&mut self) {
        if self.ring.on_line() == 0 {
            self.due = self.head_due();
        }
    }

    pub fn set_rate(&mut self, now: u64, rate: Rate) {
        self.advance(now);
        self.line.set_rate(rate);
        if let Some(red) = &mut self.red {
            red.set_rate(rate);
        }
        if self.ring.waiting() > 0 {
            self.resend_waiting(self.starts);
        }
    }

    pub fn set_delay(&mut self, now: u64, delay: u64, ledger: &Ledger<P>) {
        self.advance(now);
        let from = self.first_waiting(ledger);
        while self.delays.back().is_some_and(|d| d.0 >= from) {
            self.delays.pop_back();
        }
        self.delays.push_back((from, delay));
        self.settle(ledger);
        self.update_due();
    }

    pub fn set_loss(&mut self, now: u64, model: &LossModel, ledger: &Ledger<P>) {
        self.advance(now);
        self.decide_line(ledger);
        self.loss.replace(model);
        self.settle(ledger);
    }

    /// Decides by the present model which packets on the line are lost, before another takes over.
    fn decide_line(&mut self, ledger: &Ledger<P>) {
        let mut number = self.oldest(ledger);
        let Fifo { ring, loss, doomed, decided, .. } = self;
        ring.for_each_on_line(|bytes, packet| {
            if number >= *decided && loss.takes(bytes, || packet.flow_hash()) {
                doomed.push_back(number);
            }
            number += 1;
        });
        *decided = number.max(*decided);
    }

    /// Whether it carries.
    pub fn is_up(&self) -> bool {
        self.up
    }

    pub fn set_up(&mut self, now: u64, up: bool, ledger: &mut Ledger<P>) {
        if up == self.up {
            return;
        }
        self.advance(now);
        self.up = up;
        if !up {
            while self.ring.on_line() > 0 {
                let bytes = self.ring.head_bytes();
                let lost = self.oldest_is_lost(bytes, ledger);
                let packet = self.take_oldest(ledger);
                ledger.lose_some(packet, if lost { DropReason::Loss } else { DropReason::Outage });
            }
        }
        self.resend_waiting(now);
    }
}

#[cold]
fn refuse<P>(packet: P, reason: DropReason, ledger: &mut Ledger<P>) -> Admission<P> {
    ledger.stats.count_drop(reason);
    Admission::Dropped(packet, reason)
}
