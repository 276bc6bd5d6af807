//! The hosts of a run: what happens when a packet arrives, is lost, or a timer fires.

mod connections;
mod nodes;
mod samples;
mod stripes;
mod timers;

pub use connections::Connections;
pub use nodes::Nodes;
pub use samples::Samples;
use samples::{goodput_bps, Noted};
pub use stripes::Stripes;
pub use timers::Timers;

use crate::copy_study::CopyStudy;
use crate::counters::MeasuredWindow;
use crate::environment::{Environment, Senders};
use crate::events::FlowProgress;
use crate::node::Node;
use crate::packet::Packet;
use crate::path_test_ends::PathTest;
use crate::probe::{FlowObservation, Probe, ProbeView, QueueObservation};
use crate::sender_command::AddressedCommand;
use crate::series::FlowSeries;
use crate::side::Side;
use crate::transport::{Transport, TransportMaker};
use crate::windows::Windows;
use crate::workload::{Application, SendingEnd as _, Source};
use link::{DropReason, Packet as _};
use sim::{Hosts, Network, RouteId};
use std::ops::ControlFlow;
use timers::Timer;
use units::{Span, Time};

/// Everything of a run that is not the network.
pub struct World<M: TransportMaker, N> {
    pub connections: Connections<M::Transport>,
    pub environment: Environment,
    pub nodes: Nodes<M, N>,
    pub stripes: Stripes,
    /// Of each short flow, the entry that it belongs to.
    pub short_flows: Vec<usize>,
    /// A copy that may be extrapolated.
    pub study: Option<CopyStudy>,
    /// Windows of the measurement.
    pub windows: Option<Windows>,
    /// Measurements beside the series.
    pub probes: Vec<Box<dyn Probe>>,
    /// A path test beside the traffic.
    pub path_test: Option<Box<PathTest>>,
    pub flow_series: FlowSeries,
    pub series_interval: Option<Span>,
    /// Samples that flows have noted in their turns.
    pub samples: Samples,
    /// A flow is over UDT.
    pub has_udt: bool,
}

/// A run at one time, as probes see it.
struct View<'a, T: Transport> {
    connections: &'a Connections<T>,
    now: Time,
    net: &'a mut Network<Packet>,
}

impl<T: Transport> ProbeView for View<'_, T> {
    fn flows(&self) -> usize {
        self.connections.named
    }

    fn flow(&self, index: usize) -> FlowObservation {
        let flow = &self.connections.flows[index];
        let (sender, sample) = (flow.stats(Side::Sender), flow.sender.sample());
        let is_open = self.connections.opened[index] && !flow.sender.is_closed();
        FlowObservation {
            received_bytes: flow.received(Side::Receiver),
            packets: flow.stats(Side::Receiver).data_segments_received,
            episodes: sender.timeouts + sender.fast_retransmits,
            in_flight_bytes: sample.in_flight_bytes,
            retransmitted_segments: sender.retransmitted_segments,
            dropped_packets: flow.dropped_packets.iter().sum(),
            timeouts: sender.timeouts,
            cwnd_reductions: flow.spec.transport.udt.is_none().then_some(sender.cwnd_reductions),
            cwnd_packets: is_open.then_some(sample.cwnd_packets),
        }
    }

    fn queue(&mut self, index: usize) -> QueueObservation {
        let (packets, bytes) = self.net.links_mut()[index].queue(self.now);
        QueueObservation { packets, bytes }
    }
}

impl<T: Transport> Senders<Packet> for Connections<T> {
    fn progress(&self, flow: usize) -> FlowProgress {
        let flow = &self.flows[flow];
        FlowProgress {
            received_bytes: flow.received(Side::Receiver),
            retransmitted_segments: flow.stats(Side::Sender).retransmitted_segments,
        }
    }

    fn routes(&self, flow: usize) -> Option<[RouteId; 2]> {
        Some(self.flows[flow].hops.map(RouteId))
    }

    fn command(&mut self, now: Time, addressed: &AddressedCommand, net: &mut Network<Packet>) {
        Connections::command(self, now, addressed, net);
    }
}

// `#[inline(never)]`: the loop that runs packets holds what each packet needs and no more, for the instruction cache.
impl<M: TransportMaker, N: Node<M::Transport>> World<M, N> {
    /// Returns true if every mirrored write has arrived or can never arrive.
    pub fn drained(&self) -> bool {
        self.connections.flows.iter().all(|f| {
            let waiting = match f.workload.share() {
                Some(share) => self.stripes.0[share.stripe].messages().in_transit_on(share.lane) > 0,
                None => f.workload.messages().is_some_and(|m| m.in_transit() > 0),
            };
            !waiting || f.sender.is_closed()
        })
    }

    fn open(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let of = &mut self.connections;
        let flow = &mut of.flows[index];
        if let Some(share) = flow.workload.share() {
            return self.stripes.open_lane(now, index, share, of, net);
        }
        of.opened[index] = true;
        flow.sender.connect(now);
        let due = flow.workload.start(now, &mut flow.sender);
        net.set_timer(of.timers.application(index), due);
        of.pump(now, index, Side::Sender, net);
    }

    #[inline(never)]
    fn handle_delivered(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let of = &mut self.connections;
        let flow = &mut of.flows[index];
        if let Some(share) = flow.workload.share() {
            return self.stripes.handle_delivered(now, index, share, of, net);
        }
        let received = flow.receiver.bytes_received();
        let was_done = flow.workload.done_at.is_some();
        if let Some(due) = flow.workload.handle_delivered(now, received, &mut flow.sender) {
            net.set_timer(of.timers.application(index), due);
            of.pump(now, index, Side::Sender, net);
        }
        if !was_done && of.flows[index].workload.done_at.is_some() {
            net.finish_work(index as u32);
        }
    }

    /// The sender of a flow may have room again.
    #[inline(never)]
    fn handle_room(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let of = &mut self.connections;
        let flow = &mut of.flows[index];
        match flow.workload.share() {
            Some(share) => self.stripes.fill_lane(now, index, share, of, net),
            None => {
                flow.workload.flush(now, &mut flow.sender);
                of.pump(now, index, Side::Sender, net);
            }
        }
    }

    /// The application of a flow writes no more; of a shared one that of all its connections.
    pub fn stop(&mut self, now: Time, index: usize) {
        let of = &mut self.connections;
        let flow = &mut of.flows[index];
        match flow.workload.share() {
            Some(share) => self.stripes.stop(now, share.stripe, of),
            None => flow.workload.stop(now, &mut flow.sender),
        }
    }

    #[inline(never)]
    fn begin_measuring(&mut self) {
        for flow in &mut self.connections.flows {
            flow.received_at_warmup = [flow.received(Side::Sender), flow.received(Side::Receiver)];
        }
        self.nodes.begin_measuring();
    }

    #[inline(never)]
    fn sample(&mut self, now: Time, net: &mut Network<Packet>) {
        let Some(interval) = self.series_interval else { return };
        let of = &mut self.connections;
        for (index, flow) in of.flows[..of.named].iter_mut().enumerate() {
            if !of.opened[index] {
                continue;
            }
            let received = flow.received(Side::Receiver);
            let [back_since, since] = flow.received_at_sample;
            let lag = match flow.workload.share() {
                Some(share) => self.stripes.0[share.stripe].messages().lag_of(share.lane, now),
                None => flow.workload.lag(now, received),
            };
            self.flow_series.push(Noted::of(flow, lag).row((now, index), received - since, interval));
            if self.has_udt {
                self.flow_series.udt.sample(flow.sender.sample().udt);
            }
            let back = flow.received(Side::Sender);
            if !self.nodes.is_empty() {
                let again = flow.stats(Side::Receiver).retransmitted_segments;
                let two_way = flow
                    .is_two_way()
                    .then(|| (flow.receiver.sample(), goodput_bps(back - back_since, interval), again));
                self.flow_series.reverse.sample(two_way);
            }
            flow.received_at_sample = [back, received];
        }
        self.environment.sample(now, net);
    }

    /// Tells the windows of the measurement that event timer `timer` has fired.
    #[cold]
    fn begin_windows(&mut self, timer: u32, net: &mut Network<Packet>) {
        let (Some(windows), Some((event, at))) = (&mut self.windows, self.environment.happened(timer)) else { return };
        windows.handle_event(event, at);
        net.set_timer(self.connections.timers.probe(self.study.iter().len()), windows.poll_timeout());
    }

    /// Ends the windows of the measurement, as the run proper does at `now`.
    pub fn finish_windows(&mut self, now: Time, net: &mut Network<Packet>) -> Vec<MeasuredWindow> {
        let view = View { connections: &self.connections, now, net };
        self.windows.as_mut().map_or(vec![], |windows| windows.finish(now, &view))
    }

    /// The timer of a probe fired: that of the copy under observation, the windows', where there are, then the others'.
    #[inline(never)]
    fn probe(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let timer = self.connections.timers.probe(index);
        if self.windows.is_some() && index == self.study.iter().len() {
            // Their counters of drops are those of this time.
            net.flush_drops(self);
        }
        let mut view = View { connections: &self.connections, now, net };
        let mut all = self
            .study
            .iter_mut()
            .map(|study| study as &mut dyn Probe)
            .chain(self.windows.iter_mut().map(|windows| windows as &mut dyn Probe))
            .chain(self.probes.iter_mut().map(|probe| &mut **probe as &mut dyn Probe));
        let Some(probe) = all.nth(index) else { return };
        match probe.handle_timeout(now, &mut view) {
            ControlFlow::Continue(()) => net.set_timer(timer, probe.poll_timeout()),
            ControlFlow::Break(()) => net.stop(),
        }
    }

    #[inline(never)]
    fn handle_endpoint_timer(&mut self, now: Time, index: usize, side: Side, net: &mut Network<Packet>) {
        let of = &mut self.connections;
        let flow = &mut of.flows[index];
        flow.armed[side as usize] = Time::NEVER;
        if flow.nodes[side as usize].is_none() && of.fire_in_a_row(now, (index, side), net) {
            return;
        }
        let flow = &mut of.flows[index];
        let before = flow.receiver.bytes_received();
        flow.endpoint(side).handle_timeout(now);
        if let Some(node) = flow.nodes[side as usize] {
            return self.nodes.handle_transport_timeout(now, node, (index, side), of, net);
        }
        // A receiver of UDT hands over what it has when its timer fires.
        let news = flow.workload.watches_delivery && flow.receiver.bytes_received() != before;
        of.pump(now, index, side, net);
        if news {
            self.handle_delivered(now, index, net);
        }
    }

    /// The segment that was unpacked last arrived for receiver `index`, and another one of its batch comes behind it.
    /// GRO hands TCP one large segment, which has one answer: that to the last. It joins none that is out of order.
    #[cold]
    fn handle_joined(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let of = &mut self.connections;
        let (flow, segment) = of.arrival(index);
        let before = flow.receiver.bytes_received();
        flow.receiver.handle_segment(now, segment);
        let (arrived, watches) = (flow.receiver.bytes_received() != before, flow.workload.watches_delivery);
        if !arrived {
            of.pump(now, index, Side::Receiver, net);
        } else if watches {
            self.handle_delivered(now, index, net);
        }
    }

    #[inline(never)]
    fn handle_application_timer(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let of = &mut self.connections;
        let flow = &mut of.flows[index];
        if let Some(node) = flow.nodes[Side::Sender as usize] {
            return self.nodes.handle_timer(now, node, index, of, net);
        }
        if !of.opened[index] {
            return self.open(now, index, net);
        }
        if let Some(share) = flow.workload.share() {
            return self.stripes.handle_timer(now, share.stripe, of, net);
        }
        let due = flow.workload.handle_timer(now, &mut flow.sender);
        net.set_timer(of.timers.application(index), due);
        of.pump(now, index, Side::Sender, net);
    }

    #[inline(never)]
    fn handle_stop(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        if let Some(node) = self.connections.flows[index].nodes[Side::Sender as usize] {
            return self.nodes.stop(now, node, &mut self.connections, net);
        }
        self.stop(now, index);
        self.connections.pump(now, index, Side::Sender, net);
        // Everything may have arrived already.
        self.handle_delivered(now, index, net);
    }
}

/// Flow and end of a host.
#[inline]
fn end_of(host: u32) -> (usize, Side) {
    ((host >> 1) as usize, if host & 1 == 0 { Side::Sender } else { Side::Receiver })
}

impl<M: TransportMaker, N: Node<M::Transport>> Hosts<Packet> for World<M, N> {
    #[inline]
    fn handle_packet(&mut self, now: Time, host: u32, packet: Packet, net: &mut Network<Packet>) {
        let index = (host >> 1) as usize;
        let of = &mut self.connections;
        if index >= of.flows.len() {
            match &mut self.path_test {
                Some(test) if test.owns(host) => test.handle_arrival(now, host, packet, net),
                _ => _ = self.environment.handle_arrival(now, host, &packet),
            }
            return;
        }
        let to_sender = host & 1 == 0;
        if !to_sender {
            self.environment.handle_data(index, packet.bytes());
        }
        of.unpack(packet);
        if let Some(capture) = &mut of.capture {
            capture.begin_event(net.cause());
            of.capture_arrival(now, index, to_sender);
        }
        let (flow, segment) = of.arrival(index);
        if let Some(node) = flow.nodes[usize::from(!to_sender)] {
            let side = if to_sender { Side::Sender } else { Side::Receiver };
            if of.is_current(packet) {
                let (flow, segment) = of.arrival(index);
                flow.endpoint(side).handle_segment(now, segment);
                self.nodes.handle_arrival(now, node, (index, side), of, net);
            }
        } else if to_sender {
            flow.sender.handle_segment(now, segment);
            if flow.workload.watches_buffer {
                return self.handle_room(now, index, net);
            }
            of.pump(now, index, Side::Sender, net);
        } else if net.is_followed() {
            self.handle_joined(now, index, net);
        } else {
            let before = flow.receiver.bytes_received();
            flow.receiver.handle_segment(now, segment);
            let news = flow.workload.watches_delivery && flow.receiver.bytes_received() != before;
            of.pump(now, index, Side::Receiver, net);
            if news {
                self.handle_delivered(now, index, net);
            }
        }
    }

    fn handle_packets(&mut self, host: u32, packets: &[(u64, Packet)], net: &mut Network<Packet>) -> usize {
        let (index, side) = end_of(host);
        let of = &mut self.connections;
        let plain = of.flows.get(index).is_some_and(|flow| match side {
            _ if flow.nodes[side as usize].is_some() => false,
            Side::Sender => !flow.workload.watches_buffer,
            Side::Receiver => !flow.workload.watches_delivery || matches!(flow.workload.source, Source::Bulk { .. }),
        });
        if !plain || of.capture.is_some() || net.is_followed() {
            return self.handle_each(host, packets, net);
        }
        let handled = of.arrive_in_a_row((index, side), packets, net);
        if side == Side::Receiver && self.environment.is_managed() {
            packets[..handled].iter().for_each(|(_, packet)| self.environment.handle_data(index, packet.bytes()));
        }
        let flow = &of.flows[index];
        if side == Side::Receiver
            && flow.workload.watches_delivery
            && flow.receiver.bytes_received() >= flow.sender.bytes_written()
        {
            self.handle_delivered(net.now(), index, net);
        }
        handled
    }

    #[inline]
    fn prefetch(&self, host: u32, next: bool) {
        let (index, side) = end_of(host);
        if index < self.connections.flows.len() {
            self.connections.prefetch(index, side, next);
        }
    }

    fn note_sample(&mut self, host: u32, at: Time, nth: usize) {
        let (index, side) = end_of(host);
        let of = &self.connections;
        if index < of.named {
            self.samples.note(at, (index, side), nth, (&of.flows[index], of.opened[index]));
        }
    }

    #[inline(never)]
    fn write_samples(&mut self, first: Time, count: usize, net: &mut Network<Packet>) {
        let Some(interval) = self.series_interval else { return };
        let of = &mut self.connections;
        let times = std::iter::successors(Some(first), move |&at| Some(at + interval)).take(count);
        for (nth, time) in times.clone().enumerate() {
            self.samples.write((time, nth), interval, &mut of.flows[..of.named], &mut self.flow_series);
        }
        self.environment.write_samples(times, net);
    }

    fn handle_timer(&mut self, now: Time, timer: u32, net: &mut Network<Packet>) {
        if let Some(capture) = &mut self.connections.capture {
            capture.begin_event(net.cause());
        }
        match self.connections.timers.which(timer) {
            Timer::Environment => {
                self.environment.handle_timer(now, timer, &mut self.connections, net);
                if self.windows.is_some() {
                    self.begin_windows(timer, net);
                }
            }
            Timer::Endpoint(index, side) => self.handle_endpoint_timer(now, index, side, net),
            Timer::Application(index) => self.handle_application_timer(now, index, net),
            Timer::Stop(index) => self.handle_stop(now, index, net),
            Timer::Warmup => self.begin_measuring(),
            Timer::Sampler => self.sample(now, net),
            Timer::Probe(index) => self.probe(now, index, net),
            Timer::PathTest => {
                if let Some(test) = &mut self.path_test {
                    test.handle_timer(now, net);
                }
            }
        }
    }

    fn handle_drop(&mut self, now: Time, link: u32, packet: Packet, _reason: DropReason, net: &mut Network<Packet>) {
        if let Some(test) = self.path_test.as_mut().filter(|test| test.owns(packet.source())) {
            return test.handle_drop(now, link, packet, net);
        }
        if !self.environment.handle_drop(packet.source(), &packet) {
            self.connections.lose(packet.source() as usize / 2, packet);
        }
    }
}
