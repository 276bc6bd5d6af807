//! Prints the CPU time of one packet on one link: arrival and delivery.
//!
//! `cargo run --release -p link --example hop_cost [PART OF A NAME]`. Packets of 16 bytes, as in the simulator, arrive
//! at the rate of the line; every fourth time two arrive at once and the next time none, so that the queue is used.
//! Time is this process's CPU time (Linux).

use link::{Framing, Jitter, JitterDistribution, Link, LinkConfig, LossModel, Pacers, Packet, QueueConfig};
use units::{Rate, Span, Time};

#[derive(Clone, Copy)]
struct Probe {
    number: u64,
    bytes: u64,
}

impl Packet for Probe {
    fn bytes(&self) -> u32 {
        self.bytes as u32
    }
    fn flow_hash(&self) -> u64 {
        self.number % 16
    }
    fn is_ect(&self) -> bool {
        false
    }
    fn mark_ce(&mut self) {}
}

/// Packets per measurement.
const PACKETS: u64 = 20_000_000;

/// CPU time of this process so far, ns: the first field of Linux's schedstat.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux with schedstat");
    text.split_whitespace().next().and_then(|field| field.parse().ok()).expect("schedstat begins with a number")
}

fn measure(name: &str, rate: u64, delay_ms: u64, queue: QueueConfig, loss: LossModel, jitter: Option<Jitter>) {
    if std::env::args().nth(1).is_some_and(|only| !name.contains(&only)) {
        return;
    }
    let delay = Span::from_millis(delay_ms);
    let config = LinkConfig {
        rate: Rate(rate),
        framing: Framing::default(),
        delay,
        queue,
        loss,
        jitter,
        policer: None,
        batching: None,
    };
    let (mut link, mut pacers) = (Link::variable(&config, 1), Pacers::default());
    let gap = 1500 * 8_000_000_000 / rate;
    let start = cpu_ns();
    let (mut number, mut delivered, mut lost, mut step) = (0u64, 0u64, 0u64, 0usize);
    let mut now = Time::ZERO;
    while number < PACKETS {
        let arrivals = [1, 1, 2, 0][step % 4];
        step += 1;
        for _ in 0..arrivals {
            let probe = Probe { number, bytes: 1500 };
            number += 1;
            if let link::Admission::Dropped(..) = link.handle_packet(now, probe, &mut pacers) {
                lost += 1;
            }
        }
        now += Span(gap);
        while link.poll_timeout() <= now {
            while let Some(probe) = link.handle_event(now, &mut pacers).delivered {
                delivered += u64::from(std::hint::black_box(probe).bytes > 0);
            }
        }
        if link.has_dropped() {
            while link.poll_dropped().is_some() {
                lost += 1;
            }
        }
    }
    let ns = (cpu_ns() - start) as f64 / PACKETS as f64;
    println!("{name:44} {ns:6.1} ns per packet and hop   delivered {delivered}, lost {lost}");
}

fn main() {
    let tail = QueueConfig::DropTail { limit_bytes: None, limit_packets: Some(1000) };
    let none = LossModel::None;
    let loss = |p| LossModel::Independent { probability_e12: p };
    let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
    measure("drop-tail 1 Gbit/s 1 ms", 1_000_000_000, 1, tail.clone(), none.clone(), None);
    measure("drop-tail 10 Gbit/s 5 ms", 10_000_000_000, 5, tail.clone(), none.clone(), None);
    measure("drop-tail 10 Gbit/s 50 ms", 10_000_000_000, 50, tail.clone(), none.clone(), None);
    measure("drop-tail 100 Gbit/s 40 ms", 100_000_000_000, 40, tail.clone(), none.clone(), None);
    measure("drop-tail, loss 1e-5", 10_000_000_000, 5, tail.clone(), loss(10_000_000), None);
    measure("drop-tail, loss 1e-2", 10_000_000_000, 5, tail.clone(), loss(10_000_000_000), None);
    let red = QueueConfig::Red {
        limit_bytes: 1 << 20,
        min_bytes: 30_000,
        max_bytes: 90_000,
        max_probability_ppm: 100_000,
        weight_shift: 9,
        ecn: false,
    };
    measure("RED", 10_000_000_000, 5, red, none.clone(), None);
    let codel = QueueConfig::Codel { limit_packets: 1000, target, interval, ecn: false };
    measure("CoDel", 10_000_000_000, 5, codel, none.clone(), None);
    let fq =
        QueueConfig::FqCodel { limit_packets: 10_240, flows: 1024, quantum_bytes: 1514, target, interval, ecn: false };
    measure("FQ-CoDel", 10_000_000_000, 5, fq, none.clone(), None);
    for (name, distribution, reordering) in [
        ("uniform jitter, in order", JitterDistribution::Uniform, false),
        ("exponential jitter, in order", JitterDistribution::Exponential, false),
        ("normal jitter, reordering", JitterDistribution::Normal, true),
    ] {
        let jitter = Jitter { distribution, scale: Span::from_millis(1), reordering };
        measure(name, 10_000_000_000, 5, tail.clone(), none.clone(), Some(jitter));
    }
}
