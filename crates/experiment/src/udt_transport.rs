//! UDT as a transport of simulated flows.

use crate::error::RunError;
use crate::series::{SenderSample, UdtSample};
use crate::transport::{Transport, TransportMaker};
use crate::udt_pool::UdtPool;
use crate::workload::SendingEnd;
use spec::{FlowSpec, TransportSpec, UdtSpec, UdtVersionSpec};
use tcp::segment::IPV6_EXTRA_BYTES;
use tcp::{Stats, Train};
use udt::{Config, Endpoint, Segment, Version};
use units::{Size, Span, Time};

/// Headers of a datagram, which libudt counts with a packet of its receive buffer, bytes (IPv4 and UDP).
const DATAGRAM_HEADERS: u64 = 28;
/// Least receive buffer of libudt, packets.
const LEAST_WINDOW: u64 = 32;

impl SendingEnd for Endpoint {
    fn write(&mut self, now: Time, bytes: u64) -> u64 {
        self.write(now, bytes)
    }
    fn close(&mut self, now: Time) {
        self.close(now);
    }
    fn discard_unsent(&mut self, now: Time) {
        self.discard_unsent(now);
    }
    fn bytes_written(&self) -> u64 {
        self.bytes_written()
    }
    fn is_established(&self) -> bool {
        self.is_established()
    }
    fn unacknowledged(&self) -> u64 {
        self.bytes_unacknowledged()
    }
    fn has_room(&self, unsent: u64) -> bool {
        self.bytes_unsent() < unsent && self.send_queue_free() > 0 && !self.is_closed()
    }
    fn round_trip(&self) -> Option<Span> {
        self.srtt()
    }
}

impl Transport for Endpoint {
    type Segment = Segment;
    type Pool = UdtPool;

    fn connect(&mut self, now: Time) {
        self.connect(now);
    }
    fn abort(&mut self, now: Time) {
        self.abort(now);
    }
    fn handle_segment(&mut self, now: Time, segment: &Segment) {
        self.handle_segment(now, segment);
    }
    fn handle_timeout(&mut self, now: Time) {
        self.handle_timeout(now);
    }
    fn poll_train(&mut self, now: Time, segment: &mut Segment) -> Train {
        self.poll_train(now, segment)
    }
    fn is_idle(&self) -> bool {
        self.is_idle()
    }
    fn poll_timeout(&self) -> Time {
        self.poll_timeout()
    }
    fn bytes_received(&self) -> u64 {
        self.bytes_received()
    }
    fn bytes_unsent(&self) -> u64 {
        self.bytes_unsent()
    }
    fn was_established(&self) -> bool {
        self.was_established()
    }
    fn is_closed(&self) -> bool {
        self.is_closed()
    }
    fn stats(&self) -> &Stats {
        self.stats()
    }
    fn sample(&self) -> SenderSample {
        SenderSample {
            cwnd_packets: u32::try_from(self.window_packets()).unwrap_or(u32::MAX),
            ssthresh_packets: None,
            srtt: self.srtt(),
            in_flight_bytes: self.in_flight_bytes(),
            udt: Some(UdtSample { sending_rate: self.sending_rate(), lost_packets: self.lost_packets() }),
        }
    }
}

/// Makes the ends of flows over UDT in the run with this seed.
pub struct UdtMaker {
    /// Of the run.
    pub seed: u64,
}

impl TransportMaker for UdtMaker {
    type Transport = Endpoint;

    fn make(&mut self, flow: &FlowSpec, now: Time) -> Result<[Endpoint; 2], RunError> {
        let udt = flow.transport.udt.expect("it is asked for flows over UDT alone");
        let config = udt_config(&flow.transport, udt, link::random::stream_seed(self.seed, &stream(&flow.name)));
        Ok([Endpoint::new_client(config.clone(), now), Endpoint::new_server(config, now)])
    }
}

fn stream(flow: &str) -> String {
    format!("udt/{flow}")
}

fn udt_config(transport: &TransportSpec, udt: UdtSpec, seed: u64) -> Config {
    // UDT_MSS counts an IPv4 header, whatever the address family (libudt 4.11, core.cpp, CUDT::open).
    let mtu = transport.mtu_bytes - if transport.ipv6 { IPV6_EXTRA_BYTES } else { 0 };
    let window = transport.window_bytes / (u64::from(mtu) - DATAGRAM_HEADERS);
    Config {
        version: match udt.version {
            UdtVersionSpec::Udt2003 => Version::Udt2003,
            UdtVersionSpec::Udt4 => Version::Udt4,
        },
        mtu,
        window_packets: u32::try_from(window.max(LEAST_WINDOW)).unwrap_or(u32::MAX),
        send_buffer: transport.send_buffer_bytes.map(Size),
        seed,
    }
}
