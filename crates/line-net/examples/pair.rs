//! One stream between two interfaces of this machine, each with a thread.
//!
//! `pair FROM TO BYTES RATE_BPS MS [PATTERN [METHOD]]`

use line_net::{LinePort, LinePortConfig, Method};
use line_test::StreamSpec;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Span;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, bytes, rate, ms, ..] = words.as_slice() else { panic!("FROM TO BYTES RATE_BPS MS [PATTERN]") };
    let pattern = words.get(5).map_or("crpat", String::as_str);
    let method = words.get(6).map(|name| Method::of(name).expect("a method"));
    let open = |name: &str| {
        let interface = name.into();
        LinePort::open(LinePortConfig { interface, method, ..LinePortConfig::default() }).expect("the interface")
    };
    let (mut near, mut far) = (open(from), open(to));
    let to = far.info().expect("it is there").address;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| while far.serve(Span::from_millis(100), &mut || is_over.load(Ordering::Relaxed)).is_ok() {});
        let spec = format!(
            r#"{{"to": "{to}", "stream": 1, "sizes": [[{bytes}, 1]], "rate_bps": {rate}, "duration_ns": {ms}000000,
            "frames": null, "ramp_ns": 100000000, "payload": "{pattern}", "series_ns": null, "drain_ns": 100000000,
            "pcp": null}}"#
        );
        near.start(StreamSpec::from_json(&spec).expect("a stream")).expect("the stream begins");
        while !near.run(Span::from_millis(100), &mut || false).expect("the interface works") {}
        is_over.store(true, Ordering::Relaxed);
        let outcome = near.outcome().expect("a stream");
        println!("{}", serde_json::to_string_pretty(&outcome).expect("JSON"));
    });
}
