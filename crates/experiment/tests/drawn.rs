//! Writes without a trace: their mean rate, their sizes, how bursty they come, and that a name has its own streams.

use crate::common::*;
use experiment::{Generator, RandomWrites};
use serde_json::json;
use spec::{ArrivalsSpec, WriteSizesSpec, WritesSpec};
use units::Time;

const MBIT: u64 = 1_000_000;

fn spec(rate_bps: u64, sizes: WriteSizesSpec, arrivals: ArrivalsSpec) -> WritesSpec {
    WritesSpec { rate_bps, sizes, arrivals, header_bytes: 48, active: None }
}

fn fixed() -> WriteSizesSpec {
    WriteSizesSpec::Fixed { bytes: 65_536 }
}

fn generator(spec: &WritesSpec, name: &str) -> Generator {
    let mut made = Generator::RandomWrites(Box::new(RandomWrites::new(spec, 7, name)));
    made.start(Time(S));
    made
}

/// (ns after the start, bytes of data) of the first `count` writes.
fn writes(spec: &WritesSpec, name: &str, count: usize) -> Vec<(u64, u64)> {
    let mut generator = generator(spec, name);
    let next = || {
        let due = generator.peek().expect("they do not end");
        generator.advance();
        (due.at.0 - S, due.bytes - 48)
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn rate_bps(writes: &[(u64, u64)]) -> f64 {
    let bytes: u64 = writes[..writes.len() - 1].iter().map(|w| w.1).sum();
    bytes as f64 * 8e9 / (writes[writes.len() - 1].0 - writes[0].0) as f64
}

/// Variance over mean of the number of writes in windows of `window_ns`: 1 for Poisson at every window.
fn dispersion(writes: &[(u64, u64)], window_ns: u64) -> f64 {
    let mut counts = vec![0.0; (writes[writes.len() - 1].0 / window_ns) as usize];
    for (at, _) in writes {
        if let Some(count) = counts.get_mut((at / window_ns) as usize) {
            *count += 1.0;
        }
    }
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / counts.len() as f64 / mean
}

#[test]
fn constant_writes_come_when_the_rate_has_carried_those_before_to_the_ns() {
    // 180 MB/s of 64 KiB: one each 364,088.9 ns, which no rounding may shift.
    let all = writes(&spec(1440 * MBIT, fixed(), ArrivalsSpec::Constant), "f", 1_000_000);
    for number in [0u64, 1, 2, 999_999] {
        assert_eq!(all[number as usize], (number * 65_536 * 8 * 1000 / 1440, 65_536));
    }
}

#[test]
fn every_process_has_the_mean_rate_with_every_distribution_of_sizes() {
    let sizes = [
        fixed(),
        WriteSizesSpec::Mix { sizes: vec![[4096, 70], [65_536, 29], [1 << 20, 1]] },
        WriteSizesSpec::Lognormal { median_bytes: 16_384, sigma_e3: 1000 },
        WriteSizesSpec::Pareto { shape_e3: 1500, min_bytes: 4096, max_bytes: 1 << 20 },
    ];
    let arrivals = [
        ArrivalsSpec::Constant,
        ArrivalsSpec::Poisson,
        // 36,000 periods in the 146 s of 400,000 writes.
        ArrivalsSpec::OnOff { on_ns: MS, off_ns: 3 * MS, pareto_shape_e3: None },
        ArrivalsSpec::OnOff { on_ns: MS, off_ns: 3 * MS, pareto_shape_e3: Some(1900) },
    ];
    for sizes in &sizes {
        for arrivals in arrivals {
            let found = rate_bps(&writes(&spec(1440 * MBIT, sizes.clone(), arrivals), "f", 400_000));
            assert!((found / 1440e6 - 1.0).abs() < 0.05, "{sizes:?}, {arrivals:?}: {found}");
        }
    }
}

#[test]
fn a_mix_has_its_shares() {
    let sizes = WriteSizesSpec::Mix { sizes: vec![[4096, 3], [65_536, 1]] };
    let all = writes(&spec(1440 * MBIT, sizes, ArrivalsSpec::Poisson), "f", 100_000);
    let small = all.iter().filter(|w| w.1 == 4096).count();
    assert!(all.iter().all(|w| w.1 == 4096 || w.1 == 65_536) && (74_500..75_500).contains(&small), "{small}");
}

#[test]
fn poisson_is_as_bursty_at_every_scale_on_off_is_not_and_a_heavy_tail_is_at_long_ones() {
    let of = |arrivals| writes(&spec(1440 * MBIT, fixed(), arrivals), "f", 1_000_000);
    let poisson = of(ArrivalsSpec::Poisson);
    for window_ns in [MS, 10 * MS, 100 * MS] {
        let found = dispersion(&poisson, window_ns);
        assert!((found - 1.0).abs() < 0.1, "{found}");
    }
    let (on_ns, off_ns) = (5 * MS, 15 * MS);
    let on_off = of(ArrivalsSpec::OnOff { on_ns, off_ns, pareto_shape_e3: None });
    // Gap and on period are independent exponentials: for an interrupted Poisson process it tends to 1 + 2 rate_on
    // off^2 on / (on + off)^2.
    let limit = 1.0 + 2.0 * (1440e6 / 8.0 / 65_536.0 * 4.0) * 0.015 * 0.015 * 0.005 / (0.02 * 0.02);
    let found = dispersion(&on_off, 500 * MS);
    assert!((found / limit - 1.0).abs() < 0.15, "{found}, not {limit}");
    let heavy = of(ArrivalsSpec::OnOff { on_ns, off_ns, pareto_shape_e3: Some(1200) });
    let growth = |all: &[(u64, u64)]| dispersion(all, 2000 * MS) / dispersion(all, 200 * MS);
    assert!(growth(&heavy) > 2.0 && growth(&on_off) < 1.5, "{} and {}", growth(&heavy), growth(&on_off));
}

#[test]
fn a_name_has_streams_of_its_own_and_sizes_do_not_change_times() {
    let poisson = spec(1440 * MBIT, fixed(), ArrivalsSpec::Poisson);
    assert_eq!(writes(&poisson, "a", 1000), writes(&poisson, "a", 1000));
    assert_ne!(writes(&poisson, "a", 10), writes(&poisson, "b", 10));
    // The same mean, so the same gaps.
    let mixed = WriteSizesSpec::Mix { sizes: vec![[32_768, 1], [98_304, 1]] };
    let times = |all: Vec<(u64, u64)>| all.into_iter().map(|w| w.0).collect::<Vec<_>>();
    let other = spec(1440 * MBIT, mixed, ArrivalsSpec::Poisson);
    assert_eq!(times(writes(&poisson, "a", 1000)), times(writes(&other, "a", 1000)));
}

#[test]
fn the_number_of_connections_does_not_change_what_is_written_nor_when() {
    let work = json!({"kind": "replicate", "writes": {"rate_bps": 100 * MBIT, "header_bytes": 48,
                      "sizes": {"kind": "lognormal", "median_bytes": 16384, "sigma_e3": 1000},
                      "arrivals": {"process": "poisson"}}});
    let run = |connections: usize| {
        let mut run = Dumbbell { duration_ns: 2 * S, ..Dumbbell::new(1_000_000_000, 20 * MS) };
        for number in 1..=connections {
            let name = if connections == 1 { "f".to_owned() } else { format!("f.{number}") };
            let mut flow = flow(&name, 0, transport("reno", json!({})), work.clone(), 0);
            flow["distribution"] = json!("striped");
            run.flows.push(flow);
        }
        run.run()
    };
    let (one, four) = (run(1), run(4));
    for name in ["messages", "offered_bytes"] {
        assert_eq!(integer(&one, name), integer(&four, name), "{name}");
    }
    assert!(real(&one, "lag_p50_s") > 0.01 && integer(&one, "messages") > 500);
}

#[test]
fn what_cannot_be_drawn_is_refused_with_the_flows_name() {
    let writes = |change: serde_json::Value| {
        let mut writes = json!({"rate_bps": 1000, "header_bytes": 0, "sizes": {"kind": "fixed", "bytes": 1},
                                "arrivals": {"process": "poisson"}});
        for (key, value) in change.as_object().unwrap() {
            writes[key] = value.clone();
        }
        json!({"kind": "replicate", "writes": writes})
    };
    for change in [
        json!({"rate_bps": 0}),
        json!({"sizes": {"kind": "fixed", "bytes": 0}}),
        json!({"sizes": {"kind": "mix", "sizes": []}}),
        json!({"sizes": {"kind": "mix", "sizes": [[4096, 0]]}}),
        json!({"sizes": {"kind": "lognormal", "median_bytes": 4096, "sigma_e3": 60_000}}),
        json!({"arrivals": {"process": "on_off", "on_ns": 0, "off_ns": 1, "pareto_shape_e3": null}}),
        json!({"arrivals": {"process": "on_off", "on_ns": 1, "off_ns": 1, "pareto_shape_e3": 1000}}),
    ] {
        let run =
            Dumbbell::new(1_000_000, 10 * MS).flow("mirror", transport("reno", json!({})), writes(change.clone()));
        let error =
            experiment::simulate(&run.spec(), &mut |_| std::ops::ControlFlow::Continue(())).expect_err("it is refused");
        assert!(error.to_string().contains("flow mirror: replicate: "), "{change}: {error}");
    }
    let both = json!({"kind": "replicate"});
    let run = Dumbbell::new(1_000_000, 10 * MS).flow("mirror", transport("reno", json!({})), both);
    assert!(experiment::simulate(&run.spec(), &mut |_| std::ops::ControlFlow::Continue(())).is_err());
}
