//! Exact periods of a source: on, off, on, off. A source counts in active time, which stands still while it is off, so
//! each period carries what its rate says, whatever the gaps between its packets.

use spec::ActiveSpec;
use units::{Span, Time};

/// Active time of a source against the clock.
#[derive(Clone, Copy, Debug)]
pub struct Active {
    /// Start of the source: no active time has passed.
    start: Time,
    /// None: always on.
    spec: Option<ActiveSpec>,
}

impl Active {
    /// Periods of `spec`, None for a source that is always on, which starts at `start`.
    pub fn new(spec: Option<ActiveSpec>, start: Time) -> Active {
        Active { start, spec }
    }

    /// The same periods of a source that starts at `start`.
    pub fn from(self, start: Time) -> Active {
        Active { start, ..self }
    }

    /// The time at which `active_ns` of active time have passed. The end of a period is the beginning of the next.
    #[inline]
    pub fn at(&self, active_ns: u64) -> Time {
        let Some(ActiveSpec { on_ns, off_ns, phase_ns }) = self.spec else { return self.start + Span(active_ns) };
        // u128: 2^64 ns of active time in periods of 1 ns on and an hour off pass u64.
        let since_period = u128::from(phase_ns.min(on_ns)) + u128::from(active_ns);
        let period_ns = u128::from(on_ns) + u128::from(off_ns);
        let past_ns = since_period / u128::from(on_ns) * period_ns + since_period % u128::from(on_ns);
        self.start + Span(u64::try_from(past_ns - u128::from(phase_ns)).unwrap_or(u64::MAX))
    }

    /// Active time that has passed at `now`, ns.
    pub fn until(&self, now: Time) -> u64 {
        let since_start = now.since(self.start).0;
        let Some(ActiveSpec { on_ns, off_ns, phase_ns }) = self.spec else { return since_start };
        let (past_ns, period_ns) = (u128::from(phase_ns) + u128::from(since_start), u128::from(on_ns + off_ns));
        let on_ns = u128::from(on_ns);
        let since_period = past_ns / period_ns * on_ns + (past_ns % period_ns).min(on_ns);
        // Never above `since_start`.
        (since_period - u128::from(phase_ns).min(on_ns)) as u64
    }

    /// The time at which `span` of active time has passed since `now`; that of the next period's beginning for none, if
    /// `now` is off.
    pub fn after(&self, now: Time, span: Span) -> Time {
        match self.spec {
            None => now + span,
            Some(_) => self.at(self.until(now).saturating_add(span.0)),
        }
    }

    /// Returns true if `spec` has periods.
    pub fn is_possible(spec: &ActiveSpec) -> bool {
        let period_ns = spec.on_ns.checked_add(spec.off_ns).filter(|&period_ns| period_ns < 1 << 63);
        spec.on_ns > 0 && spec.off_ns > 0 && period_ns.is_some_and(|period_ns| spec.phase_ns < period_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time(1000);

    fn active(on_ns: u64, off_ns: u64, phase_ns: u64) -> Active {
        Active::new(Some(ActiveSpec { on_ns, off_ns, phase_ns }), START)
    }

    #[test]
    fn active_time_is_the_number_of_ns_that_are_on() {
        for (on, off) in [(1, 1), (3, 2), (2, 5), (7, 1)] {
            for phase in 0..on + off {
                let active = active(on, off, phase);
                // The ns from t on is on if it lies in the first part of its period.
                let is_on = |t: u64| (t + phase) % (on + off) < on;
                let mut passed = 0;
                for t in 0..60 {
                    assert_eq!(active.until(START + Span(t)), passed, "{on} {off} {phase} at {t}");
                    if is_on(t) {
                        assert_eq!(active.at(passed), START + Span(t), "{on} {off} {phase}: {passed}");
                        assert_eq!(active.after(START + Span(t), Span(0)), START + Span(t));
                        passed += 1;
                    }
                }
            }
        }
    }

    #[test]
    fn a_source_without_periods_is_always_on() {
        let always = Active::new(None, START);
        assert_eq!(always.at(5), Time(1005));
        assert_eq!(always.until(Time(1005)), 5);
        assert_eq!(always.after(Time(1005), Span(7)), Time(1012));
    }

    #[test]
    fn far_times_are_the_last_ones() {
        assert_eq!(active(1, 1 << 62, 0).at(u64::MAX), START + Span(u64::MAX));
    }
}
