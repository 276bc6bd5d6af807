//! Nanoseconds per delivered data packet of two endpoints coupled directly: no link, no event queue.
//!
//! `cargo run --release -p tcp --example steady -- [WINDOW_SEGMENTS] [PACKETS] [LOSS_ONE_IN] [ERA] [ALGORITHM]`
//!
//! Packets cross in bursts of a window; each direction is a queue of segments. Time advances so that the RTT is 50 ms.

use std::collections::{BTreeMap, VecDeque};
use tcp::config::{Config, Recovery};
use tcp::segment::Segment;
use tcp::Endpoint;
use units::{Size, Span, Time};

/// Gap between segments on the wire.
const RTT_NS: u64 = 50_000_000;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |i: usize, default: u64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let window = number(1, 1_000);
    let packets = number(2, 20_000_000);
    let loss = number(3, 0);
    let recovery = match args.get(4).map(String::as_str) {
        Some("newreno") => Recovery::NewReno,
        Some("sack") => Recovery::Sack,
        _ => Recovery::Rack,
    };
    let name = args.get(5).map_or("reno", String::as_str);
    let algorithm = congestion::find(name).expect("a built-in algorithm");
    let make = || congestion::Controller::new(&algorithm, &BTreeMap::new()).expect("parameters");
    let cfg = Config {
        initial_cwnd: window as u32,
        initial_ssthresh: Some(window as u32),
        cwnd_clamp: Some(window as u32),
        recovery,
        receive_window: Size(1 << 30),
        ..Config::default()
    };
    let mut client = Endpoint::new_client(cfg.clone(), make(), Time::ZERO);
    let mut server = Endpoint::new_server(cfg, make(), Time::ZERO);
    let mut forward: VecDeque<(u64, Segment)> = VecDeque::new();
    let mut back: VecDeque<(u64, Segment)> = VecDeque::new();
    let spacing = (RTT_NS / window.max(1)).max(1);
    let mut line_free = 0u64;
    client.connect(Time::ZERO);
    client.write(Time::ZERO, u64::MAX / 4);
    let mut seg = Segment::default();
    let mut now;
    let mut dropped = 0u64;
    let mut lottery = 12_345u64;
    let mut crossed = 0u64;
    while client.poll_transmit(Time::ZERO, &mut seg) {
        forward.push_back((RTT_NS / 2, seg));
    }
    let mss = 1448;
    let mut started = None;
    while server.bytes_received() < packets * mss {
        let f = forward.front().map_or(u64::MAX, |x| x.0);
        let b = back.front().map_or(u64::MAX, |x| x.0);
        let timer = client.poll_timeout().0.min(server.poll_timeout().0);
        let next = f.min(b).min(timer);
        now = Time(next);
        if timer == next {
            if client.poll_timeout().0 == next {
                client.handle_timeout(now);
            } else {
                server.handle_timeout(now);
            }
        } else if f <= b {
            let (_, s) = forward.pop_front().expect("a segment");
            server.handle_segment(now, &s);
        } else {
            let (_, s) = back.pop_front().expect("a segment");
            client.handle_segment(now, &s);
        }
        while client.poll_transmit(now, &mut seg) {
            crossed += 1;
            lottery = lottery.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if loss > 0 && (lottery >> 33).is_multiple_of(loss) {
                dropped += 1;
                continue;
            }
            line_free = line_free.max(now.0) + spacing;
            forward.push_back((line_free + RTT_NS / 2, seg));
        }
        while server.poll_transmit(now, &mut seg) {
            back.push_back((now.0 + RTT_NS / 2, seg));
        }
        if started.is_none() && server.bytes_received() > packets * mss / 10 {
            started = Some((clock(), server.bytes_received()));
        }
    }
    let (begin, bytes) = started.expect("a tenth has crossed");
    let elapsed = clock() - begin;
    let delivered = (server.bytes_received() - bytes) / mss;
    println!(
        "{name} window {window}: {:.1} ns per delivered packet \
         ({delivered} packets, {crossed} sent, {dropped} dropped, srtt {:?}, cwnd {})",
        elapsed as f64 / delivered as f64,
        client.srtt(),
        client.controller().sock().snd_cwnd,
    );
    println!("{:?}", client.stats());
    println!("simulated {}", Span(RTT_NS));
}

/// Processor time of this process, ns (Linux): a loaded machine does not falsify it.
fn clock() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux with schedstat");
    text.split_whitespace().next().and_then(|n| n.parse().ok()).expect("nanoseconds on the processor")
}
