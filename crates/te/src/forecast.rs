//! What a move will cost and gain, from what the network shows before it: rates, delays of both ways, queues.
//!
//! The overlap. Over the shorter way packets arrive earlier by D, the difference of the one-way delays (queues included). So for a
//! time D both ways deliver at the flow's rate r, and the r D bytes that come over the lightpath in that time are overtaking those
//! that are still on the IP way. More than three overtaken packets make the sender resend and cut its window (RFC 5681, 3.2).
//!
//! What limits the flow (scenarios A to D of Moura, Pras, Fioreze and de Boer 2013) decides what that costs:
//!
//! - **A**, a window: the lines have room for what is sent again.
//! - **B**, the sender's line, and **C**, the core: what is sent again for nothing, r D, takes the place of new data.
//! - **D**, the receiver's line: it is full before the move and gets r more for the time D. What its queue cannot take is lost.
//!
//! After a cut to the part w of the window W, queues included, the flow has w W / RTT(after), without queues, at most r, and comes back along CUBIC's curve, W (1 - (1 - w)(1 -
//! t / K)^3), K = ((1 - w) W / C)^(1/3) (RFC 9438, 4.2), to r: the area between is what it lacks.
//!
//! It knows nothing of the flow's congestion control or of the application: a forecast is an order of magnitude, and the ledger says how far off
//! it was.

use crate::mitigation::{left, Left, Mitigation};
use crate::policy::Policy;
use crate::view::Ways;
use units::{Rate, Size, Span};

/// What limits a flow's rate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Limit {
    /// Scenario A: a window, or the application; no line is full.
    Window,
    /// Scenario B: the sender's line.
    Sender,
    /// Scenario C: the IP way's core.
    Core,
    /// Scenario D: the receiver's line, behind the merging router.
    Receiver,
}

/// What a move is thought to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forecast {
    /// What limits the flow now.
    pub limit: Limit,
    /// Its rate when all has settled.
    pub rate_after: Rate,
    /// Time for which both ways deliver: with a mitigation what it leaves of that.
    pub overlap: Span,
    /// Time for which nothing arrives, because a mitigation took the difference of the ways for larger than it is.
    pub pause: Span,
    /// Packets that are overtaken.
    pub overtaken_packets: u64,
    /// Packets that the merging router drops.
    pub lost_packets: u64,
    /// The least rate after the move as a share of the one before, parts per million; at most 1,000,000.
    pub least_ppm: u32,
    /// Bytes that the flow delivers less than it would have, until it has its rate again.
    pub cost: Size,
    /// Bytes delivered or carried for others that the move gains over the rest of the flow, what the lightpath costs taken off.
    pub gain: Size,
}

/// A line is full from this load on: a TCP flow that it limits leaves it idle for moments, and counters are of an interval.
pub(crate) const FULL_PPM: u64 = 950_000;

/// Packets overtaken that make no difference: the duplicate ACK threshold (RFC 5681, 3.2).
pub(crate) const DUPLICATE_ACKS: u64 = 3;

/// Part of the rate that is left when more is lost than one cut of the window makes up for. The paper (section 3.4, figure 6, and
/// section 4) saw the rate fall by more than 80 % in all such cases.
const LEFT_AFTER_MASS_LOSS: f64 = 0.2;

/// CUBIC's C, segments / s^3 (RFC 9438, 5).
const CUBIC_C: f64 = 0.4;

/// A move that is thought about.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The flow's rate.
    pub rate: Rate,
    /// What of it is still to come.
    pub remaining: Size,
    /// What the lightpath has room for.
    pub room: Rate,
    /// What has to be paid for the lightpath itself.
    pub price: Size,
    /// The flow's ways.
    pub ways: &'a Ways,
}

/// What the move of `case` will do with `mitigation`: what is not overtaken costs nothing, what is lost all the same costs what it did, and
/// time in which nothing arrives costs its rate.
pub fn forecast(case: &Case, mitigation: Mitigation, policy: &Policy) -> Forecast {
    let &Case { rate, remaining, room, price, ways } = case;
    let limit = limit_of(ways);
    let end_wait = ways.egress.map_or(Span::ZERO, |link| link.wait());
    let over_ip = ways.ip_delay + ways.core.wait();
    let before = (over_ip + end_wait + ways.return_delay).as_secs_f64();
    let after = (ways.lightpath_delay + end_wait + ways.return_delay).as_secs_f64();
    let difference = Span(over_ip.0.saturating_sub(ways.lightpath_delay.0));
    let packet = ways.packet.0.max(1);
    let Left { overlap, pause, lost } = left(mitigation, rate, difference, ways);
    let overtaken = rate.data_in(overlap).0;
    let lost = lost.min(rate.data_in(difference).0);
    let rate_after = rate_after(limit, rate, before, after, room, ways);

    let r = rate.0 as f64;
    // With less in flight the queues drain before the line runs empty: the window needed is that of the ways alone.
    let shorter = before / (ways.lightpath_delay + ways.return_delay).as_secs_f64().max(1e-9);
    let window_packets = r * before / 8.0 / packet as f64;
    let keep = f64::from(policy.keep_ppm) / 1e6;
    let (mut least, mut lacking) = (1.0, 0.0);
    if overtaken.max(lost) / packet > DUPLICATE_ACKS {
        let mass_loss = lost as f64 > (1.0 - keep) * window_packets * packet as f64;
        let kept = if mass_loss { (LEFT_AFTER_MASS_LOSS / shorter).min(keep) } else { keep };
        least = (kept * shorter).min(1.0);
        lacking = deficit_s(window_packets, kept, shorter) * r / 8.0;
        // Sent a second time, needlessly or not, where a line is full; a window-limited flow has room for it.
        if limit != Limit::Window || lost > 0 {
            lacking += (overtaken + lost) as f64;
        }
    }
    lacking += rate.data_in(pause).0 as f64;
    // Rates are told per second.
    least = f64::min(least, 1.0 - pause.as_secs_f64()).max(0.0);
    let worth = if ways.core.load_ppm() >= u64::from(policy.busy_ppm) { 1_000_000 } else { policy.offload_worth_ppm };
    let relief = u128::from(remaining.0) * u128::from(worth) / 1_000_000;
    // In the time that the flow would have taken at its old rate, it delivers that much sooner.
    let faster =
        u128::from(remaining.0) * u128::from(rate_after.0.saturating_sub(rate.0)) / u128::from(rate_after.0.max(1));
    let slower = u128::from(remaining.0) * u128::from(rate.0.saturating_sub(rate_after.0)) / u128::from(rate.0.max(1));
    let gain = (relief + faster).saturating_sub(u128::from(price.0));
    Forecast {
        limit,
        rate_after,
        overlap,
        pause,
        overtaken_packets: overtaken / packet,
        lost_packets: lost / packet,
        least_ppm: (least * 1e6) as u32,
        cost: Size((lacking as u64).saturating_add(slower as u64)),
        gain: Size(gain as u64),
    }
}

/// What limits a flow, by the lines that are full; of several the last on its way, which costs most.
pub(crate) fn limit_of(ways: &Ways) -> Limit {
    let full = |link: crate::view::LinkView| link.load_ppm() >= FULL_PPM;
    if ways.egress.is_some_and(full) {
        Limit::Receiver
    } else if full(ways.core) {
        Limit::Core
    } else if ways.ingress.is_some_and(full) {
        Limit::Sender
    } else {
        Limit::Window
    }
}

/// Bytes that find no room at the merging router while both ways deliver.
pub(crate) fn overflow(rate: Rate, overlap: Span, ways: &Ways) -> u64 {
    let Some(egress) = ways.egress else { return 0 };
    // Everything that came before still comes over IP, the flow once more over the lightpath.
    let excess = Rate((rate.0.saturating_add(egress.load.0.max(rate.0))).saturating_sub(egress.capacity.0));
    let free = egress.queue_limit.0.saturating_sub(egress.queue.0);
    excess.data_in(overlap).0.saturating_sub(free)
}

fn rate_after(limit: Limit, rate: Rate, before_s: f64, after_s: f64, room: Rate, ways: &Ways) -> Rate {
    let beyond = ways.egress.map_or(u64::MAX, |l| l.capacity.0.saturating_sub(l.load.0).saturating_add(rate.0));
    let most = room.0.min(ways.ingress.map_or(u64::MAX, |l| l.capacity.0)).min(beyond);
    let wanted = match limit {
        Limit::Window => (rate.0 as f64 * before_s / after_s.max(1e-9)) as u64,
        Limit::Sender | Limit::Receiver => rate.0,
        Limit::Core => u64::MAX,
    };
    Rate(wanted.min(most))
}

/// How many seconds at the old rate a flow lacks that keeps the part `kept` of its window of `packets`, on a way whose RTT is shorter
/// by the factor `shorter`.
fn deficit_s(packets: f64, kept: f64, shorter: f64) -> f64 {
    if kept * shorter >= 1.0 || packets <= 0.0 {
        return 0.0;
    }
    let k = cube_root((1.0 - kept) * packets / CUBIC_C);
    // With u = 1 - t / K the rate is shorter (1 - (1 - kept) u^3) of the old one: back at one where u^3 = (1 - 1 / shorter) / (1 - kept).
    let back = if shorter > 1.0 { cube_root((1.0 - 1.0 / shorter) / (1.0 - kept)) } else { 0.0 };
    // On a longer way the old rate does not come back; what is lacking until K counts.
    let area = (1.0 - shorter) * (1.0 - back) + shorter * (1.0 - kept) * (1.0 - (back * back) * (back * back)) / 4.0;
    k * area.max(0.0)
}

/// By Newton's method with nothing but IEEE 754's own operations, so that a forecast is equal on every machine; libm's is not.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut y = if x > 1.0 { x } else { 1.0 };
    // From above it falls by a third at least while it is far off: 1e9 takes 60 steps.
    for _ in 0..200 {
        let next = (2.0 * y + x / (y * y)) / 3.0;
        if next >= y {
            break;
        }
        y = next;
    }
    y
}

#[cfg(test)]
mod tests;
