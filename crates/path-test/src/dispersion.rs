//! Groups of packets of a train: their dispersion, delays and losses.

use crate::train::{Train, TrainReport};

/// Packets of a train that were sent as one: a pair, a stream.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// Packets sent.
    pub sent: usize,
    /// Time at which its first packet left, ns of the sender's clock.
    pub begin_ns: u64,
    /// From its first packet's leaving to its last one's, ns.
    pub span_ns: u64,
    /// Of each packet that arrived: its place, when it left after the first, and its delay by the two clocks, ns.
    pub arrived: Vec<Arrived>,
}

/// A packet of a group that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// From 0.
    pub place: usize,
    /// After the first packet of the group, ns of the sender's clock.
    pub offset_ns: u64,
    /// Receiver's clock at its arrival less sender's clock as it left, ns: the delay and the clocks' difference.
    pub delay_ns: i64,
}

impl Group {
    /// Returns true if all arrived.
    pub fn is_complete(&self) -> bool {
        self.arrived.len() == self.sent
    }

    /// Time between the arrivals of the first and the last that arrived, ns; negative where packets overtook others.
    pub fn dispersion_ns(&self) -> i64 {
        match (self.arrived.first(), self.arrived.last()) {
            (Some(first), Some(last)) => {
                (last.offset_ns as i64 - first.offset_ns as i64) + (last.delay_ns - first.delay_ns)
            }
            _ => 0,
        }
    }

    /// Times between arrivals, ns.
    pub fn gaps_ns(&self) -> impl Iterator<Item = i64> + '_ {
        let gap = |pair: &[Arrived]| {
            (pair[1].offset_ns as i64 - pair[0].offset_ns as i64) + (pair[1].delay_ns - pair[0].delay_ns)
        };
        self.arrived.windows(2).map(gap)
    }
}

/// Splits the report of `train` into groups of these sizes, in order; a group that did not begin is left out.
pub fn groups(train: &Train, sizes: &[usize], report: &TrainReport) -> Vec<Group> {
    let mut found = vec![];
    let mut from = 0;
    for &size in sizes {
        let to = (from + size).min(report.packets.len()).min(train.offsets_ns.len());
        let Some(packets) = report.packets.get(from..to).filter(|packets| !packets.is_empty()) else { break };
        let begin_ns = packets[0].sent_ns;
        let arrived = |(place, packet): (usize, &crate::train::TrainPacket)| {
            let delay_ns = packet.received_ns?.wrapping_sub(packet.sent_ns) as i64;
            Some(Arrived { place, offset_ns: packet.sent_ns.saturating_sub(begin_ns), delay_ns })
        };
        found.push(Group {
            sent: packets.len(),
            begin_ns,
            span_ns: packets[packets.len() - 1].sent_ns.saturating_sub(begin_ns),
            arrived: packets.iter().enumerate().filter_map(arrived).collect(),
        });
        from = to;
    }
    found
}

/// Returns the value that the share `part` of `values` does not exceed; 0 of none.
pub fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((part * last as f64 + 0.5) as usize).copied().unwrap_or(0.0)
}

/// Returns mean and standard error of the mean.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
    (mean, libm::sqrt(squares / (count - 1.0).max(1.0) / count))
}

/// Returns the slope of the lower envelope of points in the order of their x, that of its edge over the middle. On
/// delays it is the skew of the two clocks (Moon, Skelly, Towsley 1999), while the path is empty now and then.
pub fn lower_slope(points: &[(f64, f64)]) -> f64 {
    let mut hull: Vec<(f64, f64)> = vec![];
    for &point in points {
        while let [.., a, b] = hull[..] {
            if (b.0 - a.0) * (point.1 - a.1) <= (b.1 - a.1) * (point.0 - a.0) {
                hull.pop();
            } else {
                break;
            }
        }
        hull.push(point);
    }
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return 0.0 };
    let middle = (first.0 + last.0) / 2.0;
    let edge = hull.windows(2).find(|edge| edge[1].0 >= middle && edge[1].0 > edge[0].0);
    edge.map_or(0.0, |edge| (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0))
}
