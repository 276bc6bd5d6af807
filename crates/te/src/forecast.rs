//! Forecasts cost and gain of a move from the state before it: rates, delays of both paths, queues.
//!
//! The overlap. Over the shorter path packets arrive earlier by D, the difference of the one-way delays (queues
//! included). So for a time D both paths deliver at the flow's rate r, and r D bytes over the lightpath overtake the
//! packets still on the IP path. More than three overtaken packets make the sender retransmit and reduce its window
//! (RFC 5681, 3.2).
//!
//! The limit of the flow (scenarios A to D of Moura, Pras, Fioreze and de Boer 2013) decides the cost:
//!
//! - **A**, a window: the links have room for retransmissions.
//! - **B**, the sender's link, and **C**, the core: spurious retransmissions, r D, take the place of new data.
//! - **D**, the receiver's link: it is full before the move and gets r more for the time D. Its queue drops the excess.
//!
//! After a reduction to the share w of the window W, queues included, the flow has w W / RTT(after), without queues,
//! at most r. It returns to r along CUBIC's curve, W (1 - (1 - w)(1 - t / K)^3), K = ((1 - w) W / C)^(1/3) (RFC 9438,
//! 4.2): the area between is its deficit.
//!
//! A forecast ignores the flow's congestion control and its application: it is an order of magnitude, and the move log
//! records the error.

use crate::limit::{limit_of, Limit};
use crate::mitigation::Mitigation;
use crate::policy::Policy;
use crate::residual::{residual, Residual};
use crate::view::Paths;
use libm::cbrt;
use units::{Rate, Size, Span};

/// Expected effects of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forecast {
    /// The flow's limit before the move.
    pub limit: Limit,
    /// Its steady rate after the move.
    pub rate_after: Rate,
    /// Time for which both paths deliver; with a mitigation the rest of it.
    pub overlap: Span,
    /// Time for which nothing arrives, because a mitigation overestimated the difference of the paths.
    pub pause: Span,
    /// Packets that are overtaken.
    pub overtaken_packets: u64,
    /// Packets that the merging router drops.
    pub lost_packets: u64,
    /// The lowest rate after the move as a share of the one before, parts per million; at most 1,000,000.
    pub min_rate_ppm: u32,
    /// Deficit of delivered bytes until the flow has its rate again.
    pub cost: Size,
    /// Bytes that the move gains over the rest of the flow, delivered or offloaded, less the cost of the lightpath.
    pub gain: Size,
}

/// Overtaken packets without effect: the duplicate ACK threshold (RFC 5681, 3.2).
pub(crate) const DUPTHRESH: u64 = 3;

/// Share of the rate after more losses than one window reduction repairs. The paper (section 3.4, figure 6, and
/// section 4) saw the rate fall by more than 80 % in all such cases.
const RATE_AFTER_MASS_LOSS: f64 = 0.2;

/// CUBIC's C, segments / s^3 (RFC 9438, 5).
const CUBIC_C: f64 = 0.4;

/// A possible move.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The flow's rate.
    pub rate: Rate,
    /// Bytes that the flow has still to send.
    pub remaining: Size,
    /// Rate left on the lightpath.
    pub room: Rate,
    /// Cost of the lightpath's set-up.
    pub lightpath_cost: Size,
    /// The flow's paths.
    pub paths: &'a Paths,
}

/// Forecasts the move of `case` with `mitigation`. Packets not overtaken cost nothing, lost packets cost the same as
/// without it, and a pause costs the flow's rate.
pub fn forecast(case: &Case, mitigation: Mitigation, policy: &Policy) -> Forecast {
    let &Case { rate, remaining, room, lightpath_cost, paths } = case;
    let limit = limit_of(paths);
    let end_wait = paths.egress.map_or(Span::ZERO, |link| link.wait());
    let over_ip = paths.ip_delay + paths.core.wait();
    let before = (over_ip + end_wait + paths.return_delay).as_secs_f64();
    let after = (paths.lightpath_delay + end_wait + paths.return_delay).as_secs_f64();
    let difference = Span(over_ip.0.saturating_sub(paths.lightpath_delay.0));
    let packet = paths.packet.0.max(1);
    let Residual { overlap, pause, lost } = residual(mitigation, rate, difference, paths);
    let overtaken = rate.data_in(overlap).0;
    let lost = lost.min(rate.data_in(difference).0);
    let rate_after = rate_after(limit, rate, before, after, room, paths);

    let r = rate.0 as f64;
    // With less in flight the queues drain before the link runs idle: the window needed is that of the propagation
    // delays.
    let shorter = before / (paths.lightpath_delay + paths.return_delay).as_secs_f64().max(1e-9);
    let window_packets = r * before / 8.0 / packet as f64;
    let keep = f64::from(policy.cc_beta_ppm) / 1e6;
    let (mut least, mut lacking) = (1.0, 0.0);
    if overtaken.max(lost) / packet > DUPTHRESH {
        let mass_loss = lost as f64 > (1.0 - keep) * window_packets * packet as f64;
        let kept = if mass_loss { (RATE_AFTER_MASS_LOSS / shorter).min(keep) } else { keep };
        least = (kept * shorter).min(1.0);
        lacking = deficit_s(window_packets, kept, shorter) * r / 8.0;
        // Retransmissions, spurious or not, take capacity where a link is full; a window-limited flow has room for
        // them.
        if limit != Limit::Window || lost > 0 {
            lacking += (overtaken + lost) as f64;
        }
    }
    lacking += rate.data_in(pause).0 as f64;
    // Rates are measured per second.
    least = f64::min(least, 1.0 - pause.as_secs_f64()).max(0.0);
    let worth = if paths.core.load_ppm() >= u64::from(policy.congestion_threshold_ppm) {
        1_000_000
    } else {
        policy.offload_weight_ppm
    };
    let relief = u128::from(remaining.0) * u128::from(worth) / 1_000_000;
    // Bytes delivered beyond those of the old rate, in the time that the flow would have taken at it.
    let faster =
        u128::from(remaining.0) * u128::from(rate_after.0.saturating_sub(rate.0)) / u128::from(rate_after.0.max(1));
    let slower = u128::from(remaining.0) * u128::from(rate.0.saturating_sub(rate_after.0)) / u128::from(rate.0.max(1));
    let gain = (relief + faster).saturating_sub(u128::from(lightpath_cost.0));
    Forecast {
        limit,
        rate_after,
        overlap,
        pause,
        overtaken_packets: overtaken / packet,
        lost_packets: lost / packet,
        min_rate_ppm: (least * 1e6) as u32,
        cost: Size((lacking as u64).saturating_add(slower as u64)),
        gain: Size(gain as u64),
    }
}

fn rate_after(limit: Limit, rate: Rate, before_s: f64, after_s: f64, room: Rate, paths: &Paths) -> Rate {
    let beyond = paths.egress.map_or(u64::MAX, |l| l.capacity.0.saturating_sub(l.load.0).saturating_add(rate.0));
    let most = room.0.min(paths.ingress.map_or(u64::MAX, |l| l.capacity.0)).min(beyond);
    let wanted = match limit {
        Limit::Window => (rate.0 as f64 * before_s / after_s.max(1e-9)) as u64,
        Limit::Sender | Limit::Receiver => rate.0,
        Limit::Core => u64::MAX,
    };
    Rate(wanted.min(most))
}

/// Deficit, in seconds at the old rate, of a flow that keeps the share `kept` of its window of `packets`, on a path
/// whose RTT is shorter by the factor `shorter`.
fn deficit_s(packets: f64, kept: f64, shorter: f64) -> f64 {
    if kept * shorter >= 1.0 || packets <= 0.0 {
        return 0.0;
    }
    let k = cbrt((1.0 - kept) * packets / CUBIC_C);
    // With u = 1 - t / K the rate is shorter (1 - (1 - kept) u^3) of the old one: recovered at u^3 = (1 - 1 / shorter)
    // / (1 - kept).
    let back = if shorter > 1.0 { cbrt((1.0 - 1.0 / shorter) / (1.0 - kept)) } else { 0.0 };
    // On a longer path the old rate does not come back: the deficit until K counts.
    let area = (1.0 - shorter) * (1.0 - back) + shorter * (1.0 - kept) * (1.0 - (back * back) * (back * back)) / 4.0;
    k * area.max(0.0)
}

#[cfg(test)]
mod tests;
