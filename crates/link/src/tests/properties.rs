//! Properties of every link under every sequence of calls.

use super::*;
use crate::{PolicerConfig, Stats};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Send { bytes: u32, flow: u64, ect: bool },
    Wait(u64),
    Rate(u64),
    Delay(u64),
    Loss(LossModel),
    Up(bool),
    ReadQueue,
}

fn loss() -> impl Strategy<Value = LossModel> {
    prop_oneof![
        Just(LossModel::None),
        (0..=1_000_000_000_000u64).prop_map(|p| LossModel::Independent { probability_e12: p }),
        (1..10u64).prop_map(|n| LossModel::EveryNth { n }),
        (0..=1_000_000_000_000u64, 1..20u64).prop_map(|(begins_e12, length)| LossModel::Runs { begins_e12, length }),
        (0..1_000_000_000_000_000u64).prop_map(|p| LossModel::BitErrorRate { probability_e18: p }),
        prop::collection::btree_set(1..50u64, 0..9)
            .prop_map(|set| LossModel::List { packets: set.into_iter().collect() }),
        prop::array::uniform4(0..=1_000_000_000_000u64).prop_map(|p| LossModel::GilbertElliott {
            good_to_bad_e12: p[0],
            bad_to_good_e12: p[1],
            loss_good_e12: p[2],
            loss_bad_e12: p[3],
        }),
        (0..1_000_000_000_000_000u64, 1..10_000_000_000_000_000u64, 0..=1_000_000_000_000_000_000u64).prop_map(
            |(good_to_bad_e18, bad_to_good_e18, error_bad_e18)| LossModel::BitErrorBursts {
                good_to_bad_e18,
                bad_to_good_e18,
                error_bad_e18,
            }
        ),
    ]
}

fn fifo_queue() -> impl Strategy<Value = QueueConfig> {
    prop_oneof![
        (prop::option::of(0..20_000u64), prop::option::of(0..20u64))
            .prop_map(|(limit_bytes, limit_packets)| QueueConfig::DropTail { limit_bytes, limit_packets }),
        (1..5000u64, 1..5000u64, 0..=1_000_000u32, any::<bool>()).prop_map(|(min, more, ppm, ecn)| QueueConfig::Red {
            limit_bytes: 20_000,
            min_bytes: min,
            max_bytes: min + more,
            max_probability_ppm: ppm,
            weight_shift: 2,
            ecn,
        }),
    ]
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let limits = (0..30u64, 0..100_000u64, 1..1_000_000u64, any::<bool>());
    prop_oneof![
        fifo_queue(),
        limits.clone().prop_map(|(limit_packets, target, interval, ecn)| QueueConfig::Codel {
            limit_packets,
            target: Span(target),
            interval: Span(interval),
            ecn,
        }),
        (limits, 1..8u32, 1..3000u32).prop_map(|((limit_packets, target, interval, ecn), flows, quantum_bytes)| {
            let (target, interval) = (Span(target), Span(interval));
            QueueConfig::FqCodel { limit_packets, flows, quantum_bytes, target, interval, ecn }
        }),
    ]
}

fn jitter() -> impl Strategy<Value = Option<Jitter>> {
    let shape = prop_oneof![
        Just(JitterDistribution::Uniform),
        Just(JitterDistribution::Exponential),
        Just(JitterDistribution::Normal)
    ];
    prop::option::of((shape, 0..100_000u64, any::<bool>()).prop_map(|(distribution, scale, reordering)| Jitter {
        distribution,
        scale: Span(scale),
        reordering,
    }))
}

fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_000_000_000), 50_000_000..20_000_000_000u64]
}

fn framing() -> impl Strategy<Value = Framing> {
    let some = (0..100u32, 0..500u32, 0..100u32);
    let some = some.prop_map(|(header_bytes, min_frame_bytes, gap_bytes)| Framing {
        header_bytes,
        min_frame_bytes,
        gap_bytes,
    });
    prop_oneof![2 => Just(Framing::default()), 1 => some]
}

fn policer() -> impl Strategy<Value = Option<PolicerConfig>> {
    let policer = (rate(), 1..20_000u64);
    let policer = policer.prop_map(|(rate, burst_bytes)| PolicerConfig { rate: Rate(rate), burst_bytes });
    prop_oneof![2 => Just(None), 1 => policer.prop_map(Some)]
}

fn config(queue: impl Strategy<Value = QueueConfig>) -> impl Strategy<Value = LinkConfig> {
    (rate(), framing(), 0..200_000u64, queue, loss(), jitter(), policer()).prop_map(
        |(rate, framing, delay, queue, loss, jitter, policer)| LinkConfig {
            rate: Rate(rate),
            framing,
            delay: Span(delay),
            queue,
            loss,
            jitter,
            policer,
            batching: None,
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (1..2000u32, 0..4u64, any::<bool>()).prop_map(|(bytes, flow, ect)| Step::Send { bytes, flow, ect }),
        6 => (0..30_000u64).prop_map(Step::Wait),
        1 => (0..400_000u64).prop_map(Step::Wait),
        1 => rate().prop_map(Step::Rate),
        1 => (0..200_000u64).prop_map(Step::Delay),
        1 => loss().prop_map(Step::Loss),
        1 => any::<bool>().prop_map(Step::Up),
        1 => Just(Step::ReadQueue),
    ];
    prop::collection::vec(step, 0..200)
}

fn play(bench: &mut Bench, step: &Step) {
    let now = Time(bench.now);
    match step {
        Step::Send { bytes, flow, ect } => bench.send_of(*bytes, *flow, *ect),
        Step::Wait(ns) => bench.run_to(bench.now + ns),
        Step::Rate(rate) => bench.variable().set_rate(now, Rate(*rate)),
        Step::Delay(delay) => bench.variable().set_delay(now, Span(*delay)),
        Step::Loss(model) => bench.variable().set_loss(now, model.clone()),
        Step::Up(up) => bench.variable().set_up(now, *up),
        Step::ReadQueue => {
            bench.link.queue(now);
        }
    }
    // Events that a change made due happen before time passes, as in the event loop.
    bench.take();
}

fn run(config: &LinkConfig, steps: &[Step]) -> Bench {
    let mut bench = Bench::new(config.clone());
    for step in steps {
        play(&mut bench, step);
    }
    bench
}

fn outcome(bench: &Bench) -> (Vec<(u64, Probe)>, Vec<u64>) {
    let mut lost: Vec<u64> = bench.dropped.iter().map(|d| d.1.number).collect();
    lost.sort_unstable();
    (bench.delivered.clone(), lost)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// In = delivered + dropped + inside, at every moment; no packet twice, none stays for ever.
    #[test]
    fn packets_are_conscheduled(config in config(queue()), steps in steps()) {
        let mut bench = Bench::new(config);
        for step in &steps {
            play(&mut bench, step);
            let stats = bench.link.stats();
            let known = bench.delivered.len() as u64 + bench.dropped.len() as u64;
            prop_assert_eq!(bench.sent, known + bench.link.packets_inside());
            let seen = (bench.delivered.len() as u64, bench.dropped.len() as u64);
            prop_assert_eq!((stats.delivered, stats.dropped()), seen);
            let queue = bench.link.queue(Time(bench.now));
            prop_assert!(queue.0 <= bench.link.packets_inside());
            prop_assert_eq!(queue.0 == 0, queue.1 == 0);
        }
        let now = Time(bench.now);
        bench.variable().set_up(now, true);
        bench.run_dry();
        prop_assert_eq!(bench.link.packets_inside(), 0);
        let (delivered, lost) = outcome(&bench);
        let mut numbers: Vec<u64> = delivered.iter().map(|d| d.1.number).chain(lost).collect();
        numbers.sort_unstable();
        prop_assert!(numbers.iter().copied().eq(1..=bench.sent));
    }

    /// A FIFO link and a scheduled queue give the same result.
    #[test]
    fn a_fifo_link_and_a_scheduled_queue_agree(config in config(fifo_queue()), steps in steps()) {
        let [mut analytic, mut scheduled] = both_kinds(&config).map(|config| run(&config, &steps));
        prop_assert_eq!(analytic.link.queue(Time(analytic.now)), scheduled.link.queue(Time(scheduled.now)));
        for bench in [&mut analytic, &mut scheduled] {
            let now = Time(bench.now);
            bench.variable().set_up(now, true);
            bench.run_dry();
        }
        prop_assert_eq!(outcome(&analytic), outcome(&scheduled));
        prop_assert_eq!(analytic.link.stats(), scheduled.link.stats());
    }

    /// A fixed link behaves as a variable one, and its counters and queue are those of the time at which they are
    /// read, however far ahead packets have been handed in.
    #[test]
    fn a_precomputed_link_equals_an_unchanged_variable_one(
        mut config in config(fifo_queue()),
        steps in steps(),
        ahead in 0u64..200_000,
    ) {
        let steps = steps.into_iter().filter(|s| matches!(s, Step::Send { .. } | Step::Wait(_) | Step::ReadQueue));
        let steps: Vec<_> = steps.collect();
        config.jitter = None;
        let mut fixed = Bench::of(Link::fixed(&config, 1));
        let drop_tail = matches!(config.queue, QueueConfig::DropTail { .. });
        prop_assert_eq!(fixed.link.is_precomputed(), drop_tail && config.policer.is_none());
        let mut plain = Bench::new(config.clone());
        // Packets come `ahead` of time to this one.
        let mut early = Link::<Probe>::fixed(&config, 1);
        let mut now = 0;
        for step in &steps {
            play(&mut plain, step);
            play(&mut fixed, step);
            let inside = |link: &Link<Probe>| link.packets_inside() + link.stats().dropped_by_loss;
            prop_assert_eq!(inside(&plain.link), inside(&fixed.link));
            prop_assert_eq!(plain.link.queue(Time(plain.now)), fixed.link.queue(Time(fixed.now)));
            let Link::Precomputed(early) = &mut early else { continue };
            if let Step::Send { bytes, flow, ect } = *step {
                let probe = Probe { number: plain.sent, bytes, flow, ect, ce: false, arrived: 0 };
                now = plain.now.saturating_sub(ahead).max(now);
                let _ = early.admit(Time(now), Time(plain.now), &probe);
            }
        }
        if early.is_precomputed() {
            // All that was handed in has come by now, and the two are the same.
            early.settle(Time(plain.now));
            early.queue(Time(plain.now));
            let lost = |link: &Link<Probe>| {
                let stats = link.stats();
                (stats.dropped_by_queue, stats.delivered, stats.enqueued)
            };
            prop_assert_eq!(lost(&early), lost(&plain.link));
            prop_assert_eq!(early.stats().max_queue_bytes, plain.link.stats().max_queue_bytes);
            prop_assert_eq!(early.queue(Time(plain.now)), plain.link.queue(Time(plain.now)));
        }
        for bench in [&mut plain, &mut fixed] {
            bench.run_dry();
        }
        prop_assert_eq!(outcome(&plain), outcome(&fixed));
        prop_assert_eq!(plain.link.stats(), fixed.link.stats());
        prop_assert_eq!(fixed.link.packets_inside(), 0);
    }

    /// A policed link is the same link without those packets that its policer drops.
    #[test]
    fn a_policer_takes_packets_out_and_changes_nothing_else(config in config(queue()), steps in steps()) {
        let mut policed = run(&config, &steps);
        let dropped: Vec<u64> =
            policed.dropped.iter().filter(|d| d.2 == DropReason::Policer).map(|d| d.1.number).collect();
        prop_assert_eq!(policed.link.stats().dropped_by_policer, dropped.len() as u64);
        let mut plain = Bench::new(LinkConfig { policer: None, ..config.clone() });
        for step in &steps {
            if matches!(step, Step::Send { .. }) && dropped.contains(&(plain.sent + 1)) {
                plain.sent += 1;
            } else {
                play(&mut plain, step);
            }
        }
        prop_assert_eq!(plain.link.queue(Time(plain.now)), policed.link.queue(Time(policed.now)));
        prop_assert_eq!(&plain.delivered, &policed.delivered);
        let stats = Stats { dropped_by_policer: 0, ..*policed.link.stats() };
        prop_assert_eq!(plain.link.stats(), &stats);
    }

    /// Polling at the times of `poll_timeout` yields the same packets as polling all the time.
    #[test]
    fn the_timeout_is_never_late(config in config(queue()), steps in steps()) {
        let by_timeout = run(&config, &steps);
        let mut by_polling = Bench::new(config.clone());
        for step in &steps {
            if let Step::Wait(ns) = step {
                let end = by_polling.now + ns;
                while by_polling.now < end {
                    by_polling.now = (by_polling.now + 97).min(end);
                    by_polling.take();
                }
            } else {
                play(&mut by_polling, step);
            }
        }
        let numbers = |bench: &Bench| bench.delivered.iter().map(|d| d.1.number).collect::<Vec<_>>();
        prop_assert_eq!(numbers(&by_timeout), numbers(&by_polling));
        for (a, b) in by_timeout.delivered.iter().zip(&by_polling.delivered) {
            prop_assert!(a.0 <= b.0 && b.0 < a.0 + 97, "due at {}, seen at {}", a.0, b.0);
        }
        prop_assert_eq!(outcome(&by_timeout).1, outcome(&by_polling).1);
    }

    /// The same calls give the same result.
    #[test]
    fn links_are_deterministic(config in config(queue()), steps in steps()) {
        prop_assert_eq!(outcome(&run(&config, &steps)), outcome(&run(&config, &steps)));
    }

    /// First in, first out, whatever changes meanwhile.
    #[test]
    fn order_is_kept(mut config in config(fifo_queue()), steps in steps()) {
        if let Some(jitter) = &mut config.jitter {
            jitter.reordering = false;
        }
        let bench = run(&config, &steps);
        prop_assert!(bench.numbers().windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(bench.times().windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
