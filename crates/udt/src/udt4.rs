//! Rate control of UDT4: class CUDTCC of libudt 4.11, which draft-gg-udt-03, 6.1 describes.

use crate::config::{Config, SYN};
use crate::period::{increase, period_of, rate_of, shortened, Feedback, FIRST_PERIOD_PS, NANO, PS_PER_US};
use link::random::Random;
use units::Time;

/// First window, and what the window has beyond the packets of a round trip (libudt: 16).
const SPARE_PACKETS: u64 = 16;
/// Least increase, billionths of a packet per SYN: 0.01 packets (libudt since January 2012; the draft has 1/MSS).
const LEAST_INCREASE: u128 = NANO / 100;
/// Decreases in one episode of losses, at most (libudt and draft-gg-udt-03, 6.1: 5).
const DECREASES: u64 = 5;

#[derive(Clone, Debug)]
pub(crate) struct Udt4 {
    mtu: u32,
    max_window: u64,
    random: Random,
    window: u64,
    period_ps: u64,
    slow_start: bool,
    /// Packet expected at the last acknowledgment that changed the window of slow start.
    last_expected: u64,
    last_control_us: u64,
    receive_rate: u64,
    rtt_us: u64,
    /// Losses were reported since the last acknowledgment.
    loss: bool,
    /// The largest number sent when the rate was lowered last.
    decreased_at: u64,
    /// The period before the first decrease of the episode.
    period_before_ps: u64,
    /// Loss reports in the episode; their average over episodes; of how many one lowers the rate.
    reports: u64,
    average_reports: u64,
    one_of: u64,
    decreases: u64,
}

impl Udt4 {
    pub(crate) fn new(config: &Config, now: Time) -> Udt4 {
        Udt4 {
            mtu: config.mtu,
            max_window: u64::from(config.window_packets),
            random: Random::new(config.seed),
            window: SPARE_PACKETS,
            period_ps: FIRST_PERIOD_PS,
            slow_start: true,
            last_expected: 0,
            last_control_us: now.0 / 1_000,
            receive_rate: 0,
            rtt_us: 0,
            loss: false,
            decreased_at: 0,
            period_before_ps: FIRST_PERIOD_PS,
            reports: 0,
            average_reports: 0,
            one_of: 1,
            decreases: 0,
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

    pub(crate) fn handle_ack(&mut self, now: Time, feedback: &Feedback) {
        (self.receive_rate, self.rtt_us) = (feedback.receive_rate, feedback.rtt_us);
        let now_us = now.0 / 1_000;
        if now_us - self.last_control_us < SYN.as_micros() {
            return;
        }
        self.last_control_us = now_us;
        if self.slow_start {
            self.window += feedback.expected - self.last_expected + 1;
            self.last_expected = feedback.expected;
            if self.window <= self.max_window {
                return;
            }
            self.end_slow_start();
        } else {
            let in_round_trip = u128::from(self.receive_rate) * u128::from(self.rtt_us + SYN.as_micros()) / 1_000_000;
            self.window = u64::try_from(in_round_trip).unwrap_or(u64::MAX).saturating_add(SPARE_PACKETS);
        }
        if std::mem::take(&mut self.loss) {
            return;
        }
        let mut spare = feedback.capacity.saturating_sub(rate_of(self.period_ps));
        if self.period_ps > self.period_before_ps {
            // Below the rate at which losses began: a ninth of the capacity, the part that a decrease gives up.
            spare = spare.min(feedback.capacity / 9);
        }
        self.period_ps = shortened(self.period_ps, increase(spare, self.mtu, LEAST_INCREASE));
    }

    fn end_slow_start(&mut self) {
        self.slow_start = false;
        if self.receive_rate > 0 {
            self.period_ps = period_of(self.receive_rate);
        } else {
            // No speed is known yet: the window in a round trip and a SYN.
            let packets = self.window * 1_000_000 / (self.rtt_us + SYN.as_micros());
            self.period_ps = period_of(packets);
        }
    }

    pub(crate) fn handle_loss(&mut self, first: u64, current: u64) -> bool {
        if self.slow_start {
            let knows_speed = self.receive_rate > 0;
            self.end_slow_start();
            if knows_speed {
                return true;
            }
        }
        self.loss = true;
        if first > self.decreased_at {
            self.period_before_ps = self.period_ps;
            self.decrease();
            self.average_reports = (7 * self.average_reports + self.reports).div_ceil(8);
            (self.reports, self.decreases) = (1, 1);
            self.decreased_at = current;
            // Flows that lose packets together are not to lower their rates together.
            self.one_of = 1 + self.random.below(self.average_reports);
            return true;
        }
        self.decreases += 1;
        if self.decreases <= DECREASES {
            self.reports += 1;
            if self.reports.is_multiple_of(self.one_of) {
                self.decrease();
                self.decreased_at = current;
            }
        }
        false
    }

    /// Lowers the rate by a ninth. The library rounds the period up to whole microseconds: at 2 us that is a third.
    fn decrease(&mut self) {
        let longer = u128::from(self.period_ps) * 9 / 8;
        let us = longer.div_ceil(u128::from(PS_PER_US));
        self.period_ps = u64::try_from(us * u128::from(PS_PER_US)).unwrap_or(u64::MAX);
    }

    pub(crate) fn handle_timeout(&mut self) {
        if self.slow_start {
            self.end_slow_start();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Version;

    fn control() -> Udt4 {
        let config = Config { version: Version::Udt4, mtu: 1500, window_packets: 1000, send_buffer: None, seed: 1 };
        Udt4::new(&config, Time::ZERO)
    }

    fn feedback(expected: u64) -> Feedback {
        Feedback { expected, rtt_us: 40_000, receive_rate: 10_000, latest_rate: 10_000, capacity: 80_000 }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + units::Span::from_millis(ms)
    }

    #[test]
    fn slow_start_ends_at_the_largest_window_with_the_speed_of_arrival() {
        let mut control = control();
        control.handle_ack(at(10), &feedback(500));
        assert!(control.is_in_slow_start() && control.window() == 517 && control.period_ps() == FIRST_PERIOD_PS);
        control.handle_ack(at(20), &feedback(1001));
        // The first increase follows at once: a tenth of a Gbit/s and more is spare, so one packet per SYN.
        assert!(!control.is_in_slow_start());
        assert_eq!(rate_of(control.period_ps()), 10_100);
        control.handle_ack(at(30), &feedback(1002));
        assert_eq!(control.window(), 516, "10,000 packets/s x 50 ms, and 16");
    }

    #[test]
    fn acknowledgments_within_a_syn_change_nothing() {
        let mut control = control();
        control.handle_ack(at(10), &feedback(100));
        control.handle_ack(at(19), &feedback(200));
        assert_eq!(control.window(), 117);
    }

    #[test]
    fn a_new_episode_lowers_the_rate_by_a_ninth_and_the_next_acknowledgment_does_not_raise_it() {
        let mut control = control();
        control.handle_ack(at(10), &feedback(10));
        assert!(control.handle_loss(5, 20), "the first loss ends slow start");
        assert_eq!(control.period_ps(), 100 * PS_PER_US);
        assert!(control.handle_loss(15, 40));
        assert_eq!(control.period_ps(), 113 * PS_PER_US, "112.5 us, rounded up as the library does");
        control.handle_ack(at(20), &feedback(30));
        assert_eq!(control.period_ps(), 113 * PS_PER_US);
        control.handle_ack(at(30), &feedback(40));
        // Below the rate of the last decrease: a ninth of 80,000 packets/s is spare, 107 Mbit/s, one packet per SYN.
        assert_eq!(rate_of(control.period_ps()), 1_000_000 / 113 + 100);
    }

    #[test]
    fn an_episode_has_five_decreases_at_most() {
        let mut control = control();
        control.handle_ack(at(10), &feedback(10));
        control.handle_loss(1, 10);
        control.handle_loss(11, 1_000_000);
        for number in 12..1000 {
            assert!(!control.handle_loss(number, 1_000_000), "all were sent before the decrease");
        }
        let lowest = 100.0 * 1.125f64.powi(5);
        assert!((control.period_ps() / PS_PER_US).abs_diff(lowest as u64) <= 5, "{}", control.period_ps());
    }

    #[test]
    fn the_rate_grows_by_a_hundredth_of_a_packet_where_nothing_is_spare() {
        let mut control = control();
        control.handle_ack(at(10), &feedback(10));
        control.handle_loss(1, 10);
        let full = Feedback { capacity: 100, ..feedback(11) };
        control.handle_ack(at(20), &full);
        assert_eq!(rate_of(control.period_ps()), 10_001);
    }
}
