//! Smoothed RTT, its variation, the RTO, and the windowed minimum.

use crate::consts::{MIN_RTT_WINDOW_US, NS_PER_US};
use units::Span;

/// RFC 6298 as Linux has it: the variation decays once per window, never below `rto_min`, so that
/// RTO = srtt + max(rttvar, rto_min) where the RFC takes max(srtt + 4 rttvar, 1 s).
#[derive(Clone, Debug)]
pub struct RttEstimator {
    /// Smoothed RTT, us times 8; 0 before the first sample.
    srtt_us8: u32,
    /// Mean deviation, us times 4.
    mdev_us: u32,
    /// Largest mean deviation in this window, us times 4.
    mdev_max_us: u32,
    /// Term that the RTO adds to srtt, us.
    rttvar_us: u32,
    /// Byte whose acknowledgment ends the window.
    rtt_seq: u64,
    rto_min_us: u32,
    rto_max_ns: u64,
    /// Current RTO without backoff, ns.
    rto_ns: u64,
    min: [MinSample; 3],
    /// The second and the third are the first, whatever is in their places: a steady RTT writes one, not three.
    min_alone: bool,
    /// Otherwise: until then a sample greater than all three changes none of them.
    quiet_until_us: u64,
}

/// Candidate of the windowed minimum.
#[derive(Clone, Copy, Debug, Default)]
struct MinSample {
    at_us: u64,
    value: u32,
}

impl RttEstimator {
    /// Before the first sample.
    pub fn new(initial: Span, rto_min: Span, rto_max: Span) -> RttEstimator {
        RttEstimator {
            srtt_us8: 0,
            mdev_us: 0,
            mdev_max_us: 0,
            rttvar_us: 0,
            rtt_seq: 0,
            rto_min_us: u32::try_from(rto_min.as_micros()).unwrap_or(u32::MAX),
            rto_max_ns: rto_max.0,
            rto_ns: initial.0.min(rto_max.0),
            min: [MinSample { at_us: 0, value: u32::MAX }; 3],
            min_alone: true,
            quiet_until_us: 0,
        }
    }

    /// Smoothed RTT, us times 8; 0 before the first sample.
    #[inline]
    pub fn srtt_us8(&self) -> u32 {
        self.srtt_us8
    }

    /// RTO without backoff, ns.
    #[inline]
    pub fn rto_ns(&self) -> u64 {
        self.rto_ns
    }

    /// Windowed minimum, us; `u32::MAX` before the first sample.
    #[inline]
    pub fn min_us(&self) -> u32 {
        self.min[0].value
    }

    /// A sample of `us`; `una` and `nxt` tell when a window has passed. Range of a sample: 0 ..= 536 s.
    #[inline]
    pub fn sample(&mut self, us: u64, una: u64, nxt: u64) {
        let m = us.min(u64::from(u32::MAX >> 3)) as u32;
        let old = self.srtt_us8;
        if old != 0 {
            // At least 1, as before, and at most the largest sample times 8.
            self.srtt_us8 = old - (old >> 3) + m;
            // All below 2^30.
            let delta = m as i32 - (old >> 3) as i32;
            let mut change = delta.abs() - (self.mdev_us >> 2) as i32;
            if delta < 0 && change > 0 {
                // A falling RTT is no reason to wait longer: it moves the variation by an eighth only.
                change >>= 3;
            }
            self.mdev_us = self.mdev_us.wrapping_add_signed(change);
            if self.mdev_us > self.mdev_max_us {
                self.mdev_max_us = self.mdev_us;
                self.rttvar_us = self.rttvar_us.max(self.mdev_max_us);
            }
            if una > self.rtt_seq {
                if self.mdev_max_us < self.rttvar_us {
                    self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) >> 2;
                }
                self.rtt_seq = nxt;
                self.mdev_max_us = self.rto_min_us;
            }
        } else {
            self.srtt_us8 = (m << 3).max(1);
            self.mdev_us = m << 1;
            self.rttvar_us = self.mdev_us.max(self.rto_min_us);
            self.mdev_max_us = self.rttvar_us;
            self.rtt_seq = nxt;
        }
        let rto_us = u64::from(self.srtt_us8 >> 3) + u64::from(self.rttvar_us);
        self.rto_ns = (rto_us * NS_PER_US).min(self.rto_max_ns);
    }

    /// Minimum over the last five minutes: best, second and third best of ever younger thirds (Nichols' filter, as
    /// Linux lib/win_minmax.c uses it).
    #[inline]
    pub fn sample_min(&mut self, now_us: u64, us: u64) {
        let value = us.clamp(1, u64::from(u32::MAX - 1)) as u32;
        let new = MinSample { at_us: now_us, value };
        if value <= self.min[0].value {
            self.min[0] = new;
            self.min_alone = true;
            return;
        }
        let quiet = if self.min_alone {
            now_us <= self.min[0].at_us + MIN_RTT_WINDOW_US / 4
        } else {
            value > self.min[2].value && now_us <= self.quiet_until_us
        };
        if !quiet {
            self.renew_min(new);
        }
    }

    #[inline(never)]
    fn renew_min(&mut self, new: MinSample) {
        let now_us = new.at_us;
        if self.min_alone {
            self.min = [self.min[0]; 3];
            self.min_alone = false;
        }
        if now_us - self.min[2].at_us > MIN_RTT_WINDOW_US {
            self.min[0] = new;
            self.min_alone = true;
            return;
        }
        if new.value <= self.min[1].value {
            self.min[1] = new;
            self.min[2] = new;
        } else if new.value <= self.min[2].value {
            self.min[2] = new;
        }
        let age = now_us - self.min[0].at_us;
        if age > MIN_RTT_WINDOW_US {
            self.min = [self.min[1], self.min[2], new];
            if now_us - self.min[0].at_us > MIN_RTT_WINDOW_US {
                self.min = [self.min[1], self.min[2], new];
            }
        } else if self.min[1].at_us == self.min[0].at_us && age > MIN_RTT_WINDOW_US / 4 {
            self.min[1] = new;
            self.min[2] = new;
        } else if self.min[2].at_us == self.min[1].at_us && age > MIN_RTT_WINDOW_US / 2 {
            self.min[2] = new;
        }
        let [first, second, third] = self.min.map(|sample| sample.at_us);
        let age = match (second == first, third == second) {
            (true, _) => MIN_RTT_WINDOW_US / 4,
            (false, true) => MIN_RTT_WINDOW_US / 2,
            (false, false) => MIN_RTT_WINDOW_US,
        };
        self.quiet_until_us = first + age;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RttEstimator {
        RttEstimator::new(Span::from_secs(1), Span::from_millis(200), Span::from_secs(120))
    }

    #[test]
    fn a_steady_rtt_gives_srtt_plus_200_ms() {
        let mut rtt = estimator();
        assert_eq!(rtt.rto_ns(), 1_000_000_000);
        for i in 0..1_000 {
            rtt.sample(50_000, i * 10, i * 10 + 100);
        }
        assert_eq!(rtt.srtt_us8() >> 3, 50_000);
        assert_eq!(rtt.rto_ns(), 250_000_000);
    }

    #[test]
    fn the_first_sample_gives_three_times_the_rtt() {
        let mut rtt = estimator();
        rtt.sample(400_000, 1, 1);
        assert_eq!(rtt.rto_ns(), 400_000_000 + 800_000_000);
    }

    #[test]
    fn the_minimum_forgets_after_five_minutes() {
        let mut rtt = estimator();
        rtt.sample_min(0, 10_000);
        for second in 1..=290u64 {
            rtt.sample_min(second * 1_000_000, 20_000 + second);
        }
        assert_eq!(rtt.min_us(), 10_000);
        for second in 291..=400u64 {
            rtt.sample_min(second * 1_000_000, 20_000 + second);
        }
        assert!(rtt.min_us() >= 20_000, "{}", rtt.min_us());
    }
}
