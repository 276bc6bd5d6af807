//! The limit of the bench: what a packet costs when nothing is done with it.
//!
//! One sender and one receiver, three FIFO hops each way, an acknowledgement for every two packets, one pending event
//! per link, a binary heap of events ordered by time and number, and a fixed window instead of a transport. No loss, no
//! queue limit, no timers, no statistics: a simulator with a TCP inside can only be slower.
//!
//!     rustc -C opt-level=3 -o skeleton skeleton.rs && ./skeleton RATE_BPS RTT_NS PACKETS
//!
//! It prints one JSON line: packets delivered, events handled, CPU seconds of the loop, peak memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A data packet, bytes.
const DATA_BYTES: u32 = 1500;
/// An acknowledgement, bytes.
const ACK_BYTES: u32 = 52;
/// Data packets per acknowledgement.
const PACKETS_PER_ACK: u64 = 2;
/// Hops in each direction; links 0..HOPS carry data, HOPS..2*HOPS acknowledgements.
const HOPS: usize = 3;
/// Bits of an event's key that name the link; the 56 above them number the events.
const LINK_BITS: u32 = 8;

#[derive(Clone, Copy)]
struct Packet {
    /// Data: its number; acknowledgement: all packets below are delivered.
    number: u64,
    bytes: u32,
}

struct Link {
    /// ns per byte, in 2^-32 ns: exact enough, and a multiplication.
    ns_per_byte_e32: u64,
    delay_ns: u64,
    /// Time at which the line has sent its whole queue, ns.
    free_ns: u64,
    /// Packets queued and on the line, with the time each arrives at the far end.
    waiting: VecDeque<(u64, Packet)>,
}

struct World {
    links: Vec<Link>,
    /// One key per event, see `key`.
    events: BinaryHeap<Reverse<u128>>,
    next_event: u64,
}

/// Time, then number of the event (so that order is total), then the link whose head arrives, in one integer: a heap
/// compares these a fifth faster than tuples.
fn key(time_ns: u64, event: u64, link: usize) -> u128 {
    (u128::from(time_ns) << 64) | (u128::from(event) << LINK_BITS) | link as u128
}

impl World {
    fn send(&mut self, now_ns: u64, index: usize, packet: Packet) {
        let link = &mut self.links[index];
        let start_ns = now_ns.max(link.free_ns);
        link.free_ns = start_ns + ((u64::from(packet.bytes) * link.ns_per_byte_e32) >> 32);
        let arrives_ns = link.free_ns + link.delay_ns;
        link.waiting.push_back((arrives_ns, packet));
        if link.waiting.len() == 1 {
            self.schedule(arrives_ns, index);
        }
    }

    fn schedule(&mut self, time_ns: u64, index: usize) {
        self.events.push(Reverse(key(time_ns, self.next_event, index)));
        self.next_event += 1;
    }

    /// The head of a link's FIFO arrives; its successor, if any, becomes the link's pending event.
    fn arrive(&mut self, index: usize) -> Packet {
        let (_, packet) = self.links[index].waiting.pop_front().expect("an event stands for a waiting packet");
        if let Some(&(next_ns, _)) = self.links[index].waiting.front() {
            self.schedule(next_ns, index);
        }
        packet
    }
}

/// User and system time of this process, s, from /proc/self/schedstat (first field: ns on a CPU).
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux with scheduler statistics");
    let ns: u64 = text.split_whitespace().next().and_then(|field| field.parse().ok()).expect("first field is ns");
    ns as f64 / 1e9
}

/// Largest resident size of this process, bytes (VmHWM of proc(5)).
fn peak_rss_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    1024 * line.split_whitespace().nth(1).and_then(|field| field.parse::<u64>().ok()).expect("a size in KiB")
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<f64>().expect("a number"));
    let mut next = |name: &str| arguments.next().unwrap_or_else(|| panic!("missing {name}")) as u64;
    let (rate_bps, rtt_ns, packets) = (next("rate, bit/s"), next("RTT, ns"), next("packets to deliver"));

    // As the bench's dumbbell: access links four times as fast, a tenth of the one-way delay each.
    let link = |rate_bps: u64, delay_ns: u64| Link {
        ns_per_byte_e32: ((8_000_000_000u128 << 32) / u128::from(rate_bps)) as u64,
        delay_ns,
        free_ns: 0,
        waiting: VecDeque::new(),
    };
    let (near_ns, far_ns) = (rtt_ns / 20, rtt_ns / 5 * 2);
    let one_way = || [link(4 * rate_bps, near_ns), link(rate_bps, far_ns), link(4 * rate_bps, near_ns)];
    let mut world =
        World { links: one_way().into_iter().chain(one_way()).collect(), events: BinaryHeap::new(), next_event: 0 };

    // One and a half bandwidth-delay products: the line is busy and half of the queue of one product is used.
    let product = (u128::from(rate_bps) * u128::from(rtt_ns) / 8_000_000_000 / u128::from(DATA_BYTES)) as u64;
    let window = (product + product / 2).max(2 * PACKETS_PER_ACK);

    let (mut sent, mut delivered, mut events) = (0, 0, 0u64);
    let began_s = cpu_s();
    while sent < window {
        world.send(0, 0, Packet { number: sent, bytes: DATA_BYTES });
        sent += 1;
    }
    while delivered < packets {
        let Some(Reverse(key)) = world.events.pop() else { break };
        let (now_ns, index) = ((key >> 64) as u64, (key & ((1 << LINK_BITS) - 1)) as usize);
        events += 1;
        let packet = world.arrive(index);
        if index + 1 == 2 * HOPS {
            while sent < packet.number + window {
                world.send(now_ns, 0, Packet { number: sent, bytes: DATA_BYTES });
                sent += 1;
            }
        } else if index + 1 == HOPS {
            delivered += 1;
            if delivered % PACKETS_PER_ACK == 0 {
                world.send(now_ns, HOPS, Packet { number: packet.number + 1, bytes: ACK_BYTES });
            }
        } else {
            world.send(now_ns, index + 1, packet);
        }
    }
    let cpu_s = cpu_s() - began_s;
    let peak_rss_bytes = peak_rss_bytes();
    println!(
        "{{\"delivered_packets\": {delivered}, \"events\": {events}, \"cpu_s\": {cpu_s:.6}, \
         \"peak_rss_bytes\": {peak_rss_bytes}}}"
    );
}
