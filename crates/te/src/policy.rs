//! The operator's policy.

use units::{Rate, Size, Span};

/// Thresholds of an elephant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thresholds {
    /// Rate in the latest interval at which a flow is one.
    pub rate: Rate,
    /// And the volume that it must have sent.
    pub volume: Size,
    /// Standard errors subtracted from an estimate before the comparison, thousandths: more of them mean fewer false
    /// positives and later detection.
    pub confidence_sigmas_e3: u32,
    /// Mean rate below which a moved flow returns to IP: below `rate`, so that a flow between the two stays where it
    /// is.
    pub return_rate: Rate,
}

/// A lightpath that may be set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LightpathConfig {
    /// Its capacity.
    pub capacity: Rate,
    /// From the decision to the first packet.
    pub set_up: Span,
    /// Cost of a set-up: the bytes that it must gain to be worth it.
    pub cost: Size,
}

/// The operator's policy. Shares are parts per million.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Time between two decisions.
    pub interval: Span,
    /// Sampling is 1 in this many packets; 1 = all are counted.
    pub one_in: u64,
    /// Most flows in the flow table.
    pub flow_table_size: usize,
    /// A flow without packets for this long has ended (IPFIX: idle timeout).
    pub inactive_timeout: Span,
    /// Thresholds of an elephant.
    pub thresholds: Thresholds,
    /// Least time between two moves of a flow.
    pub min_dwell_time: Span,
    /// A lightpath without flows is released after this time.
    pub lightpath_timeout: Span,
    /// Most lightpaths set up at once.
    pub lightpaths_max: usize,
    /// Share of a lightpath's capacity that flows may reserve.
    pub max_utilization_ppm: u32,
    /// Value of a byte offloaded from the IP level, as a share of a byte delivered.
    pub offload_weight_ppm: u32,
    /// Load of the IP path's slowest link from which an offloaded byte counts as a delivered one: other flows use the
    /// room.
    pub congestion_threshold_ppm: u32,
    /// True if a move that is forecast to cost more than it gains is refused.
    pub refuse: bool,
    /// Time after a move during which a deficit of the flow counts as the move's cost.
    pub observation_window: Span,
    /// Share of cwnd after a loss: beta of the flows' congestion control.
    pub cc_beta_ppm: u32,
    /// Shape of the Pareto distribution of flow sizes, thousandths, above 1000: the expected rest of a flow follows
    /// from its volume.
    pub pareto_shape_e3: u32,
}

impl Policy {
    /// Expected remaining bytes of a flow that has sent `volume`: the mean excess of a Pareto tail, x / (a - 1).
    pub fn expected_rest(&self, volume: Size) -> Size {
        let rest = u128::from(volume.0) * 1000 / u128::from(self.pareto_shape_e3.saturating_sub(1000).max(1));
        Size(u64::try_from(rest).unwrap_or(u64::MAX))
    }
}

/// A policy that takes every flow for an elephant and returns none early.
#[cfg(test)]
pub(crate) fn of_tests() -> Policy {
    Policy {
        interval: Span::from_secs(1),
        one_in: 1,
        flow_table_size: 16,
        inactive_timeout: Span::from_secs(10),
        thresholds: Thresholds { rate: Rate(1), volume: Size(1), confidence_sigmas_e3: 0, return_rate: Rate(1) },
        min_dwell_time: Span::from_secs(30),
        lightpath_timeout: Span::from_secs(10),
        lightpaths_max: 1,
        max_utilization_ppm: 900_000,
        offload_weight_ppm: 100_000,
        congestion_threshold_ppm: 900_000,
        refuse: true,
        observation_window: Span::from_secs(10),
        cc_beta_ppm: 700_000,
        pareto_shape_e3: 2000,
    }
}
