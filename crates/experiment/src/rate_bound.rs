//! Bounds of a copy's goodput where its simulated part is no sample of the rest: too few losses, or still changing.
//!
//! The upper bound is what line, policer, windows and the copy's own rate let through. The lower one is the response
//! function of its congestion control at the loss rate that the part allows: of Reno (RFC 5681; Mathis, Semke, Mahdavi
//! and Ott 1997) or CUBIC (RFC 9438, 5.2), each connection for itself. Another control has the slowest batch of the
//! part, or Reno where that is slower: few are slower than Reno, and those that are show it.

use crate::probe::FlowObservation;
use crate::validate::copied_flows;
use spec::{FlowSpec, LinkSpec, QueueSpec, RunSpec, WorkloadSpec};
use tcp::segment::{base_header_bytes, TIMESTAMP_OPTION_BYTES};

/// Part of its own bound from which on a copy is at it.
const AT_BOUND: f64 = 0.98;
/// The normal distribution's 97.5 % point.
const Z_975: f64 = 1.96;

/// Properties of path and copy that bound its goodput.
pub struct RateBound {
    /// Largest goodput, bytes per s.
    most: f64,
    /// The part of it that is the copy's own: its windows, its pacing, the rate of its workload.
    own: f64,
    connections: f64,
    segment_bytes: f64,
    /// Round trip on the empty path, s.
    rtt_s: f64,
    /// The same through full queues, s.
    full_rtt_s: f64,
    control: Control,
}

#[derive(Clone, Copy, PartialEq)]
enum Control {
    Reno,
    Cubic,
    Other,
}

impl RateBound {
    /// Of the copy that `run` is.
    pub fn of(run: &RunSpec) -> RateBound {
        let copied = &run.flows[copied_flows(run)];
        let first = &copied[0];
        let transport = &first.transport;
        let options = if transport.timestamps { TIMESTAMP_OPTION_BYTES } else { 0 };
        let headers = base_header_bytes(transport.ipv6) + options;
        let segment_bytes = f64::from(transport.mtu_bytes.saturating_sub(headers).max(1));
        let links = || first.route.iter().map(|&link| &run.links[link]);
        let delay_ns = |route: &[usize]| route.iter().map(|&link| run.links[link].delay_ns).sum::<u64>();
        let rtt_s = (delay_ns(&first.route) + delay_ns(&first.return_route)).max(1) as f64 / 1e9;
        let lines = links().map(|link| payload_bytes_per_s(link, transport.mtu_bytes, segment_bytes));
        let windows = copied.iter().map(|flow| window_bytes(flow) as f64).sum::<f64>() / rtt_s;
        let pacing = |flow: &FlowSpec| flow.transport.max_pacing_bps.map_or(f64::INFINITY, |bps| bps as f64 / 8.0);
        let paced = copied.iter().map(pacing).sum::<f64>();
        let workload = match &first.workload {
            WorkloadSpec::Copy(copy) => copy.pace_bps().map_or(f64::INFINITY, |bps| bps as f64 / 8.0),
            _ => f64::INFINITY,
        };
        let own = windows.min(paced).min(workload);
        RateBound {
            most: lines.fold(own, f64::min),
            own,
            connections: copied.len() as f64,
            segment_bytes,
            rtt_s,
            full_rtt_s: rtt_s + links().map(queue_s).sum::<f64>(),
            control: match transport.congestion_control.as_str() {
                "reno" => Control::Reno,
                "cubic" => Control::Cubic,
                _ => Control::Other,
            },
        }
    }

    /// Least and largest goodput after a part with the counts of `seen`, of which the slowest batch had `slowest`,
    /// bytes per s.
    pub fn bytes_per_s(&self, seen: &FlowObservation, slowest: Option<f64>) -> [f64; 2] {
        let loss = poisson_high(seen.episodes) / seen.packets.max(1) as f64;
        let windows = self.connections * self.window(loss) * self.segment_bytes;
        // Beyond what the empty path holds, a window waits in the queue.
        let by_losses = (windows / self.full_rtt_s).max((windows / self.rtt_s).min(self.held() / self.full_rtt_s));
        let least = match (self.control, slowest) {
            (Control::Other, Some(slowest)) => by_losses.min(slowest),
            _ => by_losses,
        };
        [least.min(self.most), self.most]
    }

    /// True if a copy with this goodput, bytes per s, is at a bound of its own, which no loss will change.
    pub fn is_own(&self, bytes_per_s: f64) -> bool {
        bytes_per_s >= AT_BOUND * self.own
    }

    /// Payload that the empty path holds, bytes.
    fn held(&self) -> f64 {
        self.most * self.rtt_s
    }

    /// Mean window at a rate of loss episodes, segments.
    fn window(&self, loss: f64) -> f64 {
        let reno = (1.5 / loss).sqrt();
        if self.control == Control::Cubic {
            // To the power of three quarters.
            let root = (self.rtt_s / loss).sqrt();
            reno.max(1.054 * root * root.sqrt())
        } else {
            reno
        }
    }
}

/// Upper end of the 95 % interval of the mean of a count (Poisson; Wilson and Hilferty 1931).
fn poisson_high(count: u64) -> f64 {
    let next = count as f64 + 1.0;
    let root = 1.0 - 1.0 / (9.0 * next) + Z_975 / (3.0 * next.sqrt());
    next * root * root * root
}

/// Payload that a link lets through in full packets, bytes per s.
fn payload_bytes_per_s(link: &LinkSpec, mtu_bytes: u32, segment_bytes: f64) -> f64 {
    let framing = link.framing.as_ref().map_or(0, |framing| framing.header_bytes + framing.gap_bytes);
    let line = link.rate_bps as f64 / 8.0 * segment_bytes / f64::from(mtu_bytes + framing);
    let policer = link.policer.as_ref().map_or(f64::INFINITY, |policer| policer.rate_bps as f64);
    line.min(policer / 8.0 * segment_bytes / f64::from(mtu_bytes))
}

fn window_bytes(flow: &FlowSpec) -> u64 {
    flow.transport.window_bytes.min(flow.transport.send_buffer_bytes.unwrap_or(u64::MAX))
}

/// Time that a full queue takes to empty, s.
fn queue_s(link: &LinkSpec) -> f64 {
    match link.queue {
        QueueSpec::DropTail { limit_bytes: Some(bytes), .. } => bytes as f64 * 8.0 / link.rate_bps as f64,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_end_of_a_count_is_that_of_its_table() {
        // Exact 97.5 % limits (Garwood 1936): 3.689, 7.225, 42.83.
        for (count, high) in [(0, 3.689), (2, 7.225), (30, 42.83)] {
            assert!((poisson_high(count) / high - 1.0).abs() < 0.01, "{count}");
        }
    }
}
