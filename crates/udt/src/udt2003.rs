//! Rate control of the UDT of 2003, as its first releases and the paper of its time have it (Gu and Grossman,
//! "End-to-End Congestion Control for High Performance Data Transfer", 2003; draft-gg-udt-01).
//!
//! Its warning of growing delay is left out: a receiver sent one at most every other round trip.

use crate::config::{Config, SYN};
use crate::period::{increase, period_of, rate_of, shortened, Feedback, FIRST_PERIOD_PS, NANO, PS_PER_US};

/// Window of the first packets.
const FIRST_WINDOW: u64 = 2;
/// A first loss report and this many doublings more of them lower the rate again in one episode (2^4).
const FIRST_DOUBLINGS: u32 = 4;
/// SYNs without an increase after one in which as many packets were reported lost as were sent: its average of the loss
/// rate, with weight 1/8 for the past, stays above the limit of 1 % for so long.
const SYNS_WITHOUT_INCREASE: u8 = 3;

#[derive(Clone, Debug)]
pub(crate) struct Udt2003 {
    mtu: u32,
    max_window: u64,
    window: u64,
    period_ps: u64,
    slow_start: bool,
    latest_rate: u64,
    capacity: u64,
    /// The largest number sent when the rate was lowered last.
    decreased_at: u64,
    reports: u64,
    doublings: u32,
    pause: bool,
    without_increase: u8,
}

impl Udt2003 {
    pub(crate) fn new(config: &Config) -> Udt2003 {
        Udt2003 {
            mtu: config.mtu,
            max_window: u64::from(config.window_packets),
            window: FIRST_WINDOW,
            period_ps: FIRST_PERIOD_PS,
            slow_start: true,
            latest_rate: 0,
            capacity: 0,
            decreased_at: 0,
            reports: 0,
            doublings: FIRST_DOUBLINGS,
            pause: false,
            without_increase: 0,
        }
    }

    #[inline]
    pub(crate) fn period_ps(&self) -> u64 {
        self.period_ps
    }

    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    pub(crate) fn is_in_slow_start(&self) -> bool {
        self.slow_start
    }

    pub(crate) fn take_pause(&mut self) -> bool {
        std::mem::take(&mut self.pause)
    }

    /// Flow control: W = W a + AS (RTT + SYN) (1 - a), a = 0.875, rounded up.
    pub(crate) fn handle_ack(&mut self, feedback: &Feedback) {
        self.capacity = feedback.capacity;
        if feedback.latest_rate > 0 {
            self.latest_rate = feedback.latest_rate;
        }
        if self.slow_start {
            // All that were acknowledged so far: the window doubles.
            self.window = self.window.max(feedback.expected - 1);
        } else if feedback.latest_rate > 0 {
            let in_round_trip = u128::from(feedback.latest_rate) * u128::from(feedback.rtt_us + SYN.as_micros());
            let window = (7_000_000 * u128::from(self.window) + in_round_trip).div_ceil(8_000_000);
            self.window = u64::try_from(window).unwrap_or(u64::MAX);
        }
        if self.window > self.max_window {
            self.window = self.max_window;
            self.end_slow_start();
        }
        // A packet per round trip is the least.
        self.period_ps = self.period_ps.min(feedback.rtt_us.max(1).saturating_mul(PS_PER_US));
    }

    /// Packets go out evenly from here on, at the speed that slow start has found (the paper).
    fn end_slow_start(&mut self) {
        if std::mem::take(&mut self.slow_start) && self.latest_rate > 0 {
            self.period_ps = period_of(self.latest_rate);
        }
    }

    pub(crate) fn handle_loss(&mut self, first: u64, current: u64) -> bool {
        self.end_slow_start();
        if first > self.decreased_at {
            self.decrease();
            self.decreased_at = current;
            self.pause = true;
            (self.reports, self.doublings) = (1, FIRST_DOUBLINGS);
            return true;
        }
        self.reports += 1;
        if self.reports >= 1 << self.doublings {
            self.doublings += 1;
            self.decrease();
        }
        false
    }

    fn decrease(&mut self) {
        self.period_ps = u64::try_from(u128::from(self.period_ps) * 9 / 8).unwrap_or(u64::MAX);
    }

    /// Rate control at the end of a SYN, in which `sent` packets were sent and `lost` reported lost.
    pub(crate) fn handle_syn(&mut self, sent: u64, lost: u64) {
        if lost >= sent.max(1) {
            self.without_increase = SYNS_WITHOUT_INCREASE;
        }
        if self.without_increase > 0 {
            self.without_increase -= 1;
            return;
        }
        if self.slow_start {
            return;
        }
        let spare = self.capacity.saturating_sub(rate_of(self.period_ps));
        let least = NANO / u128::from(self.mtu);
        self.period_ps = shortened(self.period_ps, increase(spare, self.mtu, least)).max(PS_PER_US);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Version;

    fn control(window_packets: u32) -> Udt2003 {
        let config = Config { version: Version::Udt2003, mtu: 1500, window_packets, send_buffer: None, seed: 1 };
        Udt2003::new(&config)
    }

    fn feedback(expected: u64, latest_rate: u64) -> Feedback {
        Feedback { expected, rtt_us: 40_000, receive_rate: 0, latest_rate, capacity: 80_000 }
    }

    #[test]
    fn slow_start_allows_all_that_was_acknowledged_and_then_sets_the_rate() {
        let mut control = control(1000);
        control.handle_ack(&feedback(3, 0));
        assert_eq!(control.window(), 2);
        control.handle_ack(&feedback(501, 10_000));
        assert_eq!(control.window(), 500);
        control.handle_ack(&feedback(1200, 20_000));
        assert!(!control.is_in_slow_start());
        assert_eq!((control.window(), control.period_ps()), (1000, 50 * PS_PER_US));
    }

    #[test]
    fn the_flow_window_is_the_papers_formula() {
        let mut control = control(100_000);
        control.handle_ack(&feedback(1001, 20_000));
        control.handle_loss(900, 1000);
        control.handle_ack(&feedback(1002, 20_000));
        // 0.875 x 1000 + 0.125 x 20,000 x 0.05
        assert_eq!(control.window(), 1000);
        control.handle_ack(&feedback(1003, 40_000));
        assert_eq!(control.window(), 1125);
        control.handle_ack(&feedback(1004, 40_001));
        assert_eq!(control.window(), 1235, "1234.38, rounded up");
    }

    #[test]
    fn losses_of_one_episode_lower_the_rate_at_the_first_and_the_sixteenth_report() {
        let mut control = control(100_000);
        control.handle_ack(&feedback(1001, 10_000));
        assert!(control.handle_loss(900, 5000) && control.take_pause() && !control.take_pause());
        let once = control.period_ps();
        assert_eq!(once, 112_500_000);
        (0..14).for_each(|_| assert!(!control.handle_loss(1000, 5000)));
        assert_eq!(control.period_ps(), once);
        control.handle_loss(1000, 5000);
        assert_eq!(control.period_ps(), once * 9 / 8);
        assert!(control.handle_loss(5001, 6000) && control.take_pause(), "a new episode");
    }

    #[test]
    fn a_syn_in_which_all_was_lost_withholds_three_increases() {
        let mut control = control(100_000);
        control.handle_ack(&feedback(1001, 10_000));
        control.handle_loss(900, 1000);
        let period = control.period_ps();
        control.handle_syn(10, 10);
        control.handle_syn(10, 0);
        control.handle_syn(10, 0);
        assert_eq!(control.period_ps(), period);
        control.handle_syn(10, 1);
        assert!(control.period_ps() < period);
    }
}
