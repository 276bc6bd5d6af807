//! A path test beside a run's traffic: the packets of its trains are packets of the simulated network. The truth about
//! the path, which a real one does not tell, is read off the links.

use crate::link_config::framing_of;
use crate::packet::Packet;
use crate::path_test_spec::PathTestSpec;
use link::Packet as _;
use path_test::estimate::{Estimator, Next, Outcome};
use path_test::train::{Train, TrainPacket, TrainReport};
use serde::Serialize;
use sim::Network;
use spec::{LinkSpec, QueueSpec, RunSpec};
use units::Time;

/// The truth about a link of the route.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkTruth {
    /// Its name.
    pub name: String,
    /// Rate of IP packets of the test's size, bit/s.
    pub capacity_bps: f64,
    /// Mean rate of all other packets during the test, bit/s.
    pub cross_bps: f64,
    /// Limit of its queue, bytes; none: it counts packets or has none.
    pub queue_bytes: Option<u64>,
    /// Most bytes that waited so far in the run.
    pub max_queue_bytes: u64,
}

/// The truth about a path during a test.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathTruth {
    /// Of the narrow link, bit/s.
    pub capacity_bps: f64,
    /// Least over the links of capacity less cross traffic, mean over the test, bit/s.
    pub available_bps: f64,
    /// Limit of the queue of the tight link, bytes.
    pub queue_bytes: Option<u64>,
    /// Duration of the test, s.
    pub seconds: f64,
    /// Bytes of the test's own packets, there and back.
    pub test_bytes: u64,
    /// Each link there, in order.
    pub links: Vec<LinkTruth>,
}

/// Result of a path test, beside the truth.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct JudgedOutcome {
    /// The estimator's.
    pub outcome: Outcome,
    /// Truth by the links.
    pub truth: PathTruth,
}

struct Running {
    begin: Time,
    train: Train,
    packets: Vec<TrainPacket>,
    /// Packets on their way.
    outstanding: usize,
}

/// Counters of a link at a time.
#[derive(Clone, Copy, Default)]
struct Passed {
    bytes: u64,
    own_bytes: u64,
}

/// The two ends of a path test in the simulated network.
pub struct PathTest {
    estimator: Box<dyn Estimator>,
    spec: PathTestSpec,
    route: Vec<usize>,
    /// First hop there and back.
    hops: [u32; 2],
    /// Number of the far end as a host and of the sender as a source; that of the other end is one more.
    first_number: u32,
    timer: u32,
    running: Option<Running>,
    outcome: Option<Outcome>,
    packet_bytes: u32,
    sent_bytes: u64,
    returned_bytes: u64,
    /// By link of the route.
    dropped_bytes: Vec<u64>,
    begun: Option<(Time, Vec<Passed>)>,
    ended: Option<(Time, Vec<Passed>)>,
}

impl PathTest {
    /// The two ends of a test: packets over `route` start at the first of `hops`, those back at the second.
    pub fn new(
        estimator: Box<dyn Estimator>,
        spec: PathTestSpec,
        route: Vec<usize>,
        hops: [u32; 2],
        first_number: u32,
        timer: u32,
    ) -> PathTest {
        PathTest {
            estimator,
            spec,
            dropped_bytes: vec![0; route.len()],
            route,
            hops,
            first_number,
            timer,
            running: None,
            outcome: None,
            packet_bytes: 0,
            sent_bytes: 0,
            returned_bytes: 0,
            begun: None,
            ended: None,
        }
    }

    /// Returns true if `number` is one of its hosts or sources.
    #[inline]
    pub fn owns(&self, number: u32) -> bool {
        number == self.first_number || number == self.first_number + 1
    }

    fn receiver_ns(&self, now: Time) -> u64 {
        let skew = i128::from(now.0) * i128::from(self.spec.clock_skew_e9) / 1_000_000_000;
        let at = (i128::from(now.0) + skew + i128::from(self.spec.clock_offset_ns)).max(0) as u64;
        let step = self.spec.stamp_step_ns.max(1);
        at / step * step
    }

    /// `packet` has come to `host`.
    pub fn handle_arrival(&mut self, now: Time, host: u32, packet: Packet, net: &mut Network<Packet>) {
        let at_receiver = self.receiver_ns(now);
        let Some(running) = &mut self.running else { return };
        let entry = &mut running.packets[packet.number() as usize];
        if host == self.first_number {
            entry.received_ns = Some(at_receiver);
            let reply = Packet::new(packet.number(), self.hops[1], self.first_number + 1, packet.bytes(), 0);
            self.returned_bytes += u64::from(packet.bytes());
            if net.send(reply).is_err() {
                self.settle_one(now, net);
            }
        } else {
            entry.returned_ns = Some(now.0);
            self.settle_one(now, net);
        }
    }

    /// `packet` of its own was lost at `link`.
    pub fn handle_drop(&mut self, now: Time, link: u32, packet: Packet, net: &mut Network<Packet>) {
        if packet.source() == self.first_number {
            if let Some(place) = self.route.iter().position(|&one| one == link as usize) {
                self.dropped_bytes[place] += u64::from(packet.bytes());
            }
        }
        self.settle_one(now, net);
    }

    fn settle_one(&mut self, now: Time, net: &mut Network<Packet>) {
        if let Some(running) = &mut self.running {
            running.outstanding -= 1;
            if running.outstanding == 0 && running.packets.len() == running.train.offsets_ns.len() {
                net.set_timer(self.timer, now);
            }
        }
    }

    fn passed(&self, net: &mut Network<Packet>) -> Vec<Passed> {
        let links = net.links_mut();
        let mut dropped = 0;
        let places = self.route.iter().zip(&self.dropped_bytes);
        places
            .map(|(&link, &lost)| {
                dropped += lost;
                Passed { bytes: links[link].stats().delivered_bytes, own_bytes: self.sent_bytes - dropped }
            })
            .collect()
    }

    /// Its timer fired: packets are due, a train is over, or the next begins.
    pub fn handle_timer(&mut self, now: Time, net: &mut Network<Packet>) {
        loop {
            if self.running.is_some() {
                if !self.send_due(now, net) {
                    return;
                }
                let Some(running) = self.running.take() else { return };
                let step = self.spec.stamp_step_ns.max(1);
                let report = TrainReport { packets: running.packets, stamp_step_ns: step, late: 0 };
                self.estimator.handle_report(now.0, &report);
            }
            match self.estimator.poll_next(now.0) {
                Next::Send { at_ns, train } => {
                    let begin = Time(at_ns).max(now);
                    let packets = Vec::with_capacity(train.offsets_ns.len());
                    self.running = Some(Running { begin, train, packets, outstanding: 0 });
                    if begin > now {
                        return net.set_timer(self.timer, begin);
                    }
                }
                Next::Done(outcome) => {
                    self.outcome = Some(outcome);
                    self.ended = Some((now, self.passed(net)));
                    return net.stop();
                }
            }
        }
    }

    /// Sends what is due; returns true if the train is over.
    fn send_due(&mut self, now: Time, net: &mut Network<Packet>) -> bool {
        if self.begun.is_none() {
            self.begun = Some((now, self.passed(net)));
        }
        let Some(running) = &mut self.running else { return false };
        let bytes = running.train.packet_bytes;
        self.packet_bytes = self.packet_bytes.max(bytes);
        while let Some(&offset) = running.train.offsets_ns.get(running.packets.len()) {
            let due = Time(running.begin.0.saturating_add(offset));
            if due > now {
                net.set_timer(self.timer, due);
                return false;
            }
            let packet = Packet::new(running.packets.len() as u32, self.hops[0], self.first_number, bytes, 0);
            running.packets.push(TrainPacket { sent_ns: now.0, ..TrainPacket::default() });
            running.outstanding += 1;
            self.sent_bytes += u64::from(bytes);
            if let Err(refused) = net.send(packet) {
                running.outstanding -= 1;
                if let Some(place) = self.route.iter().position(|&one| one == refused.link as usize) {
                    self.dropped_bytes[place] += u64::from(bytes);
                }
            }
        }
        running.outstanding == 0
    }

    /// Its result, beside the truth; None: it is not over.
    pub fn judged(self, spec: &RunSpec, net: &Network<Packet>) -> Option<JudgedOutcome> {
        let ((begun, before), (ended, after)) = (self.begun?, self.ended?);
        let seconds = ended.since(begun).as_secs_f64();
        let of_link = |(place, &link): (usize, &usize)| {
            let (spec, packet_bytes) = (&spec.links[link], f64::from(self.packet_bytes));
            let all = after[place].bytes - before[place].bytes;
            let own = after[place].own_bytes - before[place].own_bytes;
            let frame_bytes = spec.framing.map_or(packet_bytes, |framing| {
                let framing = framing_of(framing);
                let frame = (self.packet_bytes + framing.header_bytes).max(framing.min_frame_bytes);
                f64::from(frame + framing.gap_bytes)
            });
            LinkTruth {
                name: spec.name.clone(),
                capacity_bps: spec.rate_bps as f64 * packet_bytes / frame_bytes,
                cross_bps: all.saturating_sub(own) as f64 * 8.0 / seconds,
                queue_bytes: queue_bytes(spec),
                max_queue_bytes: net.links()[link].stats().max_queue_bytes,
            }
        };
        let links: Vec<_> = self.route.iter().enumerate().map(of_link).collect();
        let capacity_bps = links.iter().map(|link| link.capacity_bps).fold(f64::INFINITY, f64::min);
        let available = |link: &LinkTruth| (link.capacity_bps - link.cross_bps).max(0.0);
        let tight = links.iter().min_by(|a, b| available(a).total_cmp(&available(b)))?;
        let truth = PathTruth {
            capacity_bps,
            available_bps: available(tight),
            queue_bytes: tight.queue_bytes,
            seconds,
            test_bytes: self.sent_bytes + self.returned_bytes,
            links,
        };
        Some(JudgedOutcome { outcome: self.outcome?, truth })
    }
}

fn queue_bytes(spec: &LinkSpec) -> Option<u64> {
    match spec.queue {
        QueueSpec::DropTail { limit_bytes, .. } => limit_bytes,
        QueueSpec::Red { limit_bytes, .. } => Some(limit_bytes),
        QueueSpec::Codel { .. } | QueueSpec::FqCodel { .. } => None,
    }
}
