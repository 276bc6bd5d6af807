//! The connections of a run: sending, timers, what their applications have done.

use super::timers::Timers;
use crate::capture::Capture;
use crate::counters::WindowReduction;
use crate::flow::Flow;
use crate::node::Ends;
use crate::packet::Packet;
use crate::sender_command::{AddressedCommand, SenderCommand};
use crate::side::Side;
use crate::transport::{SegmentPool, Transport};
use link::{prefetch, prefetch_part, Packet as _};
use sim::Network;
use units::Time;

/// Segments that are handled one by one before a run of common ones is tried again: what interrupts a run often goes
/// on for some time.
const ONE_BY_ONE: u32 = 4;

/// Endpoints and what packets need.
pub struct Connections<T: Transport> {
    /// The spec's, then those of short flows.
    pub flows: Vec<Flow<T>>,
    /// Flows of the spec's own.
    pub named: usize,
    /// By flow: true if its application has begun.
    pub opened: Vec<bool>,
    pub timers: Timers,
    pub capture: Option<Capture>,
    /// Senders that got a command to reduce their windows.
    pub window_reductions: Vec<WindowReduction>,
    pool: T::Pool,
    /// Reused for every segment in and out: a segment with its SACK blocks is 104 bytes.
    scratch: T::Segment,
}

impl<T: Transport> Connections<T> {
    /// Of `flows`, the first `named` of which are the spec's own.
    pub fn new(flows: Vec<Flow<T>>, named: usize, timers: Timers, capture: Option<Capture>) -> Connections<T> {
        let mut pool = T::Pool::new(2 * flows.len());
        for index in (0..flows.len()).filter(|&index| flows[index].spec.transport.ipv6) {
            for side in [Side::Sender, Side::Receiver] {
                pool.use_ipv6(2 * index as u32 + side as u32);
            }
        }
        Connections {
            opened: vec![false; flows.len()],
            pool,
            flows,
            named,
            timers,
            capture,
            window_reductions: vec![],
            scratch: T::Segment::default(),
        }
    }

    /// Unpacks `packet`, which has come to an end.
    #[inline]
    pub fn unpack(&mut self, packet: Packet) {
        self.pool.unpack(packet, &mut self.scratch);
    }

    /// Returns true if `packet`, which was unpacked last, is of its flow's present connection. An earlier connection
    /// has no endpoint any more.
    pub fn is_current(&mut self, packet: Packet) -> bool {
        self.pool.is_current(packet)
    }

    /// Flow `index` and the segment that was unpacked last.
    #[inline]
    pub fn arrival(&mut self, index: usize) -> (&mut Flow<T>, &T::Segment) {
        (&mut self.flows[index], &self.scratch)
    }

    /// The ends of all flows, for a node.
    #[inline]
    pub fn ends(&mut self) -> Ends<'_, T> {
        Ends::new(&mut self.flows, self.capture.as_mut())
    }

    /// Captures the segment that was unpacked last, at an end of flow `index`.
    #[cold]
    pub fn capture_arrival(&mut self, now: Time, index: usize, to_sender: bool) {
        let spec = &self.flows[index].spec;
        let node = if to_sender { spec.source } else { spec.destination };
        if let Some(capture) = self.capture.as_mut().filter(|capture| capture.sees(node)) {
            T::capture(capture, now, index, !to_sender, &self.scratch, 1);
        }
    }

    /// `packet`, which an end of flow `index` sent, is lost.
    pub fn lose(&mut self, index: usize, packet: Packet) {
        self.flows[index].dropped_packets[packet.source() as usize & 1] += 1;
        self.pool.discard(packet);
    }

    /// Begins to fetch the state of `side` of flow `index`, or, with `next`, what it leads to.
    #[inline]
    pub fn prefetch(&self, index: usize, side: Side, next: bool) {
        let flow = &self.flows[index];
        let end = match side {
            Side::Sender => &flow.sender,
            Side::Receiver => &flow.receiver,
        };
        if next {
            if side == Side::Sender {
                end.prefetch();
            }
        } else {
            for &(place, bytes) in T::PARTS_OF_RUNS[side as usize] {
                prefetch_part(end, place, bytes);
            }
            prefetch(&flow.armed, 1);
            prefetch(&flow.workload.watches_delivery, 1);
        }
        self.pool.prefetch(2 * index as u32 + 1 - side as u32, next);
        self.pool.prefetch_room(2 * index as u32 + side as u32, next);
    }

    /// `packets` come to `side` of flow `index`, whose application looks only for the end of its data; returns how many
    /// were handled before something else is due, or before the application has to look.
    #[inline]
    pub fn arrive_in_a_row(
        &mut self,
        (index, side): (usize, Side),
        packets: &[(u64, Packet)],
        net: &mut Network<Packet>,
    ) -> usize {
        let flow = &self.flows[index];
        let (mut runs_below, mut looks_at) = (u64::MAX, u64::MAX);
        if side == Side::Receiver && flow.workload.watches_delivery {
            looks_at = flow.sender.bytes_written();
            let most: u64 = packets.iter().map(|packet| u64::from(packet.1.bytes())).sum();
            runs_below = looks_at.saturating_sub(most);
        }
        let (mut handled, mut one_by_one) = (0, 0);
        while let Some(&(at, packet)) = packets.get(handled) {
            if one_by_one == 0 && self.flows[index].receiver.bytes_received() < runs_below {
                handled += self.handle_run((index, side), &packets[handled..], net);
                one_by_one = ONE_BY_ONE;
            } else {
                one_by_one = one_by_one.saturating_sub(1);
                net.begin_arrival(Time(at));
                self.pool.unpack(packet, &mut self.scratch);
                let flow = &mut self.flows[index];
                flow.endpoint(side).handle_segment(Time(at), &self.scratch);
                self.pump(Time(at), index, side, net);
                handled += 1;
            }
            let looks = self.flows[index].receiver.bytes_received() >= looks_at;
            if looks || net.is_interrupted(packets.get(handled)) {
                break;
            }
        }
        handled
    }

    /// Those of `packets` that are common, as far as they go.
    #[inline]
    fn handle_run(
        &mut self,
        (index, side): (usize, Side),
        packets: &[(u64, Packet)],
        net: &mut Network<Packet>,
    ) -> usize {
        let flow = &mut self.flows[index];
        let hop = net.first_hop(flow.hops[side as usize]);
        let mut departures = net.departures(hop);
        let send = |now, packet, count| departures.send(now, packet, count);
        let handled = flow.endpoint(side).handle_run(&mut self.pool, packets, Time::NEVER, hop, send);
        if let Some(&(at, _)) = packets[..handled].last() {
            // Timers count from it: another process may have been further.
            net.begin_arrival(Time(at));
        }
        self.arm(index, side, net);
        handled
    }

    /// The timer of `side` of flow `index` has fired, and does so again as long as nothing else happens; returns false,
    /// and nothing is done, if these come one by one.
    #[inline]
    pub fn fire_in_a_row(&mut self, now: Time, (index, side): (usize, Side), net: &mut Network<Packet>) -> bool {
        let Some(until) = net.timers_until().filter(|_| self.capture.is_none()) else { return false };
        let flow = &mut self.flows[index];
        let hop = net.first_hop(flow.hops[side as usize]);
        let mut departures = net.departures(hop);
        let send = |now, packet, count| departures.send(now, packet, count);
        let source = 2 * index as u32 + side as u32;
        let run = flow.endpoint(side).handle_timer_run(&mut self.pool, now, until, (hop, source), send);
        let Some((last, count)) = run else { return false };
        net.note_timers(last, count - 1);
        self.arm(index, side, net);
        true
    }

    /// Sends all that an endpoint has to send and sets its timer.
    // Once per packet; as a call it takes 3 % more instructions on flows of constant rate (callgrind).
    #[inline(always)]
    pub fn pump(&mut self, now: Time, index: usize, side: Side, net: &mut Network<Packet>) {
        // A receiver has nothing to send after every other packet, nor has a sender that has sent all.
        if !self.flows[index].endpoint(side).is_idle() {
            self.transmit(now, index, side, net);
        }
        self.arm(index, side, net);
    }

    /// Sets the timer of `side` of flow `index`. It may fire early: then the endpoint says its real deadline. So moving
    /// a deadline back on every ACK, as the retransmission timer does, costs nothing here.
    #[inline]
    fn arm(&mut self, index: usize, side: Side, net: &mut Network<Packet>) {
        let flow = &mut self.flows[index];
        let due = flow.endpoint(side).poll_timeout();
        if due < flow.armed[side as usize] {
            flow.armed[side as usize] = due;
            net.set_timer(self.timers.endpoint(index, side), due);
        }
    }

    #[inline(never)]
    fn transmit(&mut self, now: Time, index: usize, side: Side, net: &mut Network<Packet>) {
        loop {
            let flow = &mut self.flows[index];
            let hop = flow.hops[side as usize];
            let train = flow.endpoint(side).poll_train(now, &mut self.scratch);
            if train.segments == 0 {
                return;
            }
            if self.capture.is_some() {
                self.capture_train(now, index, side, train.segments);
            }
            let packet = self.pool.pack(&self.scratch, hop, 2 * index as u32 + side as u32, train.segments);
            net.send_train(packet, train.segments, |refused| {
                self.flows[index].dropped_packets[side as usize] += 1;
                self.pool.discard(refused.packet);
            });
            if !train.more {
                return;
            }
        }
    }

    #[cold]
    fn capture_train(&mut self, now: Time, index: usize, side: Side, segments: u32) {
        let spec = &self.flows[index].spec;
        let node = if side == Side::Sender { spec.source } else { spec.destination };
        let Some(capture) = self.capture.as_mut().filter(|capture| capture.sees(node)) else { return };
        T::capture(capture, now, index, side == Side::Sender, &self.scratch, segments);
    }

    /// Puts fresh endpoints in place of those of flow `index`, and opens their connection.
    pub fn reconnect(&mut self, now: Time, index: usize, sender: T, receiver: T) {
        for side in [Side::Sender, Side::Receiver] {
            self.pool.begin_connection(2 * index as u32 + side as u32);
        }
        self.flows[index].reconnect(sender, receiver);
        self.flows[index].sender.connect(now);
    }

    /// Hands a command to its sender; reductions of short flows are in no record.
    pub fn command(&mut self, now: Time, addressed: &AddressedCommand, net: &mut Network<Packet>) {
        let &AddressedCommand { flow, why, ref command } = addressed;
        let sender = &mut self.flows[flow].sender;
        match command {
            SenderCommand::Prepare(preparation) => {
                let srtt = sender.sample().srtt;
                let reduced = sender.prepare(now, preparation);
                if preparation.cwnd_reduction.is_some() && flow < self.named {
                    self.window_reductions.push(WindowReduction { why, flow, at: now, srtt, reduced });
                }
            }
            SenderCommand::Restore => {
                sender.restore(now);
                self.pump(now, flow, Side::Sender, net);
            }
        }
    }
}
