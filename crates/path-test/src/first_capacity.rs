//! The capacity of the path as the first part of another test: told, or measured.

use crate::budget::Budget;
use crate::capacity::Capacity;
use crate::estimate::{Cost, Estimator, Next, Outcome};
use crate::settings::Settings;
use crate::train::TrainReport;

/// Capacity for a test that needs it.
pub struct FirstCapacity {
    measured: Option<Capacity>,
    /// bit/s, once it is known.
    pub value_bps: Option<f64>,
    /// Delay of the empty path by the two clocks, ns, where it was measured.
    pub least_delay_ns: Option<i64>,
    /// Steps of the receiver's stamps, ns.
    pub stamp_step_ns: u64,
    cost: Cost,
    rest_until_ns: u64,
}

impl FirstCapacity {
    /// That of `settings`, which has it or bounds its measurement.
    pub fn new(settings: &Settings) -> FirstCapacity {
        FirstCapacity {
            measured: settings.capacity_bps.is_none().then(|| Capacity::new(settings.clone())),
            value_bps: settings.capacity_bps.map(|rate| rate as f64),
            least_delay_ns: None,
            stamp_step_ns: 1,
            cost: Cost::default(),
            rest_until_ns: 0,
        }
    }

    /// Returns the next train of the measurement, or the outcome of one that was refused; None: the capacity is known.
    fn poll_next(&mut self, now_ns: u64) -> Option<Next> {
        if self.value_bps.is_some() {
            return None;
        }
        match self.measured.as_mut()?.poll_next(now_ns) {
            Next::Done(Outcome { estimates, cost, .. }) if !estimates.is_empty() => {
                let measured = self.measured.take()?;
                (self.cost, self.rest_until_ns) = (cost, measured.rest_until_ns());
                self.value_bps = Some(estimates[0].value);
                self.least_delay_ns = measured.least_delay_ns();
                self.stamp_step_ns = measured.stamp_step_ns();
                None
            }
            Next::Done(Outcome { refused, notes, cost, .. }) => {
                let refused = refused.map(|why| format!("the capacity is not known: {why}"));
                Some(Next::Done(Outcome { estimates: vec![], refused, notes, cost }))
            }
            send => Some(send),
        }
    }

    /// Returns what comes before a train of the test that this measurement is for: its own trains, then that test's
    /// `outcome` if it has one. None: it is the test's turn, and `budget` is bounded.
    pub fn poll_before(
        &mut self,
        now_ns: u64,
        outcome: Option<&Outcome>,
        settings: &Settings,
        budget: &mut Budget,
    ) -> Option<Next> {
        if let Some(next) = self.poll_next(now_ns) {
            return Some(next);
        }
        if let Some(outcome) = outcome {
            return Some(Next::Done(outcome.clone()));
        }
        self.bound(settings, budget);
        None
    }

    /// Lets the mean rate of `budget` follow the capacity, where nobody has told the line's rate.
    fn bound(&self, settings: &Settings, budget: &mut Budget) {
        if settings.line_rate_bps.is_none() {
            budget.rate_bps = self.value_bps.unwrap_or(0.0) * f64::from(settings.share_ppm) / 1e6;
        }
    }

    /// First time at which the mean rate of the measurement is kept, ns.
    pub fn rest_until_ns(&self) -> u64 {
        self.rest_until_ns
    }

    /// Returns `cost` of what came after it, with its own.
    pub fn cost_with(&self, cost: Cost) -> Cost {
        Cost {
            packets: self.cost.packets + cost.packets,
            bytes: self.cost.bytes + cost.bytes,
            seconds: self.cost.seconds + cost.seconds,
        }
    }

    /// A train of the measurement is over; returns false if it was none.
    pub fn handle_report(&mut self, now_ns: u64, report: &TrainReport) -> bool {
        let measuring = self.value_bps.is_none();
        if let (true, Some(measured)) = (measuring, &mut self.measured) {
            measured.handle_report(now_ns, report);
        }
        measuring
    }
}
