//! A transport that is TCP for some flows and UDT for others, and whose senders may take time for each packet. Runs
//! over TCP alone do without it.

use crate::capture::Capture;
use crate::error::RunError;
use crate::packet::Packet;
use crate::send_overhead::SendOverhead;
use crate::sender_command::Preparation;
use crate::series::SenderSample;
use crate::tcp_config::Algorithms;
use crate::tcp_pool::Pool;
use crate::transport::{SegmentPool, Transport, TransportMaker};
use crate::udt_pool::UdtPool;
use crate::udt_transport::UdtMaker;
use crate::workload::SendingEnd;
use spec::{FlowSpec, RunSpec, TransportSpec};
use tcp::{CwndReduction, Stats, Train};
use units::{Span, Time};

/// An end of a connection over either.
pub struct MixedEndpoint {
    end: End,
    /// None: it sends at once.
    overhead: Option<Box<SendOverhead>>,
}

#[allow(clippy::large_enum_variant, reason = "a flow has two of them, and they stay where they are")]
enum End {
    Tcp(tcp::Endpoint),
    Udt(udt::Endpoint),
}

impl End {
    /// As [`Transport::poll_train`], for one segment.
    fn poll_one(&mut self, now: Time, segment: &mut MixedSegment) -> Train {
        match self {
            End::Tcp(end) => end.poll_train(now, segment.tcp(), 1),
            End::Udt(end) => end.poll_train(now, segment.udt()),
        }
    }
}

/// A segment of TCP or a packet of UDT.
#[derive(Clone, Copy)]
#[allow(clippy::large_enum_variant, reason = "it is a plain value that is used again for every packet")]
pub enum MixedSegment {
    Tcp(tcp::segment::Segment),
    Udt(udt::Segment),
}

impl Default for MixedSegment {
    fn default() -> MixedSegment {
        MixedSegment::Tcp(tcp::segment::Segment::default())
    }
}

impl MixedSegment {
    /// Room for a segment of TCP.
    fn tcp(&mut self) -> &mut tcp::segment::Segment {
        loop {
            match self {
                MixedSegment::Tcp(segment) => return segment,
                MixedSegment::Udt(_) => *self = MixedSegment::default(),
            }
        }
    }

    /// Room for a packet of UDT.
    fn udt(&mut self) -> &mut udt::Segment {
        loop {
            match self {
                MixedSegment::Udt(segment) => return segment,
                MixedSegment::Tcp(_) => *self = MixedSegment::Udt(udt::Segment::default()),
            }
        }
    }
}

/// Hands a call on to the end of whichever transport.
macro_rules! each {
    ($end:expr, $inner:ident => $call:expr) => {
        match $end {
            End::Tcp($inner) => $call,
            End::Udt($inner) => $call,
        }
    };
}

impl SendingEnd for MixedEndpoint {
    fn write(&mut self, now: Time, bytes: u64) -> u64 {
        each!(&mut self.end, end => end.write(now, bytes))
    }
    fn close(&mut self, now: Time) {
        each!(&mut self.end, end => end.close(now));
    }
    fn discard_unsent(&mut self, now: Time) {
        each!(&mut self.end, end => SendingEnd::discard_unsent(end, now));
    }
    fn bytes_written(&self) -> u64 {
        each!(&self.end, end => end.bytes_written())
    }
    fn is_established(&self) -> bool {
        each!(&self.end, end => SendingEnd::is_established(end))
    }
    fn unacknowledged(&self) -> u64 {
        each!(&self.end, end => SendingEnd::unacknowledged(end))
    }
    fn has_room(&self, unsent: u64) -> bool {
        each!(&self.end, end => SendingEnd::has_room(end, unsent))
    }
    fn round_trip(&self) -> Option<Span> {
        each!(&self.end, end => SendingEnd::round_trip(end))
    }
}

impl Transport for MixedEndpoint {
    type Segment = MixedSegment;
    type Pool = MixedPool;

    fn connect(&mut self, now: Time) {
        each!(&mut self.end, end => end.connect(now));
    }
    fn abort(&mut self, now: Time) {
        each!(&mut self.end, end => end.abort(now));
    }
    fn handle_segment(&mut self, now: Time, segment: &MixedSegment) {
        match (&mut self.end, segment) {
            (End::Tcp(end), MixedSegment::Tcp(segment)) => end.handle_segment(now, segment),
            (End::Udt(end), MixedSegment::Udt(segment)) => end.handle_segment(now, segment),
            _ => unreachable!("both ends of a flow have one transport"),
        }
    }
    fn handle_timeout(&mut self, now: Time) {
        each!(&mut self.end, end => end.handle_timeout(now));
    }
    fn poll_train(&mut self, now: Time, segment: &mut MixedSegment) -> Train {
        if let Some(overhead) = &mut self.overhead {
            let turn = overhead.turn(now, || each!(&mut self.end, end => end.has_to_transmit(now)));
            return turn.train(|| self.end.poll_one(now, segment));
        }
        match &mut self.end {
            End::Tcp(end) => Transport::poll_train(end, now, segment.tcp()),
            End::Udt(end) => Transport::poll_train(end, now, segment.udt()),
        }
    }
    fn is_idle(&self) -> bool {
        each!(&self.end, end => end.is_idle()) && !self.overhead.as_ref().is_some_and(|overhead| overhead.is_at_work())
    }
    fn poll_timeout(&self) -> Time {
        let due = each!(&self.end, end => end.poll_timeout());
        self.overhead.as_ref().map_or(due, |overhead| overhead.poll_timeout(due))
    }
    fn bytes_received(&self) -> u64 {
        each!(&self.end, end => end.bytes_received())
    }
    fn read(&mut self, now: Time, bytes: u64) {
        each!(&mut self.end, end => Transport::read(end, now, bytes));
    }
    fn bytes_unsent(&self) -> u64 {
        each!(&self.end, end => end.bytes_unsent())
    }
    fn was_established(&self) -> bool {
        each!(&self.end, end => Transport::was_established(end))
    }
    fn is_closed(&self) -> bool {
        each!(&self.end, end => end.is_closed())
    }
    fn stats(&self) -> &Stats {
        each!(&self.end, end => end.stats())
    }
    fn sample(&self) -> SenderSample {
        each!(&self.end, end => end.sample())
    }
    fn prepare(&mut self, now: Time, preparation: &Preparation) -> Option<CwndReduction> {
        each!(&mut self.end, end => end.prepare(now, preparation))
    }
    fn restore(&mut self, now: Time) {
        each!(&mut self.end, end => end.restore(now));
    }
    fn capture(to: &mut Capture, now: Time, flow: usize, from_sender: bool, segment: &MixedSegment, count: u32) {
        match segment {
            MixedSegment::Tcp(segment) => tcp::Endpoint::capture(to, now, flow, from_sender, segment, count),
            MixedSegment::Udt(segment) => udt::Endpoint::capture(to, now, flow, from_sender, segment, count),
        }
    }
}

/// Segments of both in flight.
pub struct MixedPool {
    /// By source: true if it sends UDT, as its first packet showed.
    is_udt: Vec<bool>,
    tcp: Pool,
    udt: UdtPool,
}

impl SegmentPool for MixedPool {
    type Segment = MixedSegment;

    fn new(sources: usize) -> MixedPool {
        MixedPool { is_udt: vec![false; sources], tcp: Pool::new(sources), udt: UdtPool::new(sources) }
    }
    fn use_ipv6(&mut self, source: u32) {
        self.udt.use_ipv6(source);
    }
    fn pack(&mut self, segment: &MixedSegment, hop: u32, source: u32, count: u32) -> Packet {
        match segment {
            MixedSegment::Tcp(segment) => self.tcp.pack(segment, hop, source, count),
            MixedSegment::Udt(segment) => {
                self.is_udt[source as usize] = true;
                self.udt.pack(segment, hop, source, count)
            }
        }
    }
    fn unpack(&mut self, packet: Packet, segment: &mut MixedSegment) {
        if self.is_udt[packet.source() as usize] {
            self.udt.unpack(packet, segment.udt());
        } else {
            self.tcp.unpack(packet, segment.tcp());
        }
    }
    fn is_current(&mut self, packet: Packet) -> bool {
        if self.is_udt[packet.source() as usize] {
            self.udt.is_current(packet)
        } else {
            self.tcp.is_current(packet)
        }
    }
    fn discard(&mut self, packet: Packet) {
        if self.is_udt[packet.source() as usize] {
            self.udt.discard(packet);
        } else {
            self.tcp.discard(packet);
        }
    }
    fn begin_connection(&mut self, source: u32) {
        self.tcp.begin_connection(source);
        self.udt.begin_connection(source);
    }
}

/// Returns true if a flow of `run` is over UDT.
pub fn has_udt(run: &RunSpec) -> bool {
    transports(run).any(|transport| transport.udt.is_some())
}

fn transports(run: &RunSpec) -> impl Iterator<Item = &TransportSpec> {
    run.flows.iter().map(|flow| &flow.transport).chain(run.short_flows.iter().map(|entry| &entry.transport))
}

/// Makes the ends of flows over whichever transport the flow asks for.
pub struct MixedMaker {
    tcp: Algorithms,
    udt: UdtMaker,
    /// Of the run.
    seed: u64,
}

impl MixedMaker {
    /// A maker for `run`.
    pub fn new(run: &RunSpec) -> MixedMaker {
        MixedMaker { tcp: Algorithms::default(), udt: UdtMaker { seed: run.seed }, seed: run.seed }
    }

    /// Returns true if a flow of `run` is not over TCP, or its sender takes time for each packet.
    pub fn is_needed(run: &RunSpec) -> bool {
        has_udt(run) || transports(run).any(|transport| transport.send_overhead.is_some())
    }
}

impl TransportMaker for MixedMaker {
    type Transport = MixedEndpoint;

    fn make(&mut self, flow: &FlowSpec, now: Time) -> Result<[MixedEndpoint; 2], RunError> {
        let [sender, receiver] = if flow.transport.udt.is_some() {
            self.udt.make(flow, now)?.map(End::Udt)
        } else {
            self.tcp.make(flow, now)?.map(End::Tcp)
        };
        let overhead = flow.transport.send_overhead.map(|spec| SendOverhead::new(spec, self.seed, &flow.name));
        Ok([
            MixedEndpoint { end: sender, overhead: overhead.map(Box::new) },
            MixedEndpoint { end: receiver, overhead: None },
        ])
    }
}
