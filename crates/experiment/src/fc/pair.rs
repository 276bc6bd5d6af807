//! A pair of N_Ports: their links to the gateways, and the generator of the first.

use crate::fc_counters::CreditStalls;
use crate::side::Side;
use crate::workload::Generator;
use storage::fc::link::{End, Link};
use units::Time;
use wire::fc::{Frame, FrameHeader, FrameType};
use wire::iscsi::Payload;

/// The end of a link at an N_Port; the gateway has the other.
const PORT: End = End::A;
/// The end of a link at a gateway.
const GATEWAY: End = End::B;

/// A frame on its way.
#[derive(Clone)]
pub struct Carried {
    /// Time of its generation.
    pub issued: Time,
    /// The frame.
    pub frame: Frame,
}

/// Two N_Ports that send each other frames, one behind each gateway.
pub struct Pair {
    /// The connection that carries its frames.
    pub connection: usize,
    /// By side: the link between N_Port and gateway.
    links: [Link<Carried>; 2],
    generator: Generator,
    /// The generator has a frame and no room for it.
    blocked: bool,
    running: bool,
}

impl Pair {
    /// At rest.
    pub fn new(connection: usize, links: [Link<Carried>; 2], generator: Generator) -> Pair {
        Pair { connection, links, generator, blocked: false, running: false }
    }

    /// The generator starts.
    pub fn start(&mut self, now: Time) {
        self.running = true;
        self.generator.start(now);
    }

    /// The generator has no more frames.
    pub fn stop(&mut self) {
        self.running = false;
    }

    /// Returns the time of the next call of [`Pair::handle_timeout`].
    pub fn poll_timeout(&self) -> Time {
        let due = match self.generator.peek() {
            Some(due) if self.running && !self.blocked => due.at,
            _ => Time::NEVER,
        };
        self.links.iter().filter_map(Link::poll_timeout).map(Time).fold(due, Time::min)
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.links.iter_mut().for_each(|link| link.handle_timeout(now.0));
    }

    /// Puts the frames that the generator has by `now` on the first port's queue; returns their number and payload.
    pub fn generate(&mut self, now: Time) -> (u64, u64) {
        let (mut frames, mut bytes) = (0, 0);
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
            let frame = Frame::class3(FrameHeader { kind: FrameType::FCP, ..FrameHeader::default() }, payload);
            let content = frame.content_bytes();
            if link.handle_frame(PORT, Carried { issued: due.at, frame }, content, now.0).is_err() {
                unreachable!("there was room");
            }
            self.generator.advance();
            (frames, bytes) = (frames + 1, bytes + due.bytes);
        }
        (frames, bytes)
    }

    /// The next frame that has come to the gateway at `side`; it stays in its port's buffer there until
    /// [`Pair::release`].
    pub fn poll_at_gateway(&mut self, side: Side) -> Option<Carried> {
        self.links[side as usize].poll_frame(GATEWAY)
    }

    /// The buffer of a frame at the gateway at `side` is free: the port has a credit more.
    pub fn release(&mut self, now: Time, side: Side) {
        self.links[side as usize].handle_release(GATEWAY, now.0);
    }

    /// Returns true if the gateway at `side` may send its port a further frame.
    pub fn has_room(&self, side: Side) -> bool {
        self.links[side as usize].has_room(GATEWAY)
    }

    /// The gateway at `side` sends its port a frame, for which there is room.
    pub fn send(&mut self, now: Time, side: Side, carried: Carried) {
        let content = carried.frame.content_bytes();
        if self.links[side as usize].handle_frame(GATEWAY, carried, content, now.0).is_err() {
            unreachable!("the caller looked for room");
        }
    }

    /// The next frame that has come to the N_Port at `side`, which empties its buffer at once.
    pub fn poll_at_port(&mut self, now: Time, side: Side) -> Option<Carried> {
        let link = &mut self.links[side as usize];
        let carried = link.poll_frame(PORT)?;
        link.handle_release(PORT, now.0);
        Some(carried)
    }

    /// Returns the waits of the N_Ports for credits, and those of the gateways.
    pub fn stalls(&self) -> [CreditStalls; 2] {
        [PORT, GATEWAY].map(|end| {
            let mut sum = CreditStalls::default();
            for counters in self.links.iter().map(|link| link.counters(end)) {
                sum.add(CreditStalls { count: counters.credit_stalls, ns: counters.stalled_ns });
            }
            sum
        })
    }
}
