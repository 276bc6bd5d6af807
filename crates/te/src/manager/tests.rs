use super::*;
use crate::policy::Thresholds;
use crate::view::Paths;
use crate::Mitigation;
use crate::{Limit, Pacing};
use proptest::prelude::*;

mod pacing;

const MBIT: u64 = 1_000_000;

fn policy() -> Policy {
    Policy {
        interval: Span::from_secs(1),
        one_in: 1,
        flow_table_size: 64,
        inactive_timeout: Span::from_secs(3),
        thresholds: Thresholds {
            rate: Rate(100 * MBIT),
            volume: Size(20_000_000),
            confidence_sigmas_e3: 0,
            return_rate: Rate(50 * MBIT),
        },
        min_dwell_time: Span::from_secs(10),
        lightpath_timeout: Span::from_secs(5),
        lightpaths_max: 1,
        max_utilization_ppm: 1_000_000,
        offload_weight_ppm: 100_000,
        congestion_threshold_ppm: 900_000,
        refuse: true,
        observation_window: Span::from_secs(5),
        cc_beta_ppm: 700_000,
        pareto_shape_e3: 2000,
    }
}

/// A network with one IP path and lightpaths beside it.
struct Net {
    ingress: Option<LinkView>,
    egress: LinkView,
    core: LinkView,
    ip_delay: Span,
    alarm: bool,
    priorities: BTreeMap<FlowKey, i32>,
    allowed: AllowedMitigations,
}

impl Net {
    fn idle() -> Net {
        let line = |capacity| LinkView {
            capacity: Rate(capacity),
            load: Rate(0),
            queue: Size(0),
            queue_limit: Size(750_000),
            dropped: 0,
        };
        Net {
            ingress: None,
            egress: line(10_000 * MBIT),
            core: line(2_000 * MBIT),
            ip_delay: Span::from_millis(5),
            alarm: false,
            priorities: BTreeMap::new(),
            allowed: AllowedMitigations::default(),
        }
    }
}

impl View for Net {
    fn priority(&self, flow: FlowKey) -> i32 {
        self.priorities.get(&flow).copied().unwrap_or(0)
    }

    fn paths(&self, _flow: FlowKey, _lightpath: usize) -> Option<Paths> {
        Some(Paths {
            ip_delay: self.ip_delay,
            lightpath_delay: Span::from_millis(1),
            return_delay: Span::from_millis(5),
            ingress: self.ingress,
            core: self.core,
            egress: Some(self.egress),
            packet: Size(1500),
            allowed: self.allowed,
        })
    }

    fn available(&self, _lightpath: usize) -> bool {
        !self.alarm
    }

    fn bypassed(&self, _lightpath: usize) -> LinkView {
        self.core
    }
}

/// A router that holds for `hold_ms` before a line of 1 Gbit/s.
fn hold(hold_ms: u64, buffer: u64) -> HoldConfig {
    HoldConfig {
        delay: Span::from_millis(hold_ms),
        line: Rate(1000 * MBIT),
        pacing: Pacing::default(),
        share_ppm: None,
        buffer: Some(Size(buffer)),
    }
}

/// A line that carries all it can, like `other` else.
fn full_line(mbit: u64, other: &LinkView) -> LinkView {
    LinkView { capacity: Rate(mbit * MBIT), load: Rate(mbit * MBIT), ..*other }
}

fn lightpath(capacity: u64) -> LightpathConfig {
    LightpathConfig { capacity: Rate(capacity), set_up: Span::from_secs(2), cost: Size(0) }
}

/// Drives a manager as a network does: lightpaths are up after their set-up, and down at once.
struct Driver {
    manager: Manager,
    net: Net,
    second: u64,
    due: Vec<(u64, usize)>,
    seen: Vec<(u64, Decision)>,
}

impl Driver {
    fn new(policy: Policy, lightpaths: &[LightpathConfig]) -> Driver {
        let manager = Manager::new(Time::ZERO, policy, lightpaths);
        Driver { manager, net: Net::idle(), second: 0, due: vec![], seen: vec![] }
    }

    /// A second in which flows send at these rates, Mbit/s.
    fn second(&mut self, rates: &[(FlowKey, u64)]) {
        let start = Time(self.second * units::NS_PER_S);
        for &(flow, mbit) in rates {
            let bytes = mbit * MBIT / 8;
            self.manager.handle_counters(start, flow, bytes.div_ceil(1500), bytes);
        }
        self.second += 1;
        let now = Time(self.second * units::NS_PER_S);
        assert_eq!(self.manager.poll_timeout(), now);
        for (_, lightpath) in self.due.extract_due(self.second) {
            self.manager.handle_lightpath_up(now, lightpath);
        }
        self.manager.handle_interval(now, &self.net);
        while let Some(decision) = self.manager.poll_decision() {
            match decision {
                Decision::SetUp { lightpath } => self.due.push((self.second + 2, lightpath)),
                Decision::Release { lightpath } => self.manager.handle_lightpath_down(lightpath),
                _ => {}
            }
            self.seen.push((self.second, decision));
        }
    }

    fn seconds(&mut self, count: u64, rates: &[(FlowKey, u64)]) {
        for _ in 0..count {
            self.second(rates);
        }
    }
}

trait ExtractDue {
    fn extract_due(&mut self, second: u64) -> Vec<(u64, usize)>;
}

impl ExtractDue for Vec<(u64, usize)> {
    fn extract_due(&mut self, second: u64) -> Vec<(u64, usize)> {
        let (due, later) = self.iter().partition(|&&(at, _)| at <= second);
        *self = later;
        due
    }
}

#[test]
fn an_elephant_moves_and_returns_and_the_lightpath_is_released() {
    let mut driver = Driver::new(policy(), &[lightpath(1000 * MBIT)]);
    driver.seconds(20, &[(7, 200), (8, 5)]);
    assert_eq!(driver.manager.place(7), Place::On(0));
    driver.seconds(30, &[(7, 10), (8, 5)]);
    // 200 Mbit/s are 25 MB a second: an elephant after the first, and expected to last longer than the set-up of 2 s
    // after the third. Then 15 s at 200; the mean of four is below 50 from the 24th second on. Nothing for 5 s, then
    // it is given back.
    let expected = [
        (3, Decision::SetUp { lightpath: 0 }),
        (5, Decision::Move { flow: 7, lightpath: 0, plan: Plan::NOTHING, record: 0 }),
        (24, Decision::Return { flow: 7, lightpath: 0 }),
        (29, Decision::Release { lightpath: 0 }),
    ];
    assert_eq!(driver.seen, expected);
    assert_eq!(driver.manager.state(0), State::Down);
    let entries = driver.manager.move_log().records();
    assert_eq!(entries.len(), 2);
    assert_eq!((entries[0].reason, entries[1].reason), (Reason::Elephant, Reason::Slow));
    assert_eq!(entries[0].left_at, Some(Time(24 * units::NS_PER_S)));
    assert_eq!(entries[0].offloaded, Size(15 * 25_000_000 + 4 * 1_250_000));
    assert_eq!(driver.manager.totals().offloaded, entries[0].offloaded);
    assert_eq!(entries[0].forecast.unwrap().limit, Limit::Window);
}

#[test]
fn the_cost_of_a_move_is_the_largest_deficit() {
    let mut driver = Driver::new(policy(), &[lightpath(1000 * MBIT)]);
    driver.seconds(5, &[(7, 200)]);
    // The observation window is of five seconds; the sixth tells that the flow did not end in the fifth.
    for mbit in [120, 180, 260, 250, 200, 200] {
        driver.second(&[(7, mbit)]);
    }
    let entry = &driver.manager.move_log().records()[0];
    // Behind by 80 and 20 Mbit, then it catches up: 100 Mbit at most, after two seconds.
    assert_eq!((entry.cost, entry.cost_at), (Some(Size(12_500_000)), Some(Span::from_secs(2))));
    assert_eq!(entry.min_rate, Some(Rate(120 * MBIT)));
    assert_eq!(entry.after.unwrap().rate, Rate(202 * MBIT));
    // A tenth of 1210 Mbit, and 60 and 50 Mbit beyond the 200 before.
    assert_eq!(entry.gain, Size((121 + 110) * MBIT / 8));
    assert_eq!(entry.observed, Span::from_secs(5));
    // Every packet was counted.
    assert_eq!((entry.cost_error, entry.before.rate_error, entry.offloaded_error), (Some(Size(0)), Rate(0), Size(0)));
}

#[test]
fn rate_variance_is_no_gain() {
    let gain = |rates: &[u64]| {
        let mut driver = Driver::new(Policy { offload_weight_ppm: 0, ..policy() }, &[lightpath(1000 * MBIT)]);
        driver.net.core.capacity = Rate(u64::MAX);
        driver.net.core.load = Rate(0);
        driver.seconds(5, &[(7, 200)]);
        assert_eq!(driver.manager.place(7), Place::On(0));
        for &mbit in rates {
            driver.second(&[(7, mbit)]);
        }
        driver.manager.move_log().records()[0].clone()
    };
    // 100 ahead, 100 back, ten times over: not 1000 Mbit.
    let varying =
        gain(&[300, 100, 300, 100, 300, 100, 300, 100, 300, 100, 300, 100, 300, 100, 300, 100, 300, 100, 300, 100]);
    assert_eq!((varying.cost, varying.gain), (Some(Size(0)), Size(100 * MBIT / 8)));
    // It ends within a second and is silent then: nothing of that is taken off.
    assert_eq!(gain(&[300, 300, 300, 50, 0, 0]).gain, Size(300 * MBIT / 8));
    // Its first deficit is the cost, and its later surplus the gain.
    let slow = gain(&[50, 250, 250, 250, 250, 200, 200]);
    assert_eq!((slow.cost, slow.gain), (Some(Size(150 * MBIT / 8)), Size(200 * MBIT / 8)));
}

#[test]
fn a_flow_that_ends_has_no_deficit_and_one_that_stalls_has() {
    let cost = |after: &[u64]| {
        let mut driver = Driver::new(policy(), &[lightpath(1000 * MBIT)]);
        driver.seconds(5, &[(7, 200)]);
        for &mbit in after {
            driver.second(&[(7, mbit)]);
        }
        let entry = driver.manager.move_log().records()[0].clone();
        (entry.cost, entry.cost_at, entry.min_rate, entry.observed)
    };
    let (over, stalled) = (cost(&[200, 150, 0, 0, 0, 0]), cost(&[200, 0, 0, 150, 200, 200]));
    let mbit = |mbit: u64| Size(mbit * MBIT / 8);
    // It ended within its second second: the 150 Mbit of it say nothing of its rate.
    assert_eq!(over, (Some(mbit(0)), None, Some(Rate(200 * MBIT)), Span::from_secs(1)));
    assert_eq!(stalled, (Some(mbit(450)), Some(Span::from_secs(4)), Some(Rate(0)), Span::from_secs(5)));
}

#[test]
fn a_move_that_costs_more_than_it_gains_is_refused() {
    let policy = Policy { offload_weight_ppm: 10_000, ..policy() };
    let mut driver = Driver::new(policy.clone(), &[lightpath(1000 * MBIT)]);
    // Scenario D: the receiver's line is full, its queue nearly, and the IP path 49 ms longer than the lightpath.
    driver.net.ip_delay = Span::from_millis(50);
    driver.net.egress =
        LinkView { capacity: Rate(200 * MBIT), load: Rate(200 * MBIT), queue: Size(700_000), ..driver.net.egress };
    driver.seconds(8, &[(7, 200)]);
    assert_eq!(driver.seen, []);
    let entry = &driver.manager.move_log().records()[0];
    assert_eq!(entry.reason, Reason::Refused);
    let assessment = entry.forecast.unwrap();
    assert!(assessment.limit == Limit::Receiver && assessment.cost >= assessment.gain, "{assessment:?}");
    // Once per minimum stay, not at every look.
    assert_eq!(driver.manager.totals().refusals, 1);
    let mut rash = Driver::new(Policy { refuse: false, ..policy }, &[lightpath(1000 * MBIT)]);
    (rash.net.egress, rash.net.ip_delay) = (driver.net.egress, driver.net.ip_delay);
    rash.seconds(8, &[(7, 200)]);
    assert_eq!(rash.manager.place(7), Place::On(0));
}

#[test]
fn a_hold_makes_the_move_worthwhile_and_is_logged() {
    // The sender's line is full, the IP path 49 ms longer: 200 Mbit/s send 1,225,000 bytes in that time. A thousandth
    // of the 25 MB a second that are expected still is less.
    let policy = Policy { offload_weight_ppm: 1_000, ..policy() };
    let limited = |allowed: AllowedMitigations| {
        let mut driver = Driver::new(policy.clone(), &[lightpath(1000 * MBIT)]);
        driver.net.ip_delay = Span::from_millis(50);
        driver.net.ingress = Some(full_line(200, &driver.net.egress));
        driver.net.allowed = allowed;
        driver.seconds(8, &[(7, 200)]);
        driver
    };
    let difference = Span::from_millis(49);
    let as_it_is = limited(AllowedMitigations::default());
    assert_eq!((as_it_is.manager.totals().refusals, as_it_is.manager.place(7)), (1, Place::Ip));
    assert_eq!(as_it_is.manager.move_log().records()[0].plan, None);
    let mut held = limited(AllowedMitigations {
        delay_difference: difference,
        hold_buffer: Some(hold(49, 2_000_000)),
        cwnd_reduction: None,
    });
    assert_eq!(held.manager.place(7), Place::On(0));
    let entry = held.manager.move_log().records()[0].clone();
    let (plan, assessment) = (entry.plan.unwrap(), entry.forecast.unwrap());
    assert_eq!((plan.mitigation, plan.hold, plan.buffer), (Mitigation::HoldBuffer, difference, Size(1_225_000)));
    assert_eq!((assessment.cost, assessment.overtaken_packets, assessment.pause), (Size(0), 0, Span::ZERO));
    // The saved cost is what is sent again without it; 0.7 of the window is more than the shorter path needs.
    assert_eq!(plan.saved_cost, Size(1_225_000));
    let moved = held.seen.iter().find(|(_, d)| matches!(d, Decision::Move { .. })).unwrap().1;
    assert_eq!(moved, Decision::Move { flow: 7, lightpath: 0, plan, record: 0 });
    let kept =
        HoldStats { hold: difference, packets: 816, bytes: Size(1_224_000), dropped_packets: 0, is_holding: false };
    held.manager.handle_hold_stats(0, kept);
    assert_eq!(held.manager.move_log().records()[0].hold_stats, Some(kept));
    // A router that has no room for it is no help.
    let small = limited(AllowedMitigations {
        delay_difference: difference,
        hold_buffer: Some(hold(49, 1_000_000)),
        cwnd_reduction: None,
    });
    assert_eq!((small.manager.totals().refusals, small.manager.place(7)), (1, Place::Ip));
    assert_eq!(small.manager.move_log().records()[0].plan.unwrap().mitigation, Mitigation::None);
}

#[test]
fn simultaneous_moves_share_the_hold_buffer() {
    let mitigations = |buffer: u64| {
        let mut driver = Driver::new(policy(), &[lightpath(1000 * MBIT)]);
        driver.net.ip_delay = Span::from_millis(50);
        driver.net.ingress = Some(full_line(360, &driver.net.egress));
        driver.net.allowed = AllowedMitigations {
            delay_difference: Span::from_millis(49),
            hold_buffer: Some(hold(49, buffer)),
            cwnd_reduction: None,
        };
        driver.seconds(6, &[(1, 200), (2, 160)]);
        let of = |entry: &MoveRecord| entry.plan.unwrap().mitigation;
        driver.manager.move_log().records().iter().map(of).collect::<Vec<_>>()
    };
    // 1,225,000 and 980,000 bytes.
    assert_eq!(mitigations(2_205_000), [Mitigation::HoldBuffer, Mitigation::HoldBuffer]);
    assert_eq!(mitigations(2_204_999), [Mitigation::HoldBuffer, Mitigation::None]);
}

#[test]
fn a_heavier_tail_raises_the_expected_rest() {
    let gain = |pareto_shape_e3: u32| {
        let mut driver = Driver::new(Policy { pareto_shape_e3, ..policy() }, &[lightpath(1000 * MBIT)]);
        driver.net.ingress = Some(full_line(200, &driver.net.egress));
        driver.seconds(6, &[(7, 200)]);
        driver.manager.move_log().records()[0].forecast.unwrap().gain
    };
    // 25 MB a second, a tenth of the rest counts. As much again: the set-up of 2 s is worth it after the third second,
    // and 125 MB are expected when it moves. Five times as much: after the first, and 375 MB.
    assert_eq!((gain(2000), gain(1200)), (Size(12_500_000), Size(37_500_000)));
}

#[test]
fn an_unused_set_up_counts_as_wasted() {
    let mut driver = Driver::new(policy(), &[lightpath(1000 * MBIT)]);
    driver.seconds(3, &[(7, 200)]);
    driver.seconds(20, &[(7, 10)]);
    let decisions: Vec<_> = driver.seen.iter().map(|s| s.1).collect();
    assert_eq!(decisions, [Decision::SetUp { lightpath: 0 }, Decision::Release { lightpath: 0 }]);
    let totals = driver.manager.totals();
    assert_eq!((totals.set_ups, totals.wasted_set_ups, totals.moves), (1, 1, 0));
}

#[test]
fn a_move_of_an_ended_flow_counts_as_wasted() {
    let mut driver = Driver::new(policy(), &[lightpath(1000 * MBIT)]);
    driver.seconds(5, &[(7, 200)]);
    // 8 ends in the second in which it is taken for an elephant.
    driver.second(&[(7, 200), (8, 300)]);
    assert_eq!(driver.manager.place(8), Place::On(0));
    driver.seconds(20, &[(7, 200)]);
    let totals = driver.manager.totals();
    assert_eq!((totals.moves, totals.returns, totals.wasted_moves), (2, 1, 1));
    assert_eq!(driver.manager.move_log().records()[1].cost, None);
}

#[test]
fn admission_respects_capacity_and_priorities_preempt() {
    let mut driver = Driver::new(policy(), &[lightpath(500 * MBIT)]);
    driver.net.priorities = BTreeMap::from([(3, 5)]);
    let low = [(1, 240), (2, 230)];
    driver.seconds(15, &low);
    assert_eq!((driver.manager.place(1), driver.manager.place(2)), (Place::On(0), Place::On(0)));
    // No room for a third of the same priority.
    driver.seconds(5, &[(1, 240), (2, 230), (4, 300)]);
    assert_eq!(driver.manager.place(4), Place::Ip);
    // One of a higher priority: the slower of the two is preempted.
    driver.seconds(5, &[(1, 240), (2, 230), (3, 150)]);
    assert_eq!((driver.manager.place(1), driver.manager.place(3)), (Place::On(0), Place::On(0)));
    assert_eq!(driver.manager.place(2), Place::Ip);
    assert_eq!(driver.manager.totals().preemptions, 1);
}

#[test]
fn flows_within_their_dwell_time_are_not_preempted() {
    let mut driver = Driver::new(policy(), &[lightpath(500 * MBIT)]);
    driver.net.priorities = BTreeMap::from([(3, 5)]);
    driver.seconds(6, &[(1, 400)]);
    driver.seconds(7, &[(1, 400), (3, 300)]);
    assert_eq!((driver.manager.place(1), driver.manager.place(3)), (Place::On(0), Place::Ip));
    driver.seconds(5, &[(1, 400), (3, 300)]);
    assert_eq!((driver.manager.place(1), driver.manager.place(3)), (Place::Ip, Place::On(0)));
}

#[test]
fn flows_of_a_failed_lightpath_return_at_once() {
    let mut driver = Driver::new(policy(), &[lightpath(1000 * MBIT)]);
    driver.seconds(5, &[(7, 200)]);
    assert_eq!(driver.manager.place(7), Place::On(0));
    driver.manager.handle_lightpath_failed(Time(5 * units::NS_PER_S), 0);
    assert_eq!(driver.manager.poll_decision(), Some(Decision::Return { flow: 7, lightpath: 0 }));
    assert_eq!((driver.manager.state(0), driver.manager.place(7)), (State::Down, Place::Ip));
    assert_eq!(driver.manager.move_log().records()[1].reason, Reason::Failed);
    // Nothing is set up while the alarm stands, and when it is gone the flow stays its time before it moves again.
    driver.net.alarm = true;
    driver.seconds(12, &[(7, 200)]);
    assert_eq!(driver.manager.totals().set_ups, 1);
    driver.net.alarm = false;
    driver.seconds(4, &[(7, 200)]);
    assert_eq!((driver.manager.totals().set_ups, driver.manager.place(7)), (2, Place::On(0)));
}

#[test]
fn set_ups_respect_the_maximum() {
    let two = [lightpath(300 * MBIT), lightpath(300 * MBIT)];
    let flows = [(1, 250), (2, 250)];
    let mut one_allowed = Driver::new(policy(), &two);
    one_allowed.seconds(10, &flows);
    assert_eq!(one_allowed.manager.totals().set_ups, 1);
    let mut two_allowed = Driver::new(Policy { lightpaths_max: 2, ..policy() }, &two);
    two_allowed.seconds(10, &flows);
    assert_eq!((two_allowed.manager.place(1), two_allowed.manager.place(2)), (Place::On(0), Place::On(1)));
}

#[test]
fn sampling_finds_the_same_elephant() {
    let mut driver = Driver::new(Policy { one_in: 100, ..policy() }, &[lightpath(1000 * MBIT)]);
    for second in 1..=8u64 {
        // 200 Mbit/s are 16,667 packets a second, 167 of them sampled.
        for _ in 0..167 {
            driver.manager.handle_sample(Time((second - 1) * units::NS_PER_S), 7, 1500);
        }
        driver.second(&[]);
    }
    assert_eq!(driver.manager.place(7), Place::On(0));
    assert!(driver.manager.totals().offloaded.0.abs_diff(3 * 25_000_000) < 1_000_000);
    // 501 samples over the lightpath, 668 in the four intervals before; each stands for 100 x 1500 B.
    let entry = &driver.manager.move_log().records()[0];
    let close = |found: u64, expected: f64| (found as f64 / expected - 1.0).abs() < 0.02;
    assert!(close(entry.offloaded_error.0, 501f64.sqrt() * 150_000.0), "{entry:?}");
    assert!(close(entry.before.rate_error.0, entry.before.rate.0 as f64 / 668f64.sqrt()), "{entry:?}");
}

proptest! {
    /// No flapping: under any sequence of rates, with or without pre-emption, a flow is moved at most once per minimum
    /// stay; and at the moment of a move to it a lightpath has no more promised than its capacity, unless one flow has
    /// it alone.
    #[test]
    fn moves_are_bounded_by_the_dwell_time(
        rates in prop::collection::vec(prop::collection::vec(0u64..600, 5), 1..120),
        stay in 1u64..15,
        lightpaths_max in 1usize..3,
        refuse: bool,
        priorities in prop::collection::vec(0i32..3, 5),
        allowed in prop::option::of((0u64..100, 1_000u64..10_000_000, prop::option::of(0u64..100))),
    ) {
        let policy = Policy { min_dwell_time: Span::from_secs(stay), lightpaths_max, refuse, ..policy() };
        let paths = [lightpath(500 * MBIT), lightpath(700 * MBIT)];
        let mut driver = Driver::new(policy, &paths);
        driver.net.priorities = (0..).zip(priorities).collect();
        if let Some((hold_ms, buffer, trim_ms)) = allowed {
            let hold = hold(hold_ms, buffer);
            driver.net.allowed =
                AllowedMitigations {
                    delay_difference: Span::from_millis(4),
                    hold_buffer: Some(hold),
                    cwnd_reduction: trim_ms.map(Span::from_millis),
                };
        }
        let run = rates.len() as u64;
        for row in &rates {
            let flows: Vec<_> = (0..).zip(row.iter().copied()).collect();
            driver.second(&flows);
            let now = Time(driver.second * units::NS_PER_S);
            for (index, path) in paths.iter().enumerate() {
                let moved = driver.seen.iter().any(|&(at, d)| {
                    at == driver.second && matches!(d, Decision::Move { lightpath, .. } if lightpath == index)
                });
                let alone = (0..5).filter(|&f| driver.manager.place(f) == Place::On(index)).count() <= 1;
                if moved && !alone {
                    prop_assert!(driver.manager.reserved(now, index) <= path.capacity);
                }
            }
        }
        for flow in 0..5u64 {
            let of_flow = |d: &Decision| {
                matches!(d, Decision::Move { flow: f, .. } | Decision::Return { flow: f, .. } if *f == flow)
            };
            let moves: Vec<u64> = driver.seen.iter().filter(|(_, d)| of_flow(d)).map(|s| s.0).collect();
            prop_assert!(moves.len() as u64 <= 1 + run / stay, "{moves:?}");
            prop_assert!(moves.windows(2).all(|pair| pair[1] - pair[0] >= stay), "{moves:?}");
        }
    }
}
