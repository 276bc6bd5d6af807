//! Sums over the samples of a sender: the numbers that its diagnosis rests on.

use crate::sample::{Flow, Sample};
use serde::Serialize;

/// A window of less than two segments is closed: nothing is sent into it but probes (RFC 9293, 3.8.6.2).
const CLOSED_SEGMENTS: u64 = 2;

/// A writer waits while more than two thirds of its buffer are in use (sk_stream_is_writeable, include/net/sock.h).
const FULL_BUFFER: f64 = 2.0 / 3.0;

/// Initial congestion window, segments (RFC 6928).
const FIRST_WINDOW: u64 = 10;

/// Losses within so many round trips are of one episode: recovery takes one, and what is lost of it another.
const EPISODE_RTTS: f64 = 1.5;

/// The same in a path shorter than the interval of the samples, us.
const EPISODE_LEAST_US: u64 = 45_000;

/// Of a sending end, over the time that it was watched. A share is one of that time, or of the samples.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Counters {
    /// From the first sample to the last, s.
    pub seconds: f64,
    /// Their number.
    pub samples: usize,
    /// The connection began while it was watched.
    pub from_its_start: bool,
    /// Payload acknowledged meanwhile, bytes.
    pub acked_bytes: u64,
    /// And per second, bit/s.
    pub goodput_bps: f64,
    /// Share of the time with data to send or in flight.
    pub busy: Option<f64>,
    /// ... in which the peer's window kept data back.
    pub rwnd_limited: Option<f64>,
    /// ... in which a full send buffer had nothing unsent.
    pub sndbuf_limited: Option<f64>,
    /// Share of the samples in which no full segment waited to be sent.
    pub nothing_unsent: f64,
    /// ... in which the writer had to wait for room in the send buffer.
    pub buffer_full: f64,
    /// ... in which the congestion window was full.
    pub cwnd_full: f64,
    /// ... in which the peer's window was closed.
    pub window_closed: f64,
    /// Median of data in flight as a share of the peer's window.
    pub window_used: f64,
    /// The peer's window, bytes: percentiles 10, 50 and 90.
    pub window_bytes: [f64; 3],
    /// Share of the samples in which it is less than in the one before: data arrived and was not read.
    pub window_shrinks: f64,
    /// Data in flight, median, bytes.
    pub in_flight_bytes: f64,
    /// Least round-trip time, us.
    pub min_rtt_us: f64,
    /// Smoothed round-trip time, us: percentiles 10, 50 and 90.
    pub srtt_us: [f64; 3],
    /// Growth of the round-trip time with the congestion window, as a part of both: near 1 where all that the
    /// window grows
    /// by waits in a queue, and 0 where nothing does. By least squares.
    pub rtt_follows_cwnd: f64,
    /// Congestion window in the first sample and in the last, segments.
    pub cwnd_packets: [u64; 2],
    /// It has never been reduced: slow start, or congestion avoidance after HyStart.
    pub in_slow_start: bool,
    /// Payload sent again, of that sent.
    pub retransmitted: f64,
    /// Segments sent again while it was watched.
    pub retransmissions: u64,
    /// And since the connection began.
    pub retransmissions_before: u64,
    /// Time-outs while it was watched.
    pub timeouts: u64,
    /// Times that losses came together.
    pub loss_episodes: usize,
    /// Losses in each, mean, segments.
    pub losses_per_episode: f64,
    /// Smoothed round-trip time of the samples that found losses, median, us; None without any.
    pub loss_srtt_us: Option<f64>,
    /// Standard deviation of the goodput between them, of its mean; None: of less than three.
    pub rate_variation: Option<f64>,
    /// Mean congestion window as a multiple of the one that as many losses, independent of each other, would leave:
    /// near 1 where they are independent, and higher where they come in bursts. None without losses.
    pub window_for_losses: Option<f64>,
    /// Segments that arrived with a mark of congestion, of all.
    pub marked: f64,
    /// `SO_MAX_PACING_RATE`, bit/s.
    pub max_pacing_rate_bps: Option<u64>,
    /// Share of the samples in which the pacing rate was a tenth above its median: a BBR that probes.
    pub probing: f64,
    /// Bandwidth that BBR takes for the bottleneck's, median, bit/s.
    pub bbr_bandwidth_bps: Option<f64>,
    /// `SO_SNDBUF` of the last sample, bytes.
    pub send_buffer_bytes: u64,
    /// Payload of a segment, bytes.
    pub mss_bytes: u64,
}

impl Counters {
    /// Those of the samples from which data moved to those where it stopped; None of less than three.
    pub fn of(flow: &Flow) -> Option<Counters> {
        let samples = active(&flow.samples);
        let ([first, .., last], true) = (samples, samples.len() >= 3) else { return None };
        let elapsed_us = (last.at_us - first.at_us).max(1) as f64;
        let grown = |of: fn(&Sample) -> u64| of(last).saturating_sub(of(first));
        let time_share =
            |of: fn(&Sample) -> Option<u64>| Some((of(last)?.saturating_sub(of(first)?) as f64 / elapsed_us).min(1.0));
        let share = |of: &dyn Fn(&Sample) -> bool| {
            samples.iter().filter(|sample| of(sample)).count() as f64 / samples.len() as f64
        };
        let values = |of: &dyn Fn(&Sample) -> Option<f64>| samples.iter().filter_map(of).collect::<Vec<_>>();
        let windows = values(&|s| s.snd_wnd_bytes.map(|bytes| bytes as f64));
        let rtts = values(&|s| s.srtt_us.map(|us| us as f64));
        let pacing = values(&|s| s.pacing_rate_bps.map(|bps| bps as f64));
        let usual_pacing = percentile(&pacing, 0.5);
        let episodes = Episodes::of(samples);
        let acked_bytes = grown(|s| s.bytes_acked);
        let delivered = grown(|s| s.delivered.unwrap_or(0));
        let sent = grown(|s| s.bytes_sent.unwrap_or(0));
        Some(Counters {
            seconds: elapsed_us / 1e6,
            samples: samples.len(),
            from_its_start: first.bytes_acked <= FIRST_WINDOW * first.mss_bytes,
            acked_bytes,
            goodput_bps: acked_bytes as f64 * 8e6 / elapsed_us,
            busy: time_share(|s| s.busy_us),
            rwnd_limited: time_share(|s| s.rwnd_limited_us),
            sndbuf_limited: time_share(|s| s.sndbuf_limited_us),
            // A smaller one may wait for the ACK of another (Nagle, RFC 1122, 4.2.3.4).
            nothing_unsent: share(&|s| s.notsent_bytes < s.mss_bytes.max(1)),
            buffer_full: share(&|s| s.send_memory_bytes as f64 >= FULL_BUFFER * s.send_buffer_bytes as f64),
            cwnd_full: share(&|s| in_flight(s) + 1 >= s.cwnd_packets),
            window_closed: share(&|s| {
                s.probes > 0 || s.snd_wnd_bytes.is_some_and(|w| w < CLOSED_SEGMENTS * s.mss_bytes)
            }),
            window_used: percentile(
                &values(&|s| Some((s.unacked * s.mss_bytes) as f64 / s.snd_wnd_bytes?.max(1) as f64)),
                0.5,
            ),
            window_bytes: percentiles(&windows),
            window_shrinks: windows.windows(2).filter(|pair| pair[1] < pair[0]).count() as f64 / samples.len() as f64,
            in_flight_bytes: percentile(&values(&|s| Some((in_flight(s) * s.mss_bytes) as f64)), 0.5),
            min_rtt_us: least_rtt_us(samples),
            srtt_us: percentiles(&rtts),
            rtt_follows_cwnd: elasticity(samples),
            cwnd_packets: [first.cwnd_packets, last.cwnd_packets],
            in_slow_start: last.ssthresh_packets.is_none(),
            retransmitted: grown(|s| s.bytes_retrans.unwrap_or(0)) as f64 / sent.max(1) as f64,
            retransmissions: grown(|s| s.total_retrans),
            retransmissions_before: first.total_retrans,
            timeouts: grown(|s| s.timeouts.unwrap_or(0)),
            loss_episodes: episodes.sizes.len(),
            losses_per_episode: mean(&episodes.sizes).unwrap_or(0.0),
            loss_srtt_us: loss_srtt_us(samples),
            rate_variation: episodes.rate_variation,
            window_for_losses: window_for_losses(samples, sent, grown(|s| s.total_retrans)),
            marked: grown(|s| s.delivered_ce.unwrap_or(0)) as f64 / delivered.max(1) as f64,
            max_pacing_rate_bps: last.max_pacing_rate_bps,
            probing: share(&|s| s.pacing_rate_bps.is_some_and(|bps| bps as f64 > 1.1 * usual_pacing)),
            bbr_bandwidth_bps: Some(values(&|s| s.bbr_bandwidth_bps.map(|bps| bps as f64)))
                .filter(|seen| !seen.is_empty())
                .map(|seen| percentile(&seen, 0.5)),
            send_buffer_bytes: last.send_buffer_bytes,
            mss_bytes: last.mss_bytes,
        })
    }

    /// Median queueing delay as a part of the least round-trip time, and that of the 90th percentile.
    pub fn inflation(&self) -> [f64; 2] {
        [self.srtt_us[1], self.srtt_us[2]].map(|us| us / self.min_rtt_us.max(1.0) - 1.0)
    }
}

/// Least round-trip time. From a time stamp that was echoed for a retransmission it has whole milliseconds,
/// rounded down
/// (tcp_rtt_tsopt_us, net/ipv4/tcp_input.c): the least smoothed one is nearer then, if it is within a millisecond.
fn least_rtt_us(samples: &[Sample]) -> f64 {
    let least = |of: fn(&Sample) -> Option<u64>| samples.iter().filter_map(of).min();
    match (least(|s| s.min_rtt_us), least(|s| s.srtt_us)) {
        (Some(known), Some(smoothed)) if known % 1000 == 0 => smoothed.clamp(known, known + 1000) as f64,
        (known, smoothed) => known.or(smoothed).unwrap_or(0) as f64,
    }
}

/// Segments in the network, as the sender sees it (tcp_packets_in_flight, include/net/tcp.h).
fn in_flight(sample: &Sample) -> u64 {
    (sample.unacked + sample.retrans).saturating_sub(sample.sacked + sample.lost)
}

/// The samples without those before the first data and after the last.
fn active(samples: &[Sample]) -> &[Sample] {
    let moved = |pair: &[Sample]| pair[0].bytes_acked != pair[1].bytes_acked || pair[1].unacknowledged_bytes > 0;
    let Some(begin) = samples.windows(2).position(moved) else { return &[] };
    let end = samples.windows(2).rposition(moved).unwrap_or(begin) + 2;
    // A pause of the application is part of what it does; only a connection that just began, or is done, is cut.
    let begin = if samples[begin].bytes_acked <= 1 { begin } else { 0 };
    let is_done = samples.last().is_some_and(|s| s.unacknowledged_bytes == 0 && s.last_data_sent_ms > 1000);
    &samples[begin..if is_done { end } else { samples.len() }]
}

/// Losses that came together.
struct Episodes {
    sizes: Vec<f64>,
    rate_variation: Option<f64>,
}

impl Episodes {
    fn of(samples: &[Sample]) -> Episodes {
        // Of each the sample before it, its end and its losses.
        let mut found: Vec<(Sample, u64, u64)> = vec![];
        for pair in samples.windows(2) {
            let lost = pair[1].total_retrans.saturating_sub(pair[0].total_retrans);
            if lost == 0 {
                continue;
            }
            let gap_us = (EPISODE_RTTS * pair[1].srtt_us.unwrap_or(0) as f64) as u64;
            match found.last_mut() {
                Some((_, end_us, size)) if pair[1].at_us - *end_us <= gap_us.max(EPISODE_LEAST_US) => {
                    (*end_us, *size) = (pair[1].at_us, *size + lost);
                }
                _ => found.push((pair[0], pair[1].at_us, lost)),
            }
        }
        // From the beginning of one to that of the next as much goes through a policer as its rate lets through,
        // whatever the window does meanwhile (Flach et al., SIGCOMM 2016).
        let rates: Vec<(f64, f64)> = found
            .windows(2)
            .map(|two| {
                let seconds = (two[1].0.at_us - two[0].0.at_us) as f64 / 1e6;
                let delivered = two[1].0.delivered.unwrap_or(0).saturating_sub(two[0].0.delivered.unwrap_or(0));
                (delivered as f64 / seconds.max(1e-6), seconds)
            })
            .collect();
        let weight: f64 = rates.iter().map(|(_, seconds)| seconds).sum();
        let usual = rates.iter().map(|(rate, seconds)| rate * seconds).sum::<f64>() / weight.max(1e-9);
        let variance =
            rates.iter().map(|(rate, s)| (rate - usual) * (rate - usual) * s).sum::<f64>() / weight.max(1e-9);
        let rate_variation = (rates.len() >= 2 && usual > 0.0).then(|| variance.sqrt() / usual);
        Episodes { sizes: found.iter().map(|(_, _, size)| *size as f64).collect(), rate_variation }
    }
}

fn loss_srtt_us(samples: &[Sample]) -> Option<f64> {
    let lost = samples.windows(2).filter(|pair| pair[1].total_retrans > pair[0].total_retrans);
    let rtts: Vec<_> = lost.filter_map(|pair| Some(pair[1].srtt_us? as f64)).collect();
    (!rtts.is_empty()).then(|| percentile(&rtts, 0.5))
}

/// Reno's mean window is 1.22 / sqrt(p) segments (Mathis et al. 1997); CUBIC's is that, or where it is more, 1.054
/// (RTT / p)^0.75 (RFC 9438, 5.1, with its C = 0.4 and beta = 0.7).
fn window_for_losses(samples: &[Sample], sent_bytes: u64, lost: u64) -> Option<f64> {
    let last = samples.last()?;
    let windows: Vec<_> = samples.iter().map(|s| s.cwnd_packets as f64).collect();
    let rtts: Vec<_> = samples.iter().filter_map(|s| Some(s.srtt_us? as f64 / 1e6)).collect();
    let loss = lost as f64 * last.mss_bytes as f64 / sent_bytes.max(1) as f64;
    if lost == 0 || sent_bytes == 0 {
        return None;
    }
    let per_loss = percentile(&rtts, 0.5) / loss;
    let cubic = 1.054 * per_loss.sqrt() * per_loss.sqrt().sqrt();
    Some(mean(&windows)? / (1.22 / loss.sqrt()).max(cubic))
}

/// Of the smoothed round-trip time by the congestion window; 0 where that stands still.
fn elasticity(samples: &[Sample]) -> f64 {
    let pairs: Vec<_> = samples.iter().filter_map(|s| Some((s.cwnd_packets as f64, s.srtt_us? as f64))).collect();
    let count = pairs.len().max(1) as f64;
    let (x, y) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0 / count, sum.1 + pair.1 / count));
    let (xx, xy) = pairs.iter().fold((0.0, 0.0), |sum, (a, b)| (sum.0 + (a - x) * (a - x), sum.1 + (a - x) * (b - y)));
    if xx > 0.0 && y > 0.0 {
        xy / xx * x / y
    } else {
        0.0
    }
}

/// None of none.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The value below which `part` of them lie; 0 of none.
pub(crate) fn percentile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (part * sorted.len() as f64) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

fn percentiles(values: &[f64]) -> [f64; 3] {
    [0.1, 0.5, 0.9].map(|part| percentile(values, part))
}
