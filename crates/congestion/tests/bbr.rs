//! BBR against its paper and draft-cardwell-iccrg-bbr-congestion-control-00: gains, filters, states, worked numbers.

use crate::common::{near, parameters, MSS};
use congestion::{find, CaEvent, CaState, Controller, RateSample, INFINITE_SSTHRESH};

const STARTUP: u8 = 0;
const DRAIN: u8 = 1;
const PROBE_BW: u8 = 2;
const PROBE_RTT: u8 = 3;

/// A sender that gets one ACK per round trip, for all that was sent in it.
struct Flow {
    control: Controller,
    now_us: u64,
    /// Segments in flight after an ACK.
    in_flight: u32,
    sample: RateSample,
}

impl Flow {
    fn new(values: &[(&str, i64)], rtt_us: u32) -> Flow {
        let algorithm = find("bbr").expect("a built-in algorithm");
        let mut control = Controller::new(&algorithm, &parameters(values)).expect("parameters in range");
        let sock = control.sock_mut();
        sock.tcp_mstamp_us = 1_000_000;
        sock.delivered_mstamp_us = 1_000_000;
        sock.srtt_us = rtt_us * 8;
        sock.min_rtt_us = rtt_us;
        control.init();
        Flow { control, now_us: 1_000_000, in_flight: 0, sample: RateSample::default() }
    }

    /// Byte `offset` of the algorithm's state.
    fn byte(&self, offset: usize) -> u8 {
        self.control.sock().private[offset / 8].to_ne_bytes()[offset % 8]
    }

    fn mode(&self) -> u8 {
        self.byte(96)
    }

    fn phase(&self) -> u8 {
        self.byte(97)
    }

    /// The rate that the filter holds, segments per second.
    fn bandwidth(&self) -> f64 {
        let bytes: Vec<u8> = (20..24).map(|i| self.byte(i)).collect();
        f64::from(u32::from_ne_bytes(bytes.try_into().expect("four"))) / 16_777_216.0 * 1e6
    }

    fn cwnd(&self) -> u32 {
        self.control.sock().snd_cwnd
    }

    /// Pacing rate in segments per second, without the margin of 1 %.
    fn pace(&self) -> f64 {
        self.control.sock().pacing_rate as f64 / f64::from(MSS) / 0.99
    }

    /// `segments` acknowledged `us` after the last ACK, all of them in one round trip of `rtt_us`.
    fn round_after(&mut self, us: u64, segments: u32, rtt_us: u64) {
        self.now_us += us;
        let sock = self.control.sock_mut();
        let prior = sock.delivered;
        sock.tcp_mstamp_us = self.now_us;
        sock.delivered_mstamp_us = self.now_us;
        sock.delivered = prior.wrapping_add(segments);
        sock.lost = sock.lost.wrapping_add(self.sample.losses as u32);
        sock.packets_out = self.in_flight;
        let sample = RateSample {
            prior_delivered: prior,
            delivered: segments as i32,
            interval_us: rtt_us as i64,
            rtt_us: rtt_us as i64,
            acked_sacked: segments,
            prior_in_flight: self.in_flight,
            ..self.sample
        };
        self.control.cong_control(0, 0, &sample);
    }

    fn round(&mut self, segments: u32, rtt_us: u64) {
        self.round_after(rtt_us, segments, rtt_us);
    }

    /// Through startup and drain at `segments` per `rtt_us`; some way into probe_bw.
    fn settled(values: &[(&str, i64)], segments: u32, rtt_us: u32) -> Flow {
        let mut flow = Flow::new(values, rtt_us);
        flow.in_flight = segments;
        for _ in 0..40 {
            flow.round(segments, rtt_us.into());
        }
        assert_eq!(flow.mode(), PROBE_BW);
        flow
    }

    /// Rounds until the phase is `phase`.
    fn until_phase(&mut self, phase: u8, segments: u32, rtt_us: u64) {
        for _ in 0..16 {
            if self.phase() == phase {
                return;
            }
            self.in_flight = if self.phase() == 0 { segments * 3 } else { 0 };
            self.round_after(rtt_us + 1, segments, rtt_us);
        }
        panic!("phase {phase} does not come");
    }

    fn state(&mut self, state: CaState) {
        if state == CaState::Recovery {
            let cwnd = self.cwnd();
            self.control.sock_mut().prior_cwnd = cwnd;
            let before = self.control.sock().snd_ssthresh;
            assert_eq!(self.control.ssthresh(), before, "it is told, and keeps its threshold");
        }
        self.control.set_state(state);
    }
}

#[test]
fn it_starts_at_2_885_windows_per_rtt() {
    // 10 segments per 40 ms, 250/s; gain 739/256.
    let flow = Flow::new(&[], 40_000);
    near(flow.pace(), 250.0 * 739.0 / 256.0, 0.1);
    assert_eq!(flow.control.sock().pacing_status, 1);
    assert_eq!(flow.control.sock().snd_ssthresh, INFINITE_SSTHRESH);
    // Before an RTT is known: as if it were 1 ms.
    near(Flow::new(&[], 0).pace(), 10_000.0 * 739.0 / 256.0, 0.1);
    near(Flow::new(&[("startup_gain", 512)], 40_000).pace(), 500.0, 0.1);
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more() {
    let mut flow = Flow::new(&[], 100_000);
    flow.in_flight = 400;
    let mut segments = 10_u32;
    for _ in 0..5 {
        flow.round(segments, 100_000);
        segments = segments * 5 / 4 + 1;
        near(flow.pace(), flow.bandwidth() * 739.0 / 256.0, 0.1);
    }
    let top = segments;
    flow.round(top, 100_000);
    for _ in 0..2 {
        flow.round(top * 124 / 100, 100_000);
        assert_eq!(flow.mode(), STARTUP);
    }
    flow.round(top * 124 / 100, 100_000);
    assert_eq!(flow.mode(), DRAIN);
    // 1 / 2.885 of the rate; ssthresh says what the pipe holds: 37 segments and 3 bursts of 2, even.
    let (rate, product) = (flow.bandwidth(), f64::from(top * 124 / 100));
    near(flow.pace(), rate * 88.0 / 256.0, 0.2);
    let ssthresh = flow.control.sock().snd_ssthresh;
    assert!((product + 6.0..=product + 8.0).contains(&f64::from(ssthresh)), "{ssthresh} for {product}");
    // Until no more than that is in flight.
    flow.in_flight = ssthresh + 1;
    flow.round(top, 100_000);
    assert_eq!(flow.mode(), DRAIN);
    flow.in_flight = ssthresh;
    flow.round(top, 100_000);
    assert_eq!(flow.mode(), PROBE_BW);
    assert_ne!(flow.phase(), 1, "never begins with the slow phase");
}

#[test]
fn a_paused_application_neither_lowers_the_rate_nor_ends_startup() {
    let mut flow = Flow::new(&[], 100_000);
    for _ in 0..2 {
        flow.round(50, 100_000);
    }
    let before = flow.bandwidth();
    flow.sample.is_app_limited = 1;
    for _ in 0..30 {
        flow.round(5, 100_000);
    }
    assert_eq!((flow.mode(), flow.bandwidth()), (STARTUP, before));
    // More than was ever seen counts all the same.
    flow.round(60, 100_000);
    near(flow.bandwidth(), 600.0, 0.1);
}

#[test]
fn the_rate_is_the_greatest_of_ten_rounds() {
    let mut flow = Flow::settled(&[], 100, 100_000);
    flow.round(120, 100_000);
    for _ in 1..=10 {
        flow.round(80, 100_000);
        near(flow.bandwidth(), 1200.0, 0.1);
    }
    flow.round(80, 100_000);
    near(flow.bandwidth(), 800.0, 0.1);
    // Falling all the time: never older than ten rounds, never below what is there.
    for segments in (20..80_u32).rev() {
        flow.round(segments, 100_000);
        let seen = flow.bandwidth() / 10.0;
        assert!(seen >= f64::from(segments) - 0.1 && seen <= f64::from(segments + 11), "{seen} at {segments}");
    }
    // And another length.
    let mut short = Flow::settled(&[("bw_window", 3)], 100, 100_000);
    for _ in 0..3 {
        short.round(50, 100_000);
        near(short.bandwidth(), 1000.0, 0.1);
    }
    short.round(50, 100_000);
    near(short.bandwidth(), 500.0, 0.1);
}

#[test]
fn the_cycle_is_five_quarters_three_quarters_and_six_times_one() {
    let (segments, rtt) = (100, 50_000);
    let mut flow = Flow::settled(&[], segments, rtt as u32);
    flow.until_phase(0, segments, rtt);
    near(flow.pace(), 2500.0, 0.1);
    // The fast phase lasts until as much is in flight: 125 segments, 3 bursts, 2 more; not before an RTT.
    flow.in_flight = 130;
    flow.round_after(rtt + 1, segments, rtt);
    assert_eq!(flow.phase(), 0, "a burst of 2 is added to what is in flight: 132 of 134");
    flow.in_flight = 132;
    flow.round_after(1, segments, rtt);
    assert_eq!(flow.phase(), 1);
    near(flow.pace(), 1500.0, 0.1);
    // The slow one ends early when no more than the product is in flight: 106.
    flow.in_flight = 107;
    flow.round_after(10, 1, rtt);
    assert_eq!(flow.phase(), 1);
    flow.in_flight = 106;
    flow.round_after(10, 1, rtt);
    for phase in 2..8 {
        assert_eq!(flow.phase(), phase);
        near(flow.pace(), 2000.0, 0.1);
        flow.round_after(rtt, segments, rtt);
        assert_eq!(flow.phase(), phase, "longer than an RTT");
        flow.round_after(1, 0, rtt);
    }
    assert_eq!(flow.phase(), 0);
    // A loss ends the fast phase.
    flow.in_flight = 100;
    flow.sample.losses = 1;
    flow.round_after(rtt + 1, segments, rtt);
    assert_eq!(flow.phase(), 1);
}

#[test]
fn the_window_is_two_products_and_three_bursts() {
    // 100 segments of product: 200 + 3 x 2, and 2 more in the fast phase.
    let (segments, rtt) = (100, 50_000);
    let mut flow = Flow::settled(&[("aggregation", 0)], segments, rtt as u32);
    flow.until_phase(3, segments, rtt);
    flow.round_after(1, 300, 400_000);
    assert_eq!(flow.cwnd(), 206);
    let mut three = Flow::settled(&[("aggregation", 0), ("cwnd_gain", 768)], segments, rtt as u32);
    three.until_phase(3, segments, rtt);
    three.round_after(1, 300, 400_000);
    assert_eq!(three.cwnd(), 306);
}

#[test]
fn aggregated_acks_widen_the_window() {
    // 2000/s, but the ACKs of 100 ms come at once, after 100 ms of silence: 200 ahead of the rate, at most.
    let window = |values: &[(&str, i64)], gap_us: u64, burst: u32| {
        let mut flow = Flow::settled(values, 100, 50_000);
        for _ in 0..30 {
            flow.in_flight = 0;
            flow.round_after(gap_us, burst, gap_us);
        }
        flow.until_phase(3, burst, gap_us);
        flow.round_after(1, 2000, 1_000_000);
        flow.cwnd()
    };
    let plain = window(&[("aggregation", 0)], 100_000, 200);
    let with = window(&[], 100_000, 200);
    assert!((206..=208).contains(&plain), "{plain}");
    // The excess is bounded by 100 ms of the rate: 200 segments.
    assert!((398..=408).contains(&with), "{with}");
}

#[test]
fn the_rtt_is_measured_anew_every_ten_seconds() {
    let (segments, rtt) = (100, 100_000);
    let mut flow = Flow::settled(&[], segments, rtt as u32);
    let mut waited = 0;
    // 101 ms all the time: the 100 ms of the handshake, 40 rounds ago, grow old.
    while flow.mode() != PROBE_RTT {
        flow.in_flight = segments;
        flow.round(segments, rtt + 1_000);
        waited += 1;
        assert!(waited < 200);
    }
    near(f64::from(waited), (10.0 - 4.0) / 0.101, 2.0);
    let saved = flow.cwnd();
    assert_eq!(saved, 4, "the window is cut with the same ACK");
    // Still 100 in flight: the 200 ms begin when it is 4.
    for _ in 0..5 {
        flow.round(segments, rtt + 1_000);
        assert_eq!((flow.mode(), flow.cwnd()), (PROBE_RTT, 4));
        assert_eq!(flow.control.sock().app_limited, flow.control.sock().delivered + segments);
    }
    flow.in_flight = 4;
    flow.sample.is_app_limited = 1;
    flow.round(4, rtt - 10_000);
    flow.round(4, rtt - 10_000);
    flow.round(4, rtt - 10_000);
    assert_eq!(flow.mode(), PROBE_RTT, "180 ms");
    flow.round(4, rtt - 10_000);
    assert_eq!(flow.mode(), PROBE_BW, "270 ms and a round trip");
    assert!(flow.cwnd() > 150, "the window is back: {}", flow.cwnd());

    let mut never = Flow::settled(&[("probe_rtt_time", 0)], segments, rtt as u32);
    for _ in 0..300 {
        never.round(segments, rtt + 1_000);
        assert_eq!(never.mode(), PROBE_BW);
    }
}

#[test]
fn recovery_keeps_to_what_arrives_for_a_round_and_gives_the_window_back() {
    let (segments, rtt) = (100, 50_000);
    let mut flow = Flow::settled(&[], segments, rtt as u32);
    let before = flow.cwnd();
    flow.state(CaState::Recovery);
    flow.in_flight = 150;
    flow.sample.losses = 3;
    // The first ACK of recovery, in the middle of a round trip.
    flow.round_after(1_000, 2, rtt);
    assert_eq!(flow.cwnd(), 152);
    flow.sample.losses = 0;
    // A round trip later it grows again.
    flow.round(10, rtt);
    assert!(flow.cwnd() > 152);
    flow.state(CaState::Open);
    flow.round(1, rtt);
    assert!(flow.cwnd() >= before.min(200), "{} of {before}", flow.cwnd());
}

/// Rounds with `lost` of `segments` lost in each; returns whether a policer was found within 40.
fn policed(values: &[(&str, i64)], segments: u32, lost: u32) -> Option<Flow> {
    let mut flow = Flow::settled(values, 300, 50_000);
    flow.sample.losses = lost as i32;
    for _ in 0..40 {
        flow.in_flight = segments;
        flow.round(segments, 50_000);
        if flow.byte(99) & 0x20 != 0 {
            return Some(flow);
        }
    }
    None
}

#[test]
fn a_policer_is_one_fifth_lost_twice_at_one_rate() {
    // 50/256: 19.5 % of what was delivered.
    assert!(policed(&[], 100, 19).is_none());
    assert!(policed(&[("policer", 0)], 100, 30).is_none());
    let mut flow = policed(&[], 100, 20).expect("a fifth is enough");
    // 100 segments per 50 ms, although 300 had been seen; no probing, for 48 round trips.
    flow.sample.losses = 0;
    for _ in 0..46 {
        flow.round(100, 50_000);
        assert_ne!(flow.byte(99) & 0x20, 0);
        near(flow.pace(), 2000.0, 1.0);
    }
    flow.round(100, 50_000);
    flow.round(100, 50_000);
    assert_eq!(flow.byte(99) & 0x20, 0, "the path may have changed");
    // The reordering that was seen is forgotten.
    let mut undone = policed(&[], 100, 25).expect("a policer");
    let cwnd = undone.cwnd();
    assert_eq!(undone.control.undo_cwnd(), cwnd);
    assert_eq!(undone.byte(99) & 0x20, 0);
}

#[test]
fn after_idleness_it_goes_on_at_its_rate() {
    let (segments, rtt) = (100, 50_000);
    let mut flow = Flow::settled(&[], segments, rtt as u32);
    flow.until_phase(0, segments, rtt);
    near(flow.pace(), 2500.0, 0.1);
    // Not limited by the application: the fast phase goes on.
    flow.control.cwnd_event(CaEvent::TxStart);
    near(flow.pace(), 2500.0, 0.1);
    flow.control.sock_mut().app_limited = 1;
    flow.control.cwnd_event(CaEvent::TxStart);
    near(flow.pace(), 2000.0, 0.1);
    // An RTT grown old while idle is not a reason to stop: the first ACK brings a fresh one.
    flow.now_us += 30_000_000;
    flow.round(10, rtt + 5_000);
    assert_eq!(flow.mode(), PROBE_BW);
}

#[test]
fn a_time_out_keeps_the_model() {
    let (segments, rtt) = (100, 50_000);
    let mut flow = Flow::settled(&[], segments, rtt as u32);
    let (rate, before) = (flow.bandwidth(), flow.cwnd());
    flow.control.sock_mut().prior_cwnd = before;
    flow.control.ssthresh();
    flow.control.sock_mut().snd_cwnd = 1;
    flow.control.set_state(CaState::Loss);
    flow.in_flight = 0;
    flow.round(2, rtt);
    assert_eq!((flow.bandwidth(), flow.cwnd()), (rate, 4));
    flow.state(CaState::Open);
    flow.round(2, rtt);
    assert!(flow.cwnd() >= before.min(200), "{} of {before}", flow.cwnd());
}

#[test]
fn the_widest_path_does_not_overflow() {
    // 400 Gbit/s x 1 s: 34 segments per us, 34 million in flight.
    let mut flow = Flow::settled(&[("aggregation", 0), ("min_rtt_window", 600_000)], 34_000_000, 1_000_000);
    near(flow.bandwidth(), 34e6, 0.01);
    flow.until_phase(3, 34_000_000, 1_000_000);
    near(flow.pace(), 34e6, 0.01);
    flow.round_after(1, 40_000_000, 2_000_000);
    near(f64::from(flow.cwnd()), 68e6, 0.01);
    flow.until_phase(0, 34_000_000, 1_000_000);
    near(flow.pace(), 42.5e6, 0.01);
}

#[test]
fn flows_begin_the_cycle_at_different_phases() {
    let mut seen = [0; 8];
    for shift in 0..400 {
        let mut flow = Flow::new(&[], 40_000);
        flow.now_us += 37 * shift;
        flow.in_flight = 10;
        while flow.mode() != PROBE_BW {
            flow.round(100, 40_000);
        }
        seen[flow.phase() as usize] += 1;
    }
    assert_eq!(seen[1], 0);
    // 57 each on average; a standard deviation of 7.
    assert!(seen.iter().enumerate().all(|(phase, &n)| phase == 1 || (30..90).contains(&n)), "{seen:?}");
}
