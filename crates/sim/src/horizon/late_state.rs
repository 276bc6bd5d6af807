//! State of a link that decides late, beside the link itself.

use super::arrival::Arrival;
use super::plan::Plan;
use units::Time;

/// State of a link beside itself.
#[derive(Clone)]
pub(super) struct Late {
    /// Time of its next event, ns.
    pub due: u64,
    /// Packets inside that were handed over ahead of their delivery.
    pub foreseen: u64,
    /// Time of the latest packet handed over, and its number at that time.
    pub latest: (u64, u32),
    /// Time of the latest delivery, and the number of those at that time.
    pub delivered: (u64, u32),
}

impl Late {
    /// By link, where links of `plan` have such a state.
    pub fn of_links(plan: &Plan) -> Vec<Late> {
        let is_used = plan.has_late || plan.counts_ties.contains(&true);
        vec![Late::new(Time::NEVER); if is_used { plan.places.len() } else { 0 }]
    }

    /// Of a link whose next event is due at `due`.
    fn new(due: Time) -> Late {
        Late { due: due.0, foreseen: 0, latest: (0, 0), delivered: (0, 0) }
    }

    /// Returns true if `arrival` comes before the next event of the link with `source`. One that the link's own
    /// delivery led to comes just behind that delivery.
    #[inline]
    pub fn is_before_event<P>(&self, arrival: &Arrival<P>, source: u32) -> bool {
        let order = (arrival.at, arrival.cause()).cmp(&(self.due, source));
        order.is_lt() || (order.is_eq() && self.delivered.0 == self.due && arrival.nth() < self.delivered.1)
    }
}
