//! An initiator behind one gateway, a target with a disk behind the other.

use super::end::End;
use super::host::Host;
use crate::block::Backing;
use crate::fc::carried::Carried;
use crate::fc::names::Names;
use crate::fc::ports::Ports;
use crate::fc_counters::FcCounters;
use crate::fcp_counters::{ExchangeCounters, FcpCounters};
use crate::node::NodeCounters;
use crate::request_counters::RequestCounters;
use crate::side::Side;
use units::Time;
use wire::fc::Frame;

/// An initiator and a target.
pub struct FcpPair {
    connection: usize,
    /// By side.
    ends: [End; 2],
    /// By side.
    names: [Names; 2],
    host: Host,
    backing: Backing,
    /// Time at which a port or a gateway has something to send that no timer tells of.
    roused: Time,
}

impl FcpPair {
    /// At rest; `ends` and their `names` by side, over connection `connection` of their gateways.
    pub fn new(connection: usize, ends: [End; 2], names: [Names; 2], host: Host, backing: Backing) -> FcpPair {
        FcpPair { connection, ends, names, host, backing, roused: Time::NEVER }
    }

    /// Carries operations between target and disk; returns true if there were any.
    fn perform(&mut self, now: Time) -> bool {
        let mut moved = false;
        let [initiator, target] = &mut self.ends;
        self.backing.handle_timeout(now);
        while let Some(work) = target.port.poll_work() {
            let command = initiator.port.initiator().and_then(|initiator| initiator.command_of(work.ox_id));
            self.backing.handle_work(now, work.id, &work.op, command);
            moved = true;
        }
        while let Some(finished) = self.backing.poll_finished() {
            if let Some(id) = finished.command {
                self.host.note_disk(id, finished.done.since(finished.began).0);
            }
            target.port.handle_work(finished.work, finished.outcome);
            moved = true;
        }
        moved
    }
}

impl Ports for FcpPair {
    fn connection(&self) -> usize {
        self.connection
    }

    fn begin(&mut self, now: Time) {
        self.host.start(now);
        self.ends.iter_mut().for_each(|end| end.port.log_in(now.0));
        self.roused = now;
    }

    fn open(&mut self, now: Time) {
        let [initiator, target] = self.names;
        self.ends[Side::Sender as usize].present(target);
        self.ends[Side::Receiver as usize].present(initiator);
        self.roused = now;
    }

    fn stop(&mut self) {
        self.host.stop();
    }

    fn poll_timeout(&self) -> Time {
        let own = self.host.poll_timeout().min(self.backing.poll_timeout()).min(self.roused);
        self.ends.iter().map(End::poll_timeout).fold(own, Time::min)
    }

    fn work(
        &mut self,
        now: Time,
        counters: &mut FcCounters,
        mut arrived: impl FnMut(Side, &Frame),
        mut at_gateway: impl FnMut(Side, Carried),
    ) {
        self.roused = Time::NEVER;
        loop {
            let [initiator, target] = &mut self.ends;
            let leaving = |port: &_, frame: &_| self.host.note_sent(now, port, frame);
            let mut moved = initiator.carry(now, counters, leaving, |frame| arrived(Side::Sender, frame));
            moved |= target.carry(now, counters, |_, _| {}, |frame| arrived(Side::Receiver, frame));
            moved |= self.perform(now);
            moved |= self.host.advance(now, &mut self.ends[Side::Sender as usize].port);
            if !moved {
                break;
            }
        }
        for (side, end) in [Side::Sender, Side::Receiver].into_iter().zip(&mut self.ends) {
            end.outbound.drain(..).for_each(|carried| at_gateway(side, carried));
        }
    }

    fn release(&mut self, now: Time, side: Side) {
        self.ends[side as usize].release(now);
    }

    fn has_room(&self, side: Side, frame: &Frame) -> bool {
        self.ends[side as usize].has_room(frame)
    }

    fn send(&mut self, now: Time, side: Side, carried: Carried) {
        let end = &mut self.ends[side as usize];
        end.send(now, carried);
        if end.is_accelerated() {
            // The end of a write may let the next one have its turn.
            self.roused = now;
        }
    }

    fn is_done(&self) -> bool {
        self.host.is_done()
    }

    fn begin_measuring(&mut self) {
        self.host.counters = RequestCounters::default();
    }

    fn finish(&mut self, counters: &mut FcpCounters) {
        counters.requests.merge(&std::mem::take(&mut self.host.counters));
        for end in &self.ends {
            counters.frames.add_stalls(std::slice::from_ref(&end.link));
            if let Some(initiator) = end.port.initiator() {
                let of = initiator.counters();
                counters.exchanges.add(ExchangeCounters {
                    begun: of.exchanges,
                    aborts: of.aborts,
                    retries: of.retries,
                    unfinished: initiator.kept().1 as u64,
                    stale_frames: of.stale,
                });
            }
            let stale_frames = end.port.target().map_or(0, |target| target.counters().stale);
            counters.exchanges.add(ExchangeCounters { stale_frames, ..ExchangeCounters::default() });
        }
    }

    fn counters(of: FcpCounters) -> NodeCounters {
        NodeCounters::Fcp(Box::new(of))
    }
}
