//! The rules for a sending end. Their bounds were chosen on flows of a known limit (docs/results/diagnosis.md).

use crate::counters::Counters;
use crate::verdict::{Confidence, Limit};
use Confidence::{Clear, Likely};

/// A sender that rests for this part of the time is not held back by the network.
const RESTS: f64 = 0.1;

/// The kernel's own attribution counts from this part of the time on. BBR paces, and so seldom reaches a limit.
const ATTRIBUTED: f64 = 0.15;

/// A buffer without room counts from this part of the time on, where the kernel says it itself.
const BUFFER_ATTRIBUTED: f64 = 0.1;

/// Share of samples with a buffer without room: a writer that waits is woken at two thirds (sk_stream_is_writeable in
/// Linux's include/net/sock.h) and fills it at once, so that it is never below; one who writes little is there seldom.
const WAITS: f64 = 0.9;

/// Goodput of a flow at its pacing rate; the rest is headers, and moments at which it waits for something else.
const PACED: f64 = 0.85;

/// Share of samples from which on a window that became smaller says that data waits to be read, and its 10th percentile
/// as a part of its 90th: a reader that is late now and then takes less off.
const SHRINKS: f64 = 0.05;
const STEADY: f64 = 0.97;

/// Share of samples with a closed window from which on nobody reads.
const CLOSED: f64 = 0.08;

/// A flow is young for so many round trips.
const YOUNG_RTTS: f64 = 40.0;

/// A queue that the window fills: the round-trip time grows with it, from half of the samples on by so much.
const FOLLOWS: f64 = 0.45;
const FOLLOWING: f64 = 0.1;

/// One that others fill too: a delay that stands, as a part of the least round-trip time, in us, and in segments at the
/// flow's rate; fewer are its own burst, and less is the hosts'. A long delay may be the smaller part.
const STANDING: f64 = 0.35;
const STANDING_US: f64 = 1400.0;
const STANDING_SEGMENTS: f64 = 4.0;
const LONG_STANDING: f64 = 0.12;
const LONG_STANDING_US: f64 = 4000.0;
const LONG_STANDING_SEGMENTS: f64 = 8.0;

/// Losses in an episode from which on they are no independent ones, with a window that is so much larger than as many
/// independent ones would leave.
const BURST: f64 = 2.0;
const LARGE_WINDOW: f64 = 1.35;

/// Variation of the goodput from loss to loss: of a token bucket, and of a sawtooth that is cut at random.
const CONSTANT_RATE: f64 = 0.12;
const RANDOM_RATE: f64 = 0.5;

/// Delay at the losses of a BBR that fills a queue, as a part of the least round-trip time, and us.
const LOSSES_QUEUED: f64 = 0.15;
const LOSSES_QUEUED_US: f64 = 700.0;

/// Delay of a BBR that probes for the bottleneck's rate, in a tenth of the samples.
const PROBED: f64 = 0.15;

pub(crate) type Answer = (Limit, Confidence, String);

/// Returns the limit of a sender, or why there is none to name.
pub(crate) fn limit_of(counters: &Counters, congestion_control: &str) -> Result<Answer, String> {
    let c = counters;
    let (Some(busy), Some(rwnd), Some(sndbuf)) = (c.busy, c.rwnd_limited, c.sndbuf_limited) else {
        return Err("this kernel does not count what a sender waits for (Linux 4.10 or later)".into());
    };
    if c.acked_bytes == 0 && c.window_closed > 0.5 {
        return Ok((Limit::ReceivingApplication, Clear, "the peer's window is closed, and nothing moves".into()));
    }
    if c.acked_bytes == 0 && (c.timeouts > 0 || c.retransmissions_before > 0) {
        // Packets without data made the connection: those with data may be too large for the path (RFC 2923, 2.1).
        let noun = if c.timeouts == 1 { "time-out" } else { "time-outs" };
        let timeouts = format!("{} retransmission {noun} meanwhile", c.timeouts);
        let causes = "an outage, or an MTU black hole, which elephan measure mtu tells";
        return Err(format!("nothing is acknowledged: {timeouts}; {causes}"));
    }
    if let Some(answer) = paced(c) {
        return Ok(answer);
    }
    if is_young(c) {
        let [from, to] = c.cwnd_packets;
        let because = format!("it began {} ago: window {from} to {to} segments, no loss yet", seconds(c.seconds));
        return Ok((Limit::StartUp, Clear, because));
    }
    if let Some(answer) = receiver(c, rwnd) {
        return Ok(answer);
    }
    if 1.0 - busy >= RESTS {
        let sure = if 1.0 - busy >= 2.0 * RESTS { Clear } else { Likely };
        return Ok((Limit::Application, sure, format!("nothing to send for {} of the time", percent(1.0 - busy))));
    }
    if let Some(answer) = buffer(c, sndbuf) {
        return Ok(answer);
    }
    if c.nothing_unsent >= 0.5 {
        let sure = if c.nothing_unsent >= 0.7 { Clear } else { Likely };
        let share = percent(c.nothing_unsent);
        return Ok((Limit::Application, sure, format!("all that was written was sent already, in {share} of samples")));
    }
    network(c, congestion_control)
}

fn paced(c: &Counters) -> Option<Answer> {
    let most = c.max_pacing_rate_bps? as f64;
    (c.goodput_bps >= PACED * most)
        .then(|| (Limit::Pacing, Clear, format!("SO_MAX_PACING_RATE is {} Mbit/s", mega(most))))
}

fn is_young(c: &Counters) -> bool {
    let grew = |[from, to]: [u64; 2]| to >= 2 * from;
    c.from_its_start
        && c.retransmissions + c.retransmissions_before == 0
        && grew(c.cwnd_packets)
        && c.seconds * 1e6 <= YOUNG_RTTS * c.min_rtt_us
}

/// The peer's window: too small for the path, or full of what nobody reads.
fn receiver(c: &Counters, rwnd: f64) -> Option<Answer> {
    let [low, usual, high] = c.window_bytes;
    let closes = c.window_closed >= CLOSED;
    if rwnd < ATTRIBUTED && !closes {
        return None;
    }
    let limited = format!("waits for the peer's window for {} of the time", percent(rwnd));
    if closes {
        let because = format!("{limited}; closed in {} of samples", percent(c.window_closed));
        return Some((Limit::ReceivingApplication, Clear, because));
    }
    if c.window_shrinks >= SHRINKS && low < STEADY * high {
        let sure = if c.window_shrinks >= 2.0 * SHRINKS { Clear } else { Likely };
        let because = format!("{limited}, of {low} to {high} bytes: it shrinks, since data waits to be read");
        return Some((Limit::ReceivingApplication, sure, because));
    }
    let sure = if c.window_shrinks < SHRINKS / 2.0 { Clear } else { Likely };
    let because = format!("{limited}, which stays at {usual} bytes; {} of it in flight", percent(c.window_used));
    Some((Limit::ReceiveWindow, sure, because))
}

fn buffer(c: &Counters, sndbuf: f64) -> Option<Answer> {
    let full = format!("send buffer of {} bytes full in {} of samples", c.send_buffer_bytes, percent(c.buffer_full));
    if sndbuf >= BUFFER_ATTRIBUTED {
        let because = format!("{full}; the kernel counts {} of the time", percent(sndbuf));
        return Some((Limit::SendBuffer, Clear, because));
    }
    if c.nothing_unsent >= 0.5 && c.buffer_full >= WAITS {
        let sure = if c.nothing_unsent >= 0.7 { Clear } else { Likely };
        return Some((Limit::SendBuffer, sure, format!("{full}, all of it in flight")));
    }
    None
}

/// The congestion window or BBR's model: what the path made of them.
fn network(c: &Counters, congestion_control: &str) -> Result<Answer, String> {
    let [usual, _] = c.inflation();
    let delay_us = usual * c.min_rtt_us;
    let segments = delay_us * c.goodput_bps / 8e6 / c.mss_bytes.max(1) as f64;
    let delay = format!("round trips of {} ms, least {} ms", milli(c.srtt_us[1]), milli(c.min_rtt_us));
    if c.marked > 0.0 {
        return Ok((Limit::Queue, Clear, format!("{} of segments marked by ECN; {delay}", percent(c.marked))));
    }
    let again = format!("{} sent again", percent_fine(c.retransmitted));
    let paces = congestion_control.starts_with("bbr") || c.bbr_bandwidth_bps.is_some();
    let fills = c.rtt_follows_cwnd >= FOLLOWS && usual >= FOLLOWING;
    let stands = usual >= STANDING && delay_us >= STANDING_US && segments >= STANDING_SEGMENTS
        || usual >= LONG_STANDING && delay_us >= LONG_STANDING_US && segments >= LONG_STANDING_SEGMENTS;
    if fills || stands {
        let sure = if fills && usual >= 2.0 * FOLLOWING || usual >= 2.0 * STANDING { Clear } else { Likely };
        return Ok((Limit::Queue, sure, format!("{delay}; {again}")));
    }
    let steady = c.rate_variation.is_some_and(|variation| variation <= CONSTANT_RATE);
    let bursts =
        format!("{again}, {} losses at a time, and no queue: {delay}", (c.losses_per_episode * 10.0).round() / 10.0);
    if paces {
        return Ok(bbr(c, bursts, delay));
    }
    if c.loss_episodes == 0 && c.retransmissions_before == 0 {
        let [from, to] = c.cwnd_packets;
        let because =
            format!("no loss, no queue: its window still grows, {from} to {to} segments in {}", seconds(c.seconds));
        return Ok((Limit::StartUp, Likely, because));
    }
    if c.loss_episodes == 0 {
        let because =
            format!("no loss in {}, but {} retransmissions before", seconds(c.seconds), c.retransmissions_before);
        return Ok((Limit::Loss, Likely, format!("{because}: the window recovers; no queue: {delay}")));
    }
    let larger = c.window_for_losses.unwrap_or(0.0);
    let varies = c.rate_variation.unwrap_or(0.0);
    if c.losses_per_episode >= BURST && larger >= LARGE_WINDOW && varies < RANDOM_RATE {
        let sure = if steady { Clear } else { Likely };
        return Ok((Limit::Policer, sure, bursts));
    }
    let sure = if c.losses_per_episode < 1.5 && c.loss_episodes >= 4 { Clear } else { Likely };
    Ok((
        Limit::Loss,
        sure,
        format!("{again}, {} times in {}, and no queue: {delay}", c.loss_episodes, seconds(c.seconds)),
    ))
}

/// BBR does not slow down for losses: it is at the rate of the bottleneck, or of a policer.
fn bbr(c: &Counters, bursts: String, delay: String) -> Answer {
    // After two intervals of much loss at one rate it paces at that rate, without probes (lt_use_bw,
    // net/ipv4/tcp_bbr.c).
    let long_term = c.probing < 0.03 && c.retransmissions_before > 0;
    let at_losses_us = c.loss_srtt_us.map_or(0.0, |us| us - c.min_rtt_us);
    let is_queued = at_losses_us >= LOSSES_QUEUED_US && at_losses_us >= LOSSES_QUEUED * c.min_rtt_us;
    if !is_queued && (c.losses_per_episode >= BURST || long_term) {
        let sure = if c.losses_per_episode >= BURST { Clear } else { Likely };
        return (Limit::Policer, sure, bursts);
    }
    let sure = if c.inflation()[1] >= PROBED { Clear } else { Likely };
    (Limit::Queue, sure, format!("BBR at the rate of its bottleneck; {delay}"))
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 100.0).round())
}

fn percent_fine(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}

fn milli(us: f64) -> f64 {
    (us / 10.0).round() / 100.0
}

fn mega(bps: f64) -> f64 {
    (bps / 1e4).round() / 100.0
}

fn seconds(s: f64) -> String {
    format!("{} s", (s * 100.0).round() / 100.0)
}
