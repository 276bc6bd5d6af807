//! What the operator decides beforehand.

use units::{Rate, Size, Span};

/// What makes a flow an elephant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thresholds {
    /// Rate in the latest interval at which a flow is one.
    pub rate: Rate,
    /// And the volume that it must have sent.
    pub volume: Size,
    /// Standard errors that are taken off an estimate before it is compared, thousandths: the more, the fewer mice are taken for
    /// elephants and the later elephants are seen.
    pub standard_errors_e3: u32,
    /// Mean rate below which a moved flow goes back: below `rate`, so that a flow between the two stays where it is.
    pub back_below: Rate,
}

/// A lightpath that may be set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LightpathConfig {
    /// What it carries.
    pub capacity: Rate,
    /// From the decision to the first packet.
    pub set_up: Span,
    /// What a set-up costs: the bytes that it must gain before it is worth it.
    pub cost: Size,
}

/// The operator's policy. Shares are parts per million.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Time between two looks.
    pub interval: Span,
    /// One packet in so many is sampled; 1 = all are counted.
    pub one_in: u64,
    /// Flows in the table at most.
    pub memory: usize,
    /// A flow of which nothing is seen for so long is over.
    pub idle: Span,
    /// What makes an elephant.
    pub thresholds: Thresholds,
    /// A flow stays where it is for so long after a move, either way.
    pub minimum_stay: Span,
    /// A lightpath that carries nothing is kept for so long.
    pub linger: Span,
    /// Lightpaths set up at once at most.
    pub lightpaths_max: usize,
    /// Part of a lightpath's capacity that is given away.
    pub fill_ppm: u32,
    /// What a byte taken off the IP level is worth, as a share of a byte delivered.
    pub offload_worth_ppm: u32,
    /// Load of the IP path's slowest link from which a byte taken off it is worth one delivered: others wait for the room.
    pub busy_ppm: u32,
    /// Whether a move that is forecast to cost more than it gains is refused.
    pub refuse: bool,
    /// Time after a move during which what the flow lacks is the move's cost.
    pub watch: Span,
    /// Part of the window that the flows' congestion control keeps at a loss.
    pub keep_ppm: u32,
    /// Index of the Pareto tail of flows' sizes, thousandths, above 1000: what is expected of a flow follows from what it has sent.
    pub tail_e3: u32,
}

impl Policy {
    /// What a flow that has sent `volume` is expected to send still: the mean excess of a Pareto tail, x / (a - 1).
    pub fn rest_of(&self, volume: Size) -> Size {
        let rest = u128::from(volume.0) * 1000 / u128::from(self.tail_e3.saturating_sub(1000).max(1));
        Size(u64::try_from(rest).unwrap_or(u64::MAX))
    }
}

/// One that finds an elephant in every flow and moves none back early.
#[cfg(test)]
pub(crate) fn of_tests() -> Policy {
    Policy {
        interval: Span::from_secs(1),
        one_in: 1,
        memory: 16,
        idle: Span::from_secs(10),
        thresholds: Thresholds { rate: Rate(1), volume: Size(1), standard_errors_e3: 0, back_below: Rate(1) },
        minimum_stay: Span::from_secs(30),
        linger: Span::from_secs(10),
        lightpaths_max: 1,
        fill_ppm: 900_000,
        offload_worth_ppm: 100_000,
        busy_ppm: 900_000,
        refuse: true,
        watch: Span::from_secs(10),
        keep_ppm: 700_000,
        tail_e3: 2000,
    }
}
