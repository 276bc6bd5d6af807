//! A transport of a page: one segment at a time, sent again until it is acknowledged. It has no handshake and no end.

use crate::common::{bulk, integer, real, transport, Dumbbell, MS, S};
use experiment::{simulate_with, Ends, Node, Packet, Parts, RunError};
use experiment::{SegmentPool, SenderSample, SendingEnd, Side, Transport, TransportMaker};
use serde_json::json;
use spec::FlowSpec;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use tcp::{Stats, Train};
use units::{Span, Time};

const PAYLOAD: u64 = 1000;
const RETRY: Span = Span::from_millis(500);

#[derive(Clone, Copy, Default)]
pub struct Segment {
    /// Number of its first byte; of an acknowledgment, of the byte that is expected.
    number: u64,
    bytes: u64,
}

#[derive(Default)]
pub struct StopAndWait {
    written: u64,
    acknowledged: u64,
    received: u64,
    /// Time at which the data in flight is sent again.
    retry_at: Option<Time>,
    wants_to_send: bool,
    wants_to_acknowledge: bool,
    stats: Stats,
}

impl SendingEnd for StopAndWait {
    fn write(&mut self, _now: Time, bytes: u64) -> u64 {
        self.written += bytes;
        self.wants_to_send |= self.retry_at.is_none();
        bytes
    }
    fn close(&mut self, _now: Time) {}
    fn discard_unsent(&mut self, _now: Time) {
        self.written = self.acknowledged;
    }
    fn bytes_written(&self) -> u64 {
        self.written
    }
    fn is_established(&self) -> bool {
        true
    }
    fn unacknowledged(&self) -> u64 {
        self.written - self.acknowledged
    }
    fn has_room(&self, unsent: u64) -> bool {
        self.unacknowledged() < unsent
    }
    fn round_trip(&self) -> Option<Span> {
        None
    }
}

impl Transport for StopAndWait {
    type Segment = Segment;
    type Pool = Pool;

    fn connect(&mut self, _now: Time) {}
    fn abort(&mut self, _now: Time) {}
    fn handle_segment(&mut self, _now: Time, segment: &Segment) {
        if segment.bytes > 0 {
            self.wants_to_acknowledge = true;
            if segment.number == self.received {
                self.received += segment.bytes;
                self.stats.data_segments_received += 1;
            }
        } else if segment.number > self.acknowledged {
            self.acknowledged = segment.number;
            self.retry_at = None;
            self.wants_to_send = self.written > self.acknowledged;
        }
    }
    fn handle_timeout(&mut self, now: Time) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.stats.timeouts += 1;
            self.stats.retransmitted_segments += 1;
            self.wants_to_send = true;
        }
    }
    fn poll_train(&mut self, now: Time, segment: &mut Segment) -> Train {
        if std::mem::take(&mut self.wants_to_acknowledge) {
            *segment = Segment { number: self.received, bytes: 0 };
        } else if std::mem::take(&mut self.wants_to_send) {
            *segment = Segment { number: self.acknowledged, bytes: (self.written - self.acknowledged).min(PAYLOAD) };
            self.retry_at = Some(now + RETRY);
            self.stats.data_segments_sent += 1;
        } else {
            return Train { segments: 0, more: false };
        }
        Train { segments: 1, more: true }
    }
    fn is_idle(&self) -> bool {
        !self.wants_to_send && !self.wants_to_acknowledge
    }
    fn poll_timeout(&self) -> Time {
        self.retry_at.unwrap_or(Time::NEVER)
    }
    fn bytes_received(&self) -> u64 {
        self.received
    }
    fn bytes_unsent(&self) -> u64 {
        self.unacknowledged()
    }
    fn was_established(&self) -> bool {
        true
    }
    fn is_closed(&self) -> bool {
        false
    }
    fn stats(&self) -> &Stats {
        &self.stats
    }
    fn sample(&self) -> SenderSample {
        let in_flight_bytes = self.unacknowledged().min(PAYLOAD);
        SenderSample { cwnd_packets: 1, ssthresh_packets: None, srtt: None, in_flight_bytes, udt: None }
    }
}

/// Segments in flight, by source and number.
pub struct Pool {
    next: Vec<u32>,
    segments: BTreeMap<(u32, u32), Segment>,
}

impl SegmentPool for Pool {
    type Segment = Segment;

    fn new(sources: usize) -> Pool {
        Pool { next: vec![0; sources], segments: BTreeMap::new() }
    }
    fn pack(&mut self, segment: &Segment, hop: u32, source: u32, _count: u32) -> Packet {
        let number = self.next[source as usize];
        self.next[source as usize] += 1;
        self.segments.insert((source, number), *segment);
        Packet::new(number, hop, source, 40 + segment.bytes as u32, 0)
    }
    fn unpack(&mut self, packet: Packet, segment: &mut Segment) {
        *segment = self.segments.remove(&(packet.source(), packet.number())).expect("it is in flight");
    }
    fn is_current(&mut self, _packet: Packet) -> bool {
        true
    }
    fn discard(&mut self, packet: Packet) {
        self.segments.remove(&(packet.source(), packet.number()));
    }
    fn begin_connection(&mut self, _source: u32) {}
}

pub struct Maker;

impl TransportMaker for Maker {
    type Transport = StopAndWait;

    fn make(&mut self, _flow: &FlowSpec, _now: Time) -> Result<[StopAndWait; 2], RunError> {
        Ok([StopAndWait::default(), StopAndWait::default()])
    }
}

/// A run without nodes.
pub enum Nobody {}

impl<T: Transport> Node<T> for Nobody {
    fn flows(&self) -> Range<usize> {
        match *self {}
    }
    fn start(&mut self, _now: Time, _ends: &mut Ends<'_, T>) {}
    fn stop(&mut self, _now: Time) {}
    fn handle_arrival(&mut self, _now: Time, _flow: usize, _side: Side, _ends: &mut Ends<'_, T>) -> bool {
        false
    }
    fn handle_sent(&mut self, _now: Time, _flow: usize, _side: Side, _ends: &mut Ends<'_, T>) {}
    fn poll_pump(&mut self) -> Option<(usize, Side)> {
        None
    }
    fn done_at(&self) -> Option<Time> {
        None
    }
}

#[test]
fn a_segment_per_round_trip_is_delivered_and_sent_again_when_lost() {
    let mut run = Dumbbell::new(100_000_000, 100 * MS).flow("f", transport("reno", json!({})), bulk());
    run.duration_ns = 60 * S;
    run.loss = json!({"kind": "every_nth", "n": 10});
    let parts = Parts { maker: Maker, nodes: Vec::<Nobody>::new(), of_ends: vec![], probes: vec![] };
    let outcome = simulate_with(&run.spec(), parts, &mut |_| ControlFlow::Continue(())).expect("the run ends");
    let (timeouts, delivered) = (integer(&outcome, "timeouts"), integer(&outcome, "delivered_bytes"));
    // Of ten segments nine take a round trip, and one the time-out.
    assert!((37..43).contains(&timeouts), "{timeouts}");
    assert!((380..430).contains(&(delivered / PAYLOAD)), "{delivered} bytes");
    assert!(real(&outcome, "goodput_bps") < 80_000.0, "at most a segment per round trip");
}
