//! A stream's trend of delay: does it load the path more than it can take (SLoPS: Jain and Dovrolis, SIGCOMM 2002)?

use crate::dispersion::Group;

/// Trend of a stream's delays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trend {
    /// They rise: its rate exceeds the available bandwidth.
    Rises,
    /// They do not.
    Steady,
    /// Neither can be said.
    Unclear,
}

/// Share of lost packets from which on a stream overloads the path.
const LOST: f64 = 0.03;
/// Least rise, as a share of the stream's duration: two clocks differ by less, and so does what a reader may neglect.
const LEAST_RISE: f64 = 0.005;
/// Pairwise comparison and pairwise difference test: above the first it rises, below the second it does not.
const COMPARISON: (f64, f64) = (0.66, 0.54);
const DIFFERENCE: (f64, f64) = (0.55, 0.45);

/// Returns the trend of a stream's delays.
pub fn trend(stream: &Group) -> Trend {
    if stream.arrived.len() as f64 <= stream.sent as f64 * (1.0 - LOST) {
        return Trend::Rises;
    }
    // Medians of parts of sqrt(n) packets, so that single late packets do not count.
    let part = (libm::sqrt(stream.arrived.len() as f64) as usize).max(1);
    let median = |packets: &[crate::dispersion::Arrived]| {
        let mut delays: Vec<i64> = packets.iter().map(|packet| packet.delay_ns).collect();
        delays.sort_unstable();
        delays[delays.len() / 2]
    };
    let medians: Vec<i64> = stream.arrived.chunks_exact(part).map(median).collect();
    let steps: Vec<i64> = medians.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let moved: i64 = steps.iter().map(|step| step.abs()).sum();
    let rise = steps.iter().sum::<i64>() as f64;
    if moved == 0 || rise < LEAST_RISE * stream.span_ns as f64 {
        return Trend::Steady;
    }
    let comparison = steps.iter().filter(|&&step| step > 0).count() as f64 / steps.len() as f64;
    let difference = rise / moved as f64;
    let says = |value: f64, (rises, steady): (f64, f64)| i32::from(value > rises) - i32::from(value < steady);
    match says(comparison, COMPARISON) + says(difference, DIFFERENCE) {
        1.. => Trend::Rises,
        0 => Trend::Unclear,
        _ => Trend::Steady,
    }
}
