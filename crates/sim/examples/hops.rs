//! The CPU time of the engine without a protocol: three links each way, an ACK for every second packet, a fixed window.
//! Prints ns of CPU per delivered packet: `cargo run --release -p sim --example hops [WINDOW] [PACKETS]`.

use link::{DropReason, Framing, Link, LinkConfig, LossModel, Pacers, Packet, QueueConfig};
use sim::{Hosts, Network, Routed, Routes};
use units::{Rate, Span, Time};

/// As large as the packets of experiment: 16 bytes.
#[derive(Clone, Copy)]
struct Plain {
    hop: u64,
    bytes: u64,
}

impl Packet for Plain {
    fn bytes(&self) -> u32 {
        self.bytes as u32
    }
    fn flow_hash(&self) -> u64 {
        0
    }
    fn is_ect(&self) -> bool {
        false
    }
    fn mark_ce(&mut self) {}
}

impl Routed for Plain {
    fn hop(&self) -> u32 {
        self.hop as u32
    }
    fn advance(&mut self) {
        self.hop += 1;
    }
    fn redirect(&mut self, position: u32) {
        self.hop = u64::from(position);
    }
}

struct Ends {
    data: u64,
    acks: u64,
    delivered: u64,
    target: u64,
}

impl Hosts<Plain> for Ends {
    fn handle_packet(&mut self, _now: Time, host: u32, _packet: Plain, net: &mut Network<Plain>) {
        if host == 0 {
            for _ in 0..2 {
                let sent = net.send(Plain { hop: self.data, bytes: 1500 });
                assert!(sent.is_ok(), "queues are unlimited");
            }
            return;
        }
        self.delivered += 1;
        if self.delivered.is_multiple_of(2) {
            let sent = net.send(Plain { hop: self.acks, bytes: 52 });
            assert!(sent.is_ok(), "queues are unlimited");
        }
        if self.delivered == self.target {
            net.stop();
        }
    }
    fn handle_timer(&mut self, _: Time, _: u32, _: &mut Network<Plain>) {}
    fn handle_drop(&mut self, _: Time, _: u32, _: Plain, _: DropReason, _: &mut Network<Plain>) {}
}

fn main() {
    let argument = |n, default| std::env::args().nth(n).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (window, packets): (u64, u64) = (argument(1, 8_333), argument(2, 20_000_000));
    let link = |rate, delay_ms| {
        let queue = QueueConfig::DropTail { limit_bytes: None, limit_packets: None };
        let config = LinkConfig {
            rate: Rate(rate),
            framing: Framing::default(),
            delay: Span::from_millis(delay_ms),
            queue,
            loss: LossModel::None,
            jitter: None,
            policer: None,
            batching: None,
        };
        Link::variable(&config, 1)
    };
    let (access, line) = (40_000_000_000, 10_000_000_000);
    let links = vec![link(access, 0), link(line, 5), link(access, 0), link(access, 0), link(line, 5), link(access, 0)];
    let mut routes = Routes::default();
    let data = routes.add(&[0, 1, 2], 1).0.into();
    let acks = routes.add(&[3, 4, 5], 0).0.into();
    let mut net = Network::new(links, Pacers::default(), routes, 0, 0);
    for _ in 0..window {
        assert!(net.send(Plain { hop: data, bytes: 1500 }).is_ok());
    }
    let mut ends = Ends { data, acks, delivered: 0, target: packets };
    let before = cpu_ns();
    net.run(&mut ends, Time::NEVER, u64::MAX);
    let spent = cpu_ns() - before;
    println!(
        "{:.1} ns per packet, {:.1} ns per event",
        spent as f64 / packets as f64,
        spent as f64 / net.events() as f64
    );
}

fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    text.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number of ns")
}
