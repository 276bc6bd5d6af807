//! How fast what is kept back is let go: flows that share a line after their moves share what others leave of it.
//!
//! Those that keep something back for a line, and the one that comes, are told to let go at its rate less what others carried over it in
//! the latest interval: flows that are on IP still, and those that wait nowhere. What they had before their moves is promised to them:
//! others that grow meet in the line's queue, as they would have done.

use super::Manager;
use crate::decision::Decision;
use crate::lightpath::Carried;
use crate::table::rate_of;
use crate::view::{View, Ways};
use crate::FlowKey;
use std::collections::BTreeMap;
use units::{Rate, Time};

impl Manager {
    /// The ways of `flow`, of `rate`, as [`View::ways`] tells, with what its router may let go beside others that are kept back.
    pub(super) fn ways(
        &self,
        now: Time,
        flow: FlowKey,
        lightpath: usize,
        rate: Rate,
        view: &impl View,
    ) -> Option<Ways> {
        let mut ways = view.ways(flow, lightpath)?;
        ways.means.hold = ways.means.hold.map(|keeping| {
            let (beside, promised) = self.kept_for(now, keeping.pacing.number);
            keeping.among(beside, rate, promised)
        });
        Some(ways)
    }

    /// Says for each line for which something is kept back how fast it is let go.
    pub(super) fn set_paces(&mut self, now: Time, view: &impl View) {
        let mut paces = BTreeMap::new();
        for (lightpath, path) in self.lightpaths.iter().enumerate() {
            for (&flow, carried) in &path.flows {
                let number = carried.pacing.filter(|number| self.is_kept(carried) && !paces.contains_key(number));
                let hold = number.and_then(|_| view.ways(flow, lightpath)?.means.hold);
                if let Some(keeping) = hold {
                    let (beside, promised) = self.kept_for(now, keeping.pacing.number);
                    paces.insert(keeping.pacing.number, keeping.among(beside, Rate(0), promised).line);
                }
            }
        }
        self.decisions.extend(paces.into_iter().map(|(number, rate)| Decision::Pace { number, rate }));
    }

    /// The rates of the flows of which something is kept back for lines of `number`: those of the latest interval, and those before
    /// their moves.
    fn kept_for(&self, now: Time, number: usize) -> (Rate, Rate) {
        let flows = self.lightpaths.iter().flat_map(|path| path.flows.values());
        let kept = flows.filter(|carried| carried.pacing == Some(number) && self.is_kept(carried));
        let latest = |carried: &Carried| rate_of(carried.activity.latest().bytes, self.policy.interval);
        kept.fold((Rate(0), Rate(0)), |(sum, promised), carried| {
            let rate = if carried.since == now { carried.before } else { latest(carried) };
            (Rate(sum.0.saturating_add(rate.0)), Rate(promised.0.saturating_add(carried.before.0)))
        })
    }

    /// Whether something of it is kept back, or will be.
    fn is_kept(&self, carried: &Carried) -> bool {
        self.ledger.entries()[carried.entry].held.is_none_or(|held| held.goes_on)
    }
}
