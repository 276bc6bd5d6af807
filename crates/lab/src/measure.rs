//! Series: what flows and links look like at every interval, as columns that Python takes over without a copy.

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
    /// age of the oldest message not delivered, s; 0 for bulk
    pub lag_s: Vec<f64>,
    /// bytes issued and not delivered; 0 for bulk
    pub lag_bytes: Vec<u64>,
}

/// Columns of the link series.
#[derive(Default)]
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
