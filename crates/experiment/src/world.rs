//! The hosts of a run: what happens when a packet arrives, is lost, or a timer fires.

use crate::background::Background;
use crate::capture::Capture;
use crate::changes::{apply_change, Change, Look, Notice};
use crate::flow::{Flow, Side};
use crate::iscsi::{self, Session};
use crate::managed::{Management, Word};
use crate::measure::{FlowSeries, LinkSeries};
use crate::packet::{Packet, Pool};
use crate::spec::RunSpec;
use crate::study::{Standing, Study};
use crate::tally::{TrimTally, TrimmedFor};
use crate::transport::Algorithms;
use crate::workload::Stripe;
use link::{DropReason, Packet as _};
use sim::{Hosts, Network, RouteId};
use tcp::segment::Segment;
use units::{Span, Time};

/// Numbers of the run's timers: changes first (they go before packets), then endpoints, applications, stops, background,
/// manager, warm-up, and sampler and observer last, so that a sample shows everything that happened at its time.
#[derive(Clone, Copy)]
pub struct Timers {
    changes: u32,
    flows: u32,
    background: u32,
}

enum Timer {
    Change(usize),
    Endpoint(usize, Side),
    Application(usize),
    Stop(usize),
    Background(usize),
    Manager,
    Warmup,
    Sampler,
    Observer,
}

impl Timers {
    pub fn new(changes: usize, flows: usize, background: usize) -> Timers {
        Timers { changes: changes as u32, flows: flows as u32, background: background as u32 }
    }

    pub fn count(&self) -> usize {
        self.observer() as usize + 1
    }

    #[inline]
    fn endpoint(&self, flow: usize, side: Side) -> u32 {
        self.changes + 2 * flow as u32 + side as u32
    }

    pub fn application(&self, flow: usize) -> u32 {
        self.changes + 2 * self.flows + flow as u32
    }

    pub fn stop(&self, flow: usize) -> u32 {
        self.changes + 3 * self.flows + flow as u32
    }

    pub fn background(&self, source: usize) -> u32 {
        self.changes + 4 * self.flows + source as u32
    }

    pub fn manager(&self) -> u32 {
        self.changes + 4 * self.flows + self.background
    }

    pub fn warmup(&self) -> u32 {
        self.manager() + 1
    }

    pub fn sampler(&self) -> u32 {
        self.warmup() + 1
    }

    pub fn observer(&self) -> u32 {
        self.sampler() + 1
    }

    #[inline]
    fn which(&self, timer: u32) -> Timer {
        let Some(rest) = timer.checked_sub(self.changes) else { return Timer::Change(timer as usize) };
        let flows = self.flows;
        if rest < 2 * flows {
            let side = if rest & 1 == 0 { Side::Sender } else { Side::Receiver };
            Timer::Endpoint((rest / 2) as usize, side)
        } else if rest < 3 * flows {
            Timer::Application((rest - 2 * flows) as usize)
        } else if rest < 4 * flows {
            Timer::Stop((rest - 3 * flows) as usize)
        } else if rest < 4 * flows + self.background {
            Timer::Background((rest - 4 * flows) as usize)
        } else if rest == 4 * flows + self.background {
            Timer::Manager
        } else if rest == 4 * flows + self.background + 1 {
            Timer::Warmup
        } else if timer == self.sampler() {
            Timer::Sampler
        } else {
            Timer::Observer
        }
    }
}

/// Everything of a run that is not the network.
pub struct World {
    /// The spec's, then those of crowds.
    pub flows: Vec<Flow>,
    /// Flows of the spec's own.
    pub named: usize,
    /// Of each further flow, the crowd that it belongs to.
    pub crowds: Vec<usize>,
    pub sessions: Vec<Session>,
    /// Workloads that several flows share.
    pub stripes: Vec<Stripe>,
    pub background: Vec<Background>,
    pub changes: Vec<Change>,
    /// Senders that were told to trim their windows.
    pub trims: Vec<TrimTally>,
    pub timers: Timers,
    pub capture: Option<Capture>,
    pub management: Option<Management>,
    /// A copy that may be extrapolated.
    pub study: Option<Study>,
    /// For connections in place of lost ones.
    pub algorithms: Algorithms,
    pub flow_series: FlowSeries,
    pub link_series: LinkSeries,
    series_interval: Span,
    /// Links of the spec; gates follow them.
    links: usize,
    pool: Pool,
    /// Reused for every segment in and out: a segment with its SACK blocks is 104 bytes.
    scratch: Segment,
    stop_when_done: bool,
    /// Flows whose finite work is not delivered yet.
    unfinished: usize,
    pub opened: Vec<bool>,
}

impl World {
    pub fn new(
        spec: &RunSpec,
        flows: Vec<Flow>,
        sessions: Vec<Session>,
        background: Vec<Background>,
        changes: Vec<Change>,
        timers: Timers,
        capture: Option<Capture>,
    ) -> World {
        World {
            unfinished: flows.len(),
            opened: vec![false; flows.len()],
            pool: Pool::new(2 * flows.len()),
            named: spec.flows.len(),
            flows,
            crowds: vec![],
            sessions,
            stripes: vec![],
            background,
            changes,
            trims: vec![],
            timers,
            capture,
            management: None,
            study: None,
            algorithms: Algorithms::default(),
            flow_series: FlowSeries::default(),
            link_series: LinkSeries::default(),
            links: spec.links.len(),
            series_interval: Span(spec.measure.series_interval_ns.unwrap_or(0)),
            scratch: Segment::default(),
            stop_when_done: spec.stop_when_done,
        }
    }

    /// Whether every mirrored write has arrived, or can never arrive.
    pub fn drained(&self) -> bool {
        self.flows.iter().all(|f| {
            let waiting = match f.workload.share() {
                Some(share) => self.stripes[share.stripe].messages().in_transit_on(share.lane) > 0,
                None => f.workload.messages().is_some_and(|m| m.in_transit() > 0),
            };
            !waiting || f.sender.is_closed()
        })
    }

    /// Sends all that an endpoint has to send and sets its timer.
    #[inline]
    pub(crate) fn pump(&mut self, now: Time, index: usize, side: Side, net: &mut Network<Packet>) {
        // A receiver has nothing to send after every other packet.
        if !self.flows[index].endpoint(side).is_idle() {
            self.transmit(now, index, side, net);
        }
        // The timer may fire early: then the endpoint says its real deadline. So moving a deadline back on every ACK, as
        // the retransmission timer does, costs nothing here.
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
            let train = flow.endpoint(side).poll_train(now, &mut self.scratch, u32::MAX);
            if train.segments == 0 {
                return;
            }
            if self.capture.is_some() {
                self.capture_train(now, index, side, train.segments);
            }
            self.flows[index].mark(&mut self.scratch);
            let mut template = self.pool.template(&self.scratch, hop, 2 * index as u32 + side as u32);
            for _ in 0..train.segments {
                let packet = self.pool.pack(&mut template);
                if let Err(refused) = net.send(packet) {
                    self.flows[index].dropped_packets[side as usize] += 1;
                    self.pool.discard(refused.packet);
                }
            }
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
        let mut segment = self.scratch;
        for _ in 0..segments {
            capture.record(now, index, side == Side::Sender, &segment);
            segment.seq += u64::from(segment.len);
        }
    }

    fn open(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let flow = &mut self.flows[index];
        if let Some(share) = flow.workload.share() {
            return self.open_lane(now, index, share, net);
        }
        self.opened[index] = true;
        flow.sender.connect(now);
        let due = flow.workload.start(now, &mut flow.sender);
        net.set_timer(self.timers.application(index), due);
        self.pump(now, index, Side::Sender, net);
    }

    fn handle_delivered(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let flow = &mut self.flows[index];
        if let Some(share) = flow.workload.share() {
            return self.handle_lane_delivered(now, index, share, net);
        }
        let received = flow.receiver.bytes_received();
        let was_done = flow.workload.done_at.is_some();
        if let Some(due) = flow.workload.handle_delivered(now, received, &mut flow.sender) {
            net.set_timer(self.timers.application(index), due);
            self.pump(now, index, Side::Sender, net);
        }
        if !was_done && self.flows[index].workload.done_at.is_some() {
            self.finish_one(net);
        }
    }

    /// The sender of a flow may have room again.
    #[inline(never)]
    fn handle_room(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let flow = &mut self.flows[index];
        match flow.workload.share() {
            Some(share) => self.fill_lane(now, index, share, net),
            None => {
                flow.workload.flush(now, &mut flow.sender);
                self.pump(now, index, Side::Sender, net);
            }
        }
    }

    /// The application of a flow writes no more; of a shared one that of all its connections.
    pub fn stop(&mut self, now: Time, index: usize) {
        let flow = &mut self.flows[index];
        match flow.workload.share() {
            Some(share) => self.stop_stripe(now, share.stripe),
            None => flow.workload.stop(now, &mut flow.sender),
        }
    }

    /// A flow has done all it had to do.
    pub(crate) fn finish_one(&mut self, net: &mut Network<Packet>) {
        self.unfinished -= 1;
        if self.unfinished == 0 && self.stop_when_done {
            net.stop();
        }
    }

    fn sample(&mut self, now: Time, net: &mut Network<Packet>) {
        let time_s = now.as_secs_f64();
        let series = &mut self.flow_series;
        for (index, flow) in self.flows[..self.named].iter_mut().enumerate() {
            if !self.opened[index] {
                continue;
            }
            let received = flow.received(Side::Receiver);
            let control = flow.sender.controller().sock();
            series.time_s.push(time_s);
            series.flow.push(index as i32);
            series.cwnd_packets.push(control.snd_cwnd);
            series.ssthresh_packets.push(control.snd_ssthresh);
            series.srtt_s.push(flow.sender.srtt().as_secs_f64());
            series.in_flight_bytes.push(flow.sender.in_flight_bytes());
            let interval = self.series_interval.as_secs_f64();
            let rate = |since: u64, received: u64| (received - since) as f64 * 8.0 / interval;
            let [back_since, since] = flow.received_at_sample;
            series.goodput_bps.push(rate(since, received));
            let stats = flow.stats(Side::Sender);
            series.retransmitted_segments.push(stats.retransmitted_segments);
            series.duplicate_acks.push(stats.duplicate_acks_received);
            let (lag, lag_bytes) = match flow.workload.share() {
                Some(share) => self.stripes[share.stripe].messages().lag_of(share.lane, now),
                None => flow.workload.lag(now, received),
            };
            series.lag_s.push(lag.as_secs_f64());
            series.lag_bytes.push(lag_bytes);
            let back = flow.received(Side::Sender);
            if !self.sessions.is_empty() {
                let two_way = flow.session != iscsi::NONE;
                let again = flow.stats(Side::Receiver).retransmitted_segments;
                series.reverse.sample(two_way.then(|| (&flow.receiver, rate(back_since, back), again)));
            }
            flow.received_at_sample = [back, received];
        }
        self.link_series.sample(time_s, now, &mut net.links_mut()[..self.links]);
        net.set_timer(self.timers.sampler(), now + self.series_interval);
    }

    fn observe(&mut self, now: Time, net: &mut Network<Packet>) {
        let Some(study) = &mut self.study else { return };
        let mut standing = Standing::default();
        for flow in &self.flows[..self.named] {
            let sender = flow.stats(Side::Sender);
            standing.received_bytes += flow.received(Side::Receiver);
            standing.packets += flow.stats(Side::Receiver).data_segments_received;
            standing.episodes += sender.timeouts + sender.fast_retransmits;
            standing.in_flight_bytes += flow.sender.in_flight_bytes();
        }
        match study.observe(now, standing) {
            Some(next) => net.set_timer(self.timers.observer(), next),
            None => net.stop(),
        }
    }

    fn handle_change(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let flows = &self.flows;
        match self.changes[index].handle_timer(now, |flow| flows[flow].received(Side::Receiver)) {
            Look::Tell(notice, again) => {
                let event = self.changes[index].index;
                for &flow in &notice.flows {
                    self.tell(now, &notice, TrimmedFor::Event(event), flow);
                }
                net.set_timer(index as u32, again);
            }
            Look::Now(action, again) => {
                if let Some(again) = again {
                    net.set_timer(index as u32, again);
                }
                let routes = |flow: usize| Some(flows[flow].hops.map(RouteId));
                apply_change(&action, now, &mut self.background, self.timers.background(0), routes, net);
            }
            Look::Restore(flows) => {
                for flow in flows {
                    self.flows[flow].sender.restore_cwnd(now);
                    self.pump(now, flow, Side::Sender, net);
                }
            }
            Look::Later(again) => net.set_timer(index as u32, again),
            Look::Done => {}
        }
    }

    /// Tells the sender of `flow`; what members of crowds do with their windows is in no record.
    fn tell(&mut self, now: Time, notice: &Notice, why: TrimmedFor, flow: usize) {
        let sender = &mut self.flows[flow].sender;
        let srtt = sender.srtt();
        let trimmed = notice.tell(now, sender);
        if notice.trim.is_some() && flow < self.named {
            self.trims.push(TrimTally { why, flow, at: now, srtt, trimmed });
        }
    }

    fn handle_manager(&mut self, now: Time, net: &mut Network<Packet>) {
        let Some(management) = &mut self.management else { return };
        let flows = &self.flows;
        management.handle_timer(now, |flow| Some(RouteId(flows[flow].hops[Side::Sender as usize])), net);
        net.set_timer(self.timers.manager(), management.poll_timeout());
        while let Some(word) = self.management.as_mut().and_then(Management::poll_word) {
            match word {
                Word::Trim { notice, entry } => {
                    for &flow in &notice.flows {
                        self.tell(now, &notice, TrimmedFor::Entry(entry), flow);
                    }
                }
                Word::Restore { flow, .. } => {
                    self.flows[flow].sender.restore_cwnd(now);
                    self.pump(now, flow, Side::Sender, net);
                }
            }
        }
    }

    fn handle_background(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let number = (2 * self.flows.len() + index) as u32;
        let source = &mut self.background[index];
        let (goes, due) = source.handle_timer(now);
        if goes {
            source.sent_packets += 1;
            if net.send(Packet::background(source.spec.packet_bytes, source.hop, number)).is_err() {
                source.dropped_packets += 1;
            }
        }
        net.set_timer(self.timers.background(index), due);
    }
}

impl Hosts<Packet> for World {
    #[inline]
    fn handle_packet(&mut self, now: Time, host: u32, packet: Packet, net: &mut Network<Packet>) {
        let index = (host >> 1) as usize;
        if index >= self.flows.len() {
            self.background[host as usize - 2 * self.flows.len()].received_packets += 1;
            return;
        }
        let to_sender = host & 1 == 0;
        if let Some(management) = self.management.as_mut().filter(|_| !to_sender) {
            management.handle_packet(index, packet.bytes());
        }
        self.pool.unpack(packet, &mut self.scratch);
        let flow = &mut self.flows[index];
        if let Some(capture) = &mut self.capture {
            if capture.sees(if to_sender { flow.spec.source } else { flow.spec.destination }) {
                capture.record(now, index, !to_sender, &self.scratch);
            }
        }
        if flow.session != iscsi::NONE {
            let side = if to_sender { Side::Sender } else { Side::Receiver };
            if !flow.unmark(&mut self.scratch) {
                return;
            }
            flow.endpoint(side).handle_segment(now, &self.scratch);
            self.session_tcp(now, index, side, net);
        } else if to_sender {
            flow.sender.handle_segment(now, &self.scratch);
            if flow.workload.watches_buffer {
                return self.handle_room(now, index, net);
            }
            self.pump(now, index, Side::Sender, net);
        } else {
            let before = flow.receiver.bytes_received();
            flow.receiver.handle_segment(now, &self.scratch);
            let news = flow.workload.watches_delivery && flow.receiver.bytes_received() != before;
            self.pump(now, index, Side::Receiver, net);
            if news {
                self.handle_delivered(now, index, net);
            }
        }
    }

    fn handle_timer(&mut self, now: Time, timer: u32, net: &mut Network<Packet>) {
        match self.timers.which(timer) {
            Timer::Change(index) => self.handle_change(now, index, net),
            Timer::Endpoint(index, side) => {
                self.flows[index].armed[side as usize] = Time::NEVER;
                self.flows[index].endpoint(side).handle_timeout(now);
                if self.flows[index].session != iscsi::NONE {
                    return self.session_tcp_timeout(now, index, side, net);
                }
                self.pump(now, index, side, net);
            }
            Timer::Application(index) if self.flows[index].session != iscsi::NONE => {
                self.session_timer(now, index, net);
            }
            Timer::Stop(index) if self.flows[index].session != iscsi::NONE => self.session_stop(now, index, net),
            Timer::Application(index) if !self.opened[index] => self.open(now, index, net),
            Timer::Application(index) => {
                let flow = &mut self.flows[index];
                if let Some(share) = flow.workload.share() {
                    return self.handle_stripe_timer(now, share.stripe, net);
                }
                let due = flow.workload.handle_timer(now, &mut flow.sender);
                net.set_timer(self.timers.application(index), due);
                self.pump(now, index, Side::Sender, net);
            }
            Timer::Stop(index) => {
                self.stop(now, index);
                self.pump(now, index, Side::Sender, net);
                // Everything may have arrived already.
                self.handle_delivered(now, index, net);
            }
            Timer::Background(index) => self.handle_background(now, index, net),
            Timer::Manager => self.handle_manager(now, net),
            Timer::Warmup => {
                for flow in &mut self.flows {
                    flow.received_at_warmup = [flow.received(Side::Sender), flow.received(Side::Receiver)];
                }
                self.sessions_measure();
            }
            Timer::Sampler => self.sample(now, net),
            Timer::Observer => self.observe(now, net),
        }
    }

    fn handle_drop(&mut self, _now: Time, _link: u32, packet: Packet, _reason: DropReason, _net: &mut Network<Packet>) {
        let source = packet.source() as usize;
        match self.flows.get_mut(source / 2) {
            Some(flow) => {
                flow.dropped_packets[source & 1] += 1;
                self.pool.discard(packet);
            }
            None => self.background[source - 2 * self.flows.len()].dropped_packets += 1,
        }
    }
}
