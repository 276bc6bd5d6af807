//! A pair of N_Ports: their links to the gateways, and the generator of the first.

use super::carried::{Carried, GATEWAY, PORT};
use super::ports::Ports;
use crate::fc_counters::FcCounters;
use crate::fcp_counters::FcpCounters;
use crate::node::NodeCounters;
use crate::side::Side;
use crate::workload::Generator;
use storage::fc::generator::load_header;
use storage::fc::link::Link;
use units::Time;
use wire::fc::{FcId, Frame};
use wire::iscsi::Payload;

/// Two N_Ports of which the first sends frames of a generator to the second.
pub struct Pair {
    /// The connection that carries its frames.
    connection: usize,
    /// By side: the link between N_Port and gateway.
    links: [Link<Carried>; 2],
    /// By side: addresses of the ports.
    addresses: [FcId; 2],
    generator: Generator,
    /// Frames that the generator has had.
    generated: u64,
    /// The generator has a frame and no room for it.
    blocked: bool,
    running: bool,
    stopped: bool,
    /// Frames that the first port has sent and the second has not received.
    under_way: u64,
}

impl Pair {
    /// At rest.
    pub fn new(connection: usize, addresses: [FcId; 2], links: [Link<Carried>; 2], generator: Generator) -> Pair {
        Pair {
            connection,
            links,
            addresses,
            generator,
            generated: 0,
            blocked: false,
            running: false,
            stopped: false,
            under_way: 0,
        }
    }

    /// Returns true if the generator has a frame by `now`, or had one before.
    #[inline]
    fn has_due(&self, now: Time) -> bool {
        self.blocked || self.running && self.generator.peek().is_some_and(|due| due.at <= now)
    }

    /// Puts the frames that the generator has by `now` on the first port's queue.
    #[inline(never)]
    fn generate(&mut self, now: Time, counters: &mut FcCounters) {
        let link = &mut self.links[Side::Sender as usize];
        if self.blocked && link.has_room(PORT) {
            self.blocked = false;
            self.generator.resume(now);
        }
        while let Some(due) = self.generator.peek().filter(|due| self.running && due.at <= now) {
            if !link.has_room(PORT) {
                self.blocked = true;
                break;
            }
            // 1 to 2112 bytes in a valid run.
            let payload = Payload::Zeros(due.bytes as u32);
            let [from, to] = self.addresses;
            let frame = Frame::class3(load_header(from, to, self.generated), payload);
            self.generated += 1;
            let content = frame.content_bytes();
            let carried = Carried { issued: due.at, entered: now, frame };
            if link.handle_frame(PORT, carried, content, now.0).is_err() {
                unreachable!("there was room");
            }
            self.generator.advance();
            self.under_way += 1;
            counters.generated += 1;
            counters.generated_bytes += due.bytes;
        }
    }
}

impl Ports for Pair {
    fn connection(&self) -> usize {
        self.connection
    }

    fn open(&mut self, now: Time) {
        self.running = true;
        self.generator.start(now);
    }

    fn stop(&mut self) {
        (self.running, self.stopped) = (false, true);
    }

    fn poll_timeout(&self) -> Time {
        let due = match self.generator.peek() {
            Some(due) if self.running && !self.blocked => due.at,
            _ => Time::NEVER,
        };
        self.links.iter().filter_map(Link::poll_timeout).map(Time).fold(due, Time::min)
    }

    fn work(
        &mut self,
        now: Time,
        counters: &mut FcCounters,
        mut arrived: impl FnMut(Side, &Frame),
        mut at_gateway: impl FnMut(Side, Carried),
    ) {
        self.links.iter_mut().for_each(|link| link.handle_timeout(now.0));
        if self.has_due(now) {
            self.generate(now, counters);
        }
        for (side, link) in [Side::Sender, Side::Receiver].into_iter().zip(&mut self.links) {
            // A port empties its buffers at once.
            while let Some(carried) = link.poll_frame(PORT) {
                link.handle_release(PORT, now.0);
                self.under_way -= 1;
                arrived(side, &carried.frame);
                counters.deliver(now, &carried.frame, carried.issued);
            }
            while let Some(carried) = link.poll_frame(GATEWAY) {
                arrived(side, &carried.frame);
                at_gateway(side, carried);
            }
        }
    }

    fn release(&mut self, now: Time, side: Side) {
        self.links[side as usize].handle_release(GATEWAY, now.0);
    }

    fn has_room(&self, side: Side, _frame: &Frame) -> bool {
        self.links[side as usize].has_room(GATEWAY)
    }

    fn send(&mut self, now: Time, side: Side, carried: Carried) {
        let content = carried.frame.content_bytes();
        if self.links[side as usize].handle_frame(GATEWAY, carried, content, now.0).is_err() {
            unreachable!("the caller looked for room");
        }
    }

    fn is_done(&self) -> bool {
        self.stopped && self.under_way == 0
    }

    fn finish(&mut self, counters: &mut FcpCounters) {
        counters.frames.add_stalls(&self.links);
    }

    fn counters(of: FcpCounters) -> NodeCounters {
        NodeCounters::Fc(Box::new(of.frames))
    }
}
