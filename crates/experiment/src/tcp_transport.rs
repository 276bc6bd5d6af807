//! TCP as a transport of simulated flows.

use crate::capture::Capture;
use crate::error::RunError;
use crate::packet::Packet;
use crate::sender_command::Preparation;
use crate::series::{ssthresh, SenderSample};
use crate::tcp_config::{tcp_config, Algorithms};
use crate::tcp_pool::{Departures, Pool};
use crate::transport::{Transport, TransportMaker};
use spec::{FlowSpec, WorkloadSpec};
use tcp::config::Reader;
use tcp::segment::Segment;
use tcp::{CwndReduction, Endpoint, Output, Stats, Train};
use units::Time;

/// Bytes of a scoreboard that are fetched before a run of ACKs.
const SCOREBOARD_BYTES: usize = 512;

impl Transport for Endpoint {
    type Segment = Segment;
    type Pool = Pool;
    const PARTS_OF_RUNS: [&'static [(usize, usize)]; 2] = Endpoint::PARTS_OF_RUNS;

    fn connect(&mut self, now: Time) {
        self.connect(now);
    }
    fn abort(&mut self, now: Time) {
        self.abort(now);
    }
    #[inline]
    fn handle_segment(&mut self, now: Time, segment: &Segment) {
        self.handle_segment(now, segment);
    }
    #[inline]
    fn handle_run(
        &mut self,
        pool: &mut Pool,
        packets: &[(u64, Packet)],
        until: Time,
        hop: u32,
        send: impl FnMut(Time, Packet, u32),
    ) -> usize {
        pool.take_run(packets, hop, |arrivals, departures| {
            self.handle_run(until, arrivals, PackedOutput { departures, send })
        })
    }
    fn handle_timer_run(
        &mut self,
        pool: &mut Pool,
        now: Time,
        until: Time,
        (hop, source): (u32, u32),
        send: impl FnMut(Time, Packet, u32),
    ) -> Option<(Time, u64)> {
        Some(self.handle_timer_run(now, until, PackedOutput { departures: pool.departures(hop, source), send }))
    }
    fn handle_timeout(&mut self, now: Time) {
        self.handle_timeout(now);
    }
    #[inline]
    fn poll_train(&mut self, now: Time, segment: &mut Segment) -> Train {
        self.poll_train(now, segment, u32::MAX)
    }
    #[inline]
    fn prefetch(&self) {
        link::prefetch(self.oldest_in_flight(), SCOREBOARD_BYTES);
        if let Some(latest) = self.latest_in_flight() {
            link::prefetch_behind(latest, SCOREBOARD_BYTES);
        }
    }
    #[inline]
    fn is_idle(&self) -> bool {
        Endpoint::is_idle(self)
    }
    #[inline]
    fn poll_timeout(&self) -> Time {
        self.poll_timeout()
    }
    #[inline]
    fn bytes_received(&self) -> u64 {
        self.bytes_received()
    }
    fn read(&mut self, now: Time, bytes: u64) {
        self.read(now, bytes);
    }
    #[inline]
    fn bytes_unsent(&self) -> u64 {
        self.bytes_unsent()
    }
    #[inline]
    fn was_established(&self) -> bool {
        self.established_at().is_some()
    }
    #[inline]
    fn is_closed(&self) -> bool {
        self.is_closed()
    }
    fn stats(&self) -> &Stats {
        self.stats()
    }
    fn sample(&self) -> SenderSample {
        let control = self.controller().sock();
        SenderSample {
            cwnd_packets: control.snd_cwnd,
            ssthresh_packets: ssthresh(control.snd_ssthresh),
            srtt: self.srtt(),
            in_flight_bytes: self.in_flight_bytes(),
            udt: None,
        }
    }
    fn prepare(&mut self, now: Time, preparation: &Preparation) -> Option<CwndReduction> {
        preparation.apply(now, self)
    }
    fn restore(&mut self, now: Time) {
        self.restore_cwnd(now);
    }
    fn capture(to: &mut Capture, now: Time, flow: usize, from_sender: bool, segment: &Segment, count: u32) {
        let mut segment = *segment;
        for _ in 0..count {
            to.record(now, flow, from_sender, &segment);
            segment.seq += u64::from(segment.len);
        }
    }
}

/// Packs what an endpoint sends in a run.
struct PackedOutput<'a, S> {
    departures: Departures<'a>,
    send: S,
}

impl<S: FnMut(Time, Packet, u32)> Output for PackedOutput<'_, S> {
    // Once per ACK; called from three places, it is inlined in none by itself.
    #[inline(always)]
    fn send(&mut self, at: Time, segment: &Segment, count: u32) {
        let packet = self.departures.pack(segment, count);
        (self.send)(at, packet, count);
    }
}

impl TransportMaker for Algorithms {
    type Transport = Endpoint;

    fn make(&mut self, flow: &FlowSpec, now: Time) -> Result<[Endpoint; 2], RunError> {
        let mut config = tcp_config(&flow.transport);
        if matches!(flow.workload, WorkloadSpec::Fc(_) | WorkloadSpec::Fcp(_)) {
            // A gateway leaves in the window what its ports cannot take.
            config.reader = Reader::Manual;
        }
        let sender = Endpoint::new_client(config.clone(), self.controller(&flow.name, &flow.transport)?, now);
        Ok([sender, Endpoint::new_server(config, self.controller(&flow.name, &flow.transport)?, now)])
    }
}
