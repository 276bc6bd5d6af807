//! Series: what flows and links look like at every interval, as columns that Python takes over without a copy.

use congestion::INFINITE_SSTHRESH;
use link::{Link, Packet};
use units::{Span, Time};

/// Columns of the flow series; row i of every column belongs to one sample of one flow.
#[derive(Default)]
pub struct FlowSeries {
    /// s since the start of the run
    pub time_s: Vec<f64>,
    /// index of the flow
    pub flow: Vec<i32>,
    /// segments
    pub cwnd_packets: Vec<u32>,
    /// segments; None: there is no threshold yet
    pub ssthresh_packets: Vec<Option<u32>>,
    /// s; NaN before the first sample
    pub srtt_s: Vec<f64>,
    /// payload bytes sent and not acknowledged
    pub in_flight_bytes: Vec<u64>,
    /// payload bit/s delivered in order since the sample before
    pub goodput_bps: Vec<f64>,
    /// segments sent again since the start
    pub retransmitted_segments: Vec<u64>,
    /// duplicate ACKs at the sender since the start; empty where a backend does not know them
    pub duplicate_acks: Vec<u64>,
    /// age of the oldest message not delivered, s; 0 for bulk
    pub lag_s: Vec<f64>,
    /// bytes issued and not delivered; 0 for bulk
    pub lag_bytes: Vec<u64>,
    /// The other direction, if any flow of the run has data both ways: as many rows, 0 for flows without such data.
    pub reverse: ReverseSeries,
}

/// Columns of the data that the other end of a connection sends.
#[derive(Default)]
pub struct ReverseSeries {
    /// segments
    pub cwnd_packets: Vec<u32>,
    /// payload bytes sent and not acknowledged
    pub in_flight_bytes: Vec<u64>,
    /// payload bit/s delivered in order since the sample before
    pub goodput_bps: Vec<f64>,
    /// segments sent again since the start
    pub retransmitted_segments: Vec<u64>,
}

/// The values of a flow at one time in the series.
pub struct FlowRow {
    /// Since the start of the run.
    pub time: Time,
    /// Index of the flow.
    pub flow: usize,
    /// Segments.
    pub cwnd_packets: u32,
    /// Segments; None: there is no threshold yet.
    pub ssthresh_packets: Option<u32>,
    /// None before the first sample.
    pub srtt: Option<Span>,
    /// Payload sent and not acknowledged, bytes.
    pub in_flight_bytes: u64,
    /// Payload bit/s delivered in order since the sample before.
    pub goodput_bps: f64,
    /// Segments sent again since the start.
    pub retransmitted_segments: u64,
    /// Duplicate ACKs at the sender since the start; None where the backend does not know them.
    pub duplicate_acks: Option<u64>,
    /// Age of the oldest message not delivered; zero for bulk.
    pub lag: Span,
    /// Bytes issued and not delivered; 0 for bulk.
    pub lag_bytes: u64,
}

impl FlowSeries {
    /// Adds a row.
    pub fn push(&mut self, row: FlowRow) {
        self.time_s.push(row.time.as_secs_f64());
        self.flow.push(row.flow as i32);
        self.cwnd_packets.push(row.cwnd_packets);
        self.ssthresh_packets.push(row.ssthresh_packets);
        self.srtt_s.push(row.srtt.map_or(f64::NAN, Span::as_secs_f64));
        self.in_flight_bytes.push(row.in_flight_bytes);
        self.goodput_bps.push(row.goodput_bps);
        self.retransmitted_segments.push(row.retransmitted_segments);
        self.duplicate_acks.extend(row.duplicate_acks);
        self.lag_s.push(row.lag.as_secs_f64());
        self.lag_bytes.push(row.lag_bytes);
    }
}

/// A slow-start threshold out of a sender's state, in segments; None: there is none yet.
pub fn ssthresh(packets: u32) -> Option<u32> {
    (packets != INFINITE_SSTHRESH).then_some(packets)
}

/// The values of a sender in the series.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderSample {
    /// Segments; for a transport without a window its limit of data in flight.
    pub cwnd_packets: u32,
    /// Segments; None: there is no threshold.
    pub ssthresh_packets: Option<u32>,
    /// None before the first sample.
    pub srtt: Option<Span>,
    /// Payload sent and not acknowledged, bytes.
    pub in_flight_bytes: u64,
}

impl ReverseSeries {
    /// Adds a row for a connection: its other end, the bits per second that arrived of it, the segments that it has
    /// sent again so far; None: it sends nothing.
    pub fn sample(&mut self, sender: Option<(SenderSample, f64, u64)>) {
        self.cwnd_packets.push(sender.map_or(0, |(sample, ..)| sample.cwnd_packets));
        self.in_flight_bytes.push(sender.map_or(0, |(sample, ..)| sample.in_flight_bytes));
        self.goodput_bps.push(sender.map_or(0.0, |(_, bits, _)| bits));
        self.retransmitted_segments.push(sender.map_or(0, |(.., again)| again));
    }
}

/// Columns of the link series.
#[derive(Clone, Default)]
pub struct LinkSeries {
    /// s since the start of the run
    pub time_s: Vec<f64>,
    /// index of the link
    pub link: Vec<i32>,
    /// packets waiting
    pub queue_packets: Vec<u64>,
    /// bytes waiting
    pub queue_bytes: Vec<u64>,
    /// packets dropped since the start, all reasons
    pub dropped_packets: Vec<u64>,
    /// bytes delivered since the start
    pub delivered_bytes: Vec<u64>,
}

impl LinkSeries {
    /// Adds a row for each of `links` as it is at `now`, which is `time_s` since the start of the run.
    pub fn sample<P: Packet>(&mut self, time_s: f64, now: Time, links: &mut [Link<P>]) {
        for (index, link) in links.iter_mut().enumerate() {
            self.time_s.push(time_s);
            self.link.push(index as i32);
            let (packets, bytes) = link.queue(now);
            self.queue_packets.push(packets);
            self.queue_bytes.push(bytes);
            self.dropped_packets.push(link.stats().dropped());
            self.delivered_bytes.push(link.stats().delivered_bytes);
        }
    }
}
