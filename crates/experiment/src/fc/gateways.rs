//! Two gateways: what their connections and the N_Ports behind them do for each other.

use super::agenda::Agenda;
use super::carried::Carried;
use super::connection::{Connection, Phase};
use super::ports::Ports;
use super::unit::Unit;
use crate::fc_counters::FcCounters;
use crate::fcp_counters::FcpCounters;
use crate::node::{Ends, Node, NodeCounters};
use crate::side::Side;
use crate::transport::Transport;
use std::ops::Range;
use units::{Span, Time};

const SIDES: [Side; 2] = [Side::Sender, Side::Receiver];

/// Two gateways, the connections between them that share pairs of N_Ports, and these pairs.
pub struct Gateways<P> {
    /// Flow of the first connection; the others follow.
    first: usize,
    connections: Vec<Connection>,
    pairs: Vec<P>,
    /// By side: bytes that TCP has not begun to send from which on frames stay in their ports' buffers.
    unsent_bytes: [u64; 2],
    /// Age of a frame at the other gateway, since it entered the first, above which it is discarded.
    transit: Option<Span>,
    /// Time at which each pair has something to do.
    agenda: Agenda,
    /// Ends of connections whose TCP has something new to send.
    pumps: Vec<(usize, Side)>,
    /// Time to which the timer is set: the agenda's first or before.
    armed: Time,
    stopped: bool,
    /// By pair: nothing more comes of it.
    over: Vec<bool>,
    done_at: Option<Time>,
    /// Time at which TCP gave up the first connection that it did.
    lost_at: Option<Time>,
}

impl<P: Ports> Gateways<P> {
    /// Over the flows from `first` on, one for each of `connections`.
    pub(super) fn new(
        first: usize,
        connections: Vec<Connection>,
        pairs: Vec<P>,
        unsent_bytes: [u64; 2],
        transit: Option<Span>,
    ) -> Gateways<P> {
        Gateways {
            first,
            connections,
            agenda: Agenda::new(pairs.len()),
            over: vec![false; pairs.len()],
            pairs,
            unsent_bytes,
            transit,
            pumps: vec![],
            armed: Time::NEVER,
            stopped: false,
            done_at: None,
            lost_at: None,
        }
    }

    /// The flows that are its connections.
    pub fn flows(&self) -> Range<usize> {
        self.first..self.first + self.connections.len()
    }

    /// Does all that is due by `now`.
    #[inline]
    fn advance<T: Transport>(&mut self, now: Time, ends: &mut Ends<'_, T>) {
        while let Some(number) = self.agenda.due(now) {
            self.work(now, number, ends);
        }
    }

    /// Does what is due of a pair.
    #[inline(never)]
    fn work<T: Transport>(&mut self, now: Time, number: usize, ends: &mut Ends<'_, T>) {
        let pair = &mut self.pairs[number];
        let index = pair.connection();
        let Connection { counters, staged, .. } = &mut self.connections[index];
        let flow = self.first + index;
        let arrived = |side, frame: &_| ends.capture_frame(now, flow, side, frame);
        let at_gateway = |side, carried| {
            staged[side as usize].push_back((number, Carried { entered: now, ..carried }));
        };
        pair.work(now, counters, arrived, at_gateway);
        self.agenda.set(number, pair.poll_timeout());
        for side in SIDES {
            self.fill(now, index, side, ends);
            // The port's link may take frames again.
            if self.connections[index].blocked[side as usize] {
                self.deliver(now, index, side, ends);
            }
        }
        self.note_end(now, number);
    }

    /// Notes whether all that was begun has ended.
    fn note_end(&mut self, now: Time, number: usize) {
        let over = self.pairs[number].is_done();
        if std::mem::replace(&mut self.over[number], over) != over
            && self.done_at.is_none()
            && self.over.iter().all(|of| *of)
        {
            self.done_at = Some(now);
        }
    }

    /// Hands frames at the gateway at `side` to TCP as long as there is room, and returns their ports' credits.
    #[inline]
    fn fill<T: Transport>(&mut self, now: Time, index: usize, side: Side, ends: &mut Ends<'_, T>) {
        let connection = &self.connections[index];
        if connection.streams[side as usize].waits() || !connection.staged[side as usize].is_empty() {
            self.fill_stream(now, index, side, ends);
        }
    }

    #[inline(never)]
    fn fill_stream<T: Transport>(&mut self, now: Time, index: usize, side: Side, ends: &mut Ends<'_, T>) {
        let flow = self.first + index;
        let connection = &mut self.connections[index];
        if connection.phase[side as usize] == Phase::Open {
            while connection.streams[side as usize].has_room(ends.end(flow, side), self.unsent_bytes[side as usize]) {
                let Some((number, carried)) = connection.staged[side as usize].pop_front() else { break };
                let pair = &mut self.pairs[number];
                pair.release(now, side);
                self.agenda.set(number, pair.poll_timeout());
                connection.push(now, side, Unit::Frame(number, carried), ends);
            }
        }
        if connection.streams[side as usize].write(now, ends.end(flow, side)) {
            self.pumps.push((flow, side));
        }
    }

    /// Reads what came whole to the gateway at `side`, as far as the links to its ports take frames.
    #[inline]
    fn deliver<T: Transport>(&mut self, now: Time, index: usize, side: Side, ends: &mut Ends<'_, T>) {
        let received = ends.end(self.first + index, side).bytes_received();
        if self.connections[index].streams[side.other() as usize].peek(received).is_some() {
            self.deliver_units(now, index, side, received, ends);
        }
    }

    #[inline(never)]
    fn deliver_units<T: Transport>(
        &mut self,
        now: Time,
        index: usize,
        side: Side,
        received: u64,
        ends: &mut Ends<'_, T>,
    ) {
        let connection = &mut self.connections[index];
        let flow = self.first + index;
        let (mut bytes, mut opened) = (0, false);
        connection.blocked[side as usize] = false;
        while let Some(unit) = connection.streams[side.other() as usize].peek(received) {
            if matches!(unit, Unit::Frame(number, carried) if !self.pairs[*number].has_room(side, &carried.frame)) {
                connection.blocked[side as usize] = true;
                break;
            }
            bytes += connection.length(unit);
            match connection.streams[side.other() as usize].pop(received) {
                Some(Unit::Open) => {
                    connection.phase[side as usize] = Phase::Open;
                    connection.push(now, side, Unit::Opened, ends);
                }
                Some(Unit::Opened) => {
                    connection.phase[side as usize] = Phase::Open;
                    opened = !self.stopped;
                }
                Some(Unit::Frame(_, carried)) if self.transit.is_some_and(|most| now.since(carried.entered) > most) => {
                    connection.counters.stale += 1;
                }
                Some(Unit::Frame(number, carried)) => {
                    let pair = &mut self.pairs[number];
                    pair.send(now, side, carried);
                    self.agenda.set(number, pair.poll_timeout());
                }
                None => break,
            }
        }
        if bytes == 0 {
            return;
        }
        ends.end(flow, side).read(now, bytes);
        self.pumps.push((flow, side));
        for (number, pair) in self.pairs.iter_mut().enumerate().filter(|(_, pair)| opened && pair.connection() == index)
        {
            pair.open(now);
            self.agenda.set(number, pair.poll_timeout());
        }
        self.fill(now, index, side, ends);
    }
}

impl<T: Transport, P: Ports> Node<T> for Gateways<P> {
    fn flows(&self) -> Range<usize> {
        self.flows()
    }

    fn start(&mut self, now: Time, ends: &mut Ends<'_, T>) {
        for (index, connection) in self.connections.iter_mut().enumerate() {
            connection.phase[Side::Sender as usize] = Phase::Connecting;
            ends.end(self.first + index, Side::Sender).connect(now);
            self.pumps.push((self.first + index, Side::Sender));
        }
        for (number, pair) in self.pairs.iter_mut().enumerate() {
            pair.begin(now);
            self.agenda.set(number, pair.poll_timeout());
        }
    }

    fn stop(&mut self, now: Time) {
        self.stopped = true;
        for (number, pair) in self.pairs.iter_mut().enumerate() {
            pair.stop();
            // Its next step, if it has none left, is where its end is noted.
            self.agenda.set(number, pair.poll_timeout().min(now));
        }
    }

    fn handle_arrival(&mut self, now: Time, flow: usize, side: Side, ends: &mut Ends<'_, T>) -> bool {
        let index = flow - self.first;
        let connection = &mut self.connections[index];
        let phase = &mut connection.phase[side as usize];
        if *phase == Phase::Connecting && ends.end(flow, side).was_established() {
            *phase = Phase::Opening;
            connection.push(now, side, Unit::Open, ends);
        }
        self.fill(now, index, side, ends);
        self.deliver(now, index, side, ends);
        self.advance(now, ends);
        !self.pumps.is_empty() || self.agenda.poll_timeout() < self.armed || self.done_at.is_some()
    }

    fn handle_sent(&mut self, now: Time, flow: usize, side: Side, ends: &mut Ends<'_, T>) {
        self.fill(now, flow - self.first, side, ends);
    }

    fn handle_transport_timeout(&mut self, now: Time, flow: usize, ends: &mut Ends<'_, T>) {
        if ends.end(flow, Side::Sender).is_closed() || ends.end(flow, Side::Receiver).is_closed() {
            self.connections[flow - self.first].phase = [Phase::Lost; 2];
            self.lost_at.get_or_insert(now);
        }
    }

    fn handle_timeout(&mut self, now: Time, ends: &mut Ends<'_, T>) {
        self.armed = Time::NEVER;
        self.advance(now, ends);
    }

    fn poll_timer(&mut self) -> Option<Time> {
        // Early is harmless: a deadline that only moves back costs nothing.
        let due = self.agenda.poll_timeout();
        if due >= self.armed {
            return None;
        }
        self.armed = due;
        Some(due)
    }

    fn poll_pump(&mut self) -> Option<(usize, Side)> {
        self.pumps.pop()
    }

    fn done_at(&self) -> Option<Time> {
        self.done_at
    }

    fn begin_measuring(&mut self) {
        for Connection { counters, .. } in &mut self.connections {
            counters.delivered_bytes_at_warmup = counters.delivered_bytes;
        }
        self.pairs.iter_mut().for_each(P::begin_measuring);
    }

    fn finish(&mut self, name: &str, notes: &mut Vec<String>) -> Vec<NodeCounters> {
        if let Some(at) = self.lost_at {
            notes.push(format!(
                "flow {name}: TCP gave up a connection between gateways at {:.3} s; its frames stay where they are",
                at.as_secs_f64()
            ));
        }
        let none = || FcCounters::new(Time::ZERO);
        let frames = self.connections.iter_mut().map(|of| std::mem::replace(&mut of.counters, none()));
        let mut counters: Vec<FcpCounters> = frames.map(FcpCounters::new).collect();
        for pair in &mut self.pairs {
            pair.stop();
            pair.finish(&mut counters[pair.connection()]);
        }
        counters.into_iter().map(P::counters).collect()
    }
}
