//! Pacing rates: flows that share a link after their moves share the rate that other flows leave.
//!
//! Hold buffers of one pacer, and the flow that moves next, send at the link's rate less the load of other flows in
//! the latest interval: flows still on IP, and flows without a hold. Each held flow is guaranteed its rate before the
//! move: growing flows meet in the link's queue, as they would have done without the move.

use super::Manager;
use crate::decision::Decision;
use crate::lightpath::CarriedFlow;
use crate::table::rate_of;
use crate::view::{Paths, View};
use crate::FlowKey;
use std::collections::BTreeMap;
use units::{Rate, Time};

impl Manager {
    /// The paths of `flow`, of `rate`, by [`View::paths`], with its hold buffer paced beside the other held flows.
    pub(super) fn paths(
        &self,
        now: Time,
        flow: FlowKey,
        lightpath: usize,
        rate: Rate,
        view: &impl View,
    ) -> Option<Paths> {
        let mut paths = view.paths(flow, lightpath)?;
        paths.allowed.hold_buffer = paths.allowed.hold_buffer.map(|hold| {
            let (held_rate, guaranteed) = self.held_rates(now, hold.pacing.pacer);
            hold.shared_with(held_rate, rate, guaranteed)
        });
        Some(paths)
    }

    /// Decides the rate of each pacer with held flows.
    pub(super) fn set_pacing_rates(&mut self, now: Time, view: &impl View) {
        let mut rates = BTreeMap::new();
        for (lightpath, path) in self.lightpaths.iter().enumerate() {
            for (&flow, carried) in &path.flows {
                let pacer = carried.pacer.filter(|pacer| self.is_held(carried) && !rates.contains_key(pacer));
                let hold = pacer.and_then(|_| view.paths(flow, lightpath)?.allowed.hold_buffer);
                if let Some(hold) = hold {
                    let (held_rate, guaranteed) = self.held_rates(now, hold.pacing.pacer);
                    rates.insert(hold.pacing.pacer, hold.shared_with(held_rate, Rate(0), guaranteed).line);
                }
            }
        }
        self.decisions.extend(rates.into_iter().map(|(pacer, rate)| Decision::Pace { pacer, rate }));
    }

    /// The summed rates of the held flows of `pacer`: in the latest interval, and before their moves.
    fn held_rates(&self, now: Time, pacer: usize) -> (Rate, Rate) {
        let flows = self.lightpaths.iter().flat_map(|path| path.flows.values());
        let held = flows.filter(|carried| carried.pacer == Some(pacer) && self.is_held(carried));
        let latest = |carried: &CarriedFlow| rate_of(carried.activity.latest().bytes, self.policy.interval);
        held.fold((Rate(0), Rate(0)), |(sum, guaranteed), carried| {
            let rate = if carried.since == now { carried.before } else { latest(carried) };
            (Rate(sum.0.saturating_add(rate.0)), Rate(guaranteed.0.saturating_add(carried.before.0)))
        })
    }

    /// Returns whether the router holds packets of the flow, or is about to.
    fn is_held(&self, carried: &CarriedFlow) -> bool {
        self.move_log.records()[carried.record].hold_stats.is_none_or(|stats| stats.is_holding)
    }
}
