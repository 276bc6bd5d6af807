//! Series: what flows and links look like at every interval, as columns that Python takes over without a copy.

use link::{Link, Packet};
use units::Time;

/// Columns of the flow series; row i of every column belongs to one sample of one flow.
#[derive(Default)]
pub struct FlowSeries {
    /// s since the start of the run
    pub time_s: Vec<f64>,
    /// index of the flow
    pub flow: Vec<i32>,
    /// segments
    pub cwnd_packets: Vec<u32>,
    /// segments; 2^31 - 1 = infinite
    pub ssthresh_packets: Vec<u32>,
    /// s; 0 before the first sample
    pub srtt_s: Vec<f64>,
    /// payload bytes sent and not acknowledged
    pub in_flight_bytes: Vec<u64>,
    /// payload bit/s delivered in order since the sample before
    pub goodput_bps: Vec<f64>,
    /// segments sent again since the start
    pub retransmitted_segments: Vec<u64>,
    /// duplicate ACKs at the sender since the start; empty where a ground does not know them
    pub duplicate_acks: Vec<u64>,
    /// age of the oldest message not delivered, s; 0 for bulk
    pub lag_s: Vec<f64>,
    /// bytes issued and not delivered; 0 for bulk
    pub lag_bytes: Vec<u64>,
    /// The other direction, where any flow of the run has data both ways: as many rows, 0 for flows that have not.
    pub reverse: ReverseSeries,
}

/// Columns of what the other end of a connection sends.
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

impl ReverseSeries {
    /// Adds a row for a connection: its other end, the bits per second that arrived of it, the segments that it has sent again so far;
    /// None: it sends nothing.
    pub fn sample(&mut self, sender: Option<(&tcp::Endpoint, f64, u64)>) {
        self.cwnd_packets.push(sender.map_or(0, |(end, ..)| end.controller().sock().snd_cwnd));
        self.in_flight_bytes.push(sender.map_or(0, |(end, ..)| end.in_flight_bytes()));
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
