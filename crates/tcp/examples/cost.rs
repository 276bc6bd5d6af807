//! Nanoseconds per data segment of senders and of receivers apart, as an engine calls them that hands each endpoint all
//! its arrivals of a few milliseconds in one loop.
//!
//! `cargo run --release -p tcp --example cost -- [FLOWS] [WINDOW_SEGMENTS] [LOSS_ONE_IN] [ROUNDS] [ALGORITHM]
//! [BY_RECEIVER]`
//!
//! With `SINGLE=1` in the environment each segment is handed over alone.
//!
//! The flows share a line of 10 Gbit/s whose round trip is as long as all windows take; at most 8 ms are computed at a
//! time. A round in which another process had the processor costs too much: read the medians, and the means where
//! rounds differ, as with loss. Without arguments all cases of the list below are measured.

#![allow(clippy::disallowed_types, reason = "it measures time")]

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;
use tcp::config::Config;
use tcp::segment::{SackBlock, Segment, MAX_SACK_BLOCKS};
use tcp::{Arrival, Endpoint};
use units::{Size, Time};

/// Time of a packet of 1500 bytes at 10 Gbit/s, ns.
const SPACING_NS: u64 = 1_200;
/// Time computed at once, ns.
const HORIZON_NS: u64 = 8_000_000;

/// One measurement.
struct Case {
    flows: u64,
    /// Segments per window.
    window: u64,
    /// One segment is lost in so many; 0: none.
    loss: u64,
    rounds: u64,
    /// The receiver's window is the limit, not the congestion window.
    by_receiver: bool,
}

/// The cases that are measured without arguments.
const CASES: [Case; 6] = [
    Case { flows: 1, window: 8_333, loss: 0, rounds: 2_000, by_receiver: false },
    Case { flows: 1, window: 100_000, loss: 0, rounds: 2_000, by_receiver: false },
    Case { flows: 1, window: 100_000, loss: 0, rounds: 2_000, by_receiver: true },
    Case { flows: 1_000, window: 60, loss: 0, rounds: 1_000, by_receiver: false },
    Case { flows: 1, window: 8_333, loss: 10_000, rounds: 4_000, by_receiver: false },
    Case { flows: 16, window: 1_000, loss: 1_000, rounds: 4_000, by_receiver: false },
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: u64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let single = std::env::var_os("SINGLE").is_some();
    let algorithm = args.get(4).map_or("cubic", String::as_str);
    if args.is_empty() {
        for case in &CASES {
            measure(case, algorithm, single);
        }
    } else {
        let (flows, window, loss, rounds) = (number(0, 1), number(1, 8_333), number(2, 0), number(3, 2_000));
        measure(&Case { flows, window, loss, rounds, by_receiver: number(5, 0) > 0 }, algorithm, single);
    }
}

/// A segment on its way: what a simulator keeps of it.
#[derive(Clone, Copy)]
struct Packet {
    at: u64,
    seq: u64,
    ack: u64,
    window: u32,
    flags: u16,
    sack_count: u8,
    ts_val: u32,
    ts_ecr: u32,
    len: u32,
}

impl Packet {
    #[inline]
    fn of(seg: &Segment) -> Packet {
        let &Segment { seq, ack, window, flags, sack_count, ts_val, ts_ecr, len, .. } = seg;
        Packet { at: 0, seq, ack, window, flags, sack_count, ts_val, ts_ecr, len }
    }

    #[inline]
    fn arrival(&self) -> Arrival {
        let &Packet { at, seq, ack, window, flags, sack_count, ts_val, ts_ecr, len } = self;
        Arrival { at: Time(at), seq, ack, window, flags, sack_count, ts_val, ts_ecr, len }
    }
}

/// One direction of a flow.
#[derive(Default)]
struct Pipe {
    packets: Vec<Packet>,
    /// Those before it have arrived.
    head: usize,
    sacks: VecDeque<[SackBlock; MAX_SACK_BLOCKS]>,
}

impl Pipe {
    #[inline]
    fn send(&mut self, at: u64, seg: &Segment) {
        self.packets.push(Packet { at, ..Packet::of(seg) });
        if seg.sack_count > 0 {
            self.sacks.push_back(seg.sacks);
        }
    }

    /// Time of the next arrival before `end`.
    #[inline]
    fn next(&self, end: u64) -> Option<u64> {
        self.packets.get(self.head).map(|p| p.at).filter(|&at| at < end)
    }

    /// Those that have not arrived.
    #[inline]
    fn rest(&self) -> impl Iterator<Item = Arrival> + use<'_> {
        self.packets[self.head..].iter().map(Packet::arrival)
    }

    /// Writes the next packet into `seg`.
    #[inline]
    fn take(&mut self, seg: &mut Segment) {
        let p = &self.packets[self.head];
        self.head += 1;
        seg.seq = p.seq;
        seg.ack = p.ack;
        seg.window = p.window;
        seg.flags = p.flags;
        seg.sack_count = p.sack_count;
        seg.ts_val = p.ts_val;
        seg.ts_ecr = p.ts_ecr;
        seg.len = p.len;
        if p.sack_count > 0 {
            seg.sacks = self.sacks.pop_front().expect("the blocks of a packet that has some");
        }
    }

    /// Forgets those that have arrived, where they are the most.
    #[inline]
    fn tidy(&mut self) {
        if 2 * self.head > self.packets.len() {
            self.packets.drain(..self.head);
            self.head = 0;
        }
    }
}

struct Flow {
    sender: Endpoint,
    receiver: Endpoint,
    forward: Pipe,
    back: Pipe,
    line_free: u64,
}

/// The line of one flow.
struct Line {
    one_way: u64,
    spacing: u64,
    loss: u64,
    lottery: u64,
    /// Hand over one segment at a time.
    single: bool,
}

impl Line {
    fn is_lost(&mut self) -> bool {
        self.lottery = self.lottery.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.loss > 0 && (self.lottery >> 33).is_multiple_of(self.loss)
    }
}

fn send_train(now: u64, flow: &mut Flow, seg: &mut Segment, line: &mut Line) {
    loop {
        let train = flow.sender.poll_train(Time(now), seg, u32::MAX);
        for _ in 0..train.segments {
            flow.line_free = flow.line_free.max(now) + line.spacing;
            if !line.is_lost() {
                flow.forward.send(flow.line_free + line.one_way, seg);
            }
            seg.seq += u64::from(seg.len);
        }
        if train.segments == 0 || !train.more {
            return;
        }
    }
}

/// The sender takes the ACKs that arrive before `end`.
#[inline(never)]
fn senders(flows: &mut [Flow], end: u64, seg: &mut Segment, line: &mut Line) {
    for flow in flows {
        while flow.back.next(end).is_some() {
            if !line.single {
                let arrivals = flow.back.rest();
                flow.back.head += flow.sender.handle_run(Time(end), arrivals, |at: Time, seg: &Segment, segments| {
                    let mut packet = Packet::of(seg);
                    for _ in 0..segments {
                        flow.line_free = flow.line_free.max(at.0) + line.spacing;
                        if !line.is_lost() {
                            packet.at = flow.line_free + line.one_way;
                            flow.forward.packets.push(packet);
                        }
                        packet.seq += u64::from(packet.len);
                    }
                });
            }
            let Some(at) = flow.back.next(end) else { break };
            send_timers(flow, at, seg, line);
            flow.back.take(seg);
            flow.sender.handle_segment(Time(at), seg);
            if !flow.sender.is_idle() {
                send_train(at, flow, seg, line);
            }
        }
        send_timers(flow, end - 1, seg, line);
        flow.back.tidy();
    }
}

#[inline]
fn send_timers(flow: &mut Flow, until: u64, seg: &mut Segment, line: &mut Line) {
    while flow.sender.poll_timeout().0 <= until {
        let due = flow.sender.poll_timeout();
        flow.sender.handle_timeout(due);
        send_train(due.0, flow, seg, line);
    }
}

/// The receiver takes the segments that arrive before `end`; returns how many.
#[inline(never)]
fn receivers(flows: &mut [Flow], end: u64, seg: &mut Segment, line: &Line) -> u64 {
    let mut arrived = 0;
    for flow in flows {
        let before = flow.forward.head;
        while flow.forward.next(end).is_some() {
            if !line.single {
                let arrivals = flow.forward.rest();
                flow.forward.head += flow.receiver.handle_run(Time(end), arrivals, |at: Time, seg: &Segment, _| {
                    flow.back.send(at.0 + line.one_way, seg);
                });
            }
            let Some(at) = flow.forward.next(end) else { break };
            receive_timers(flow, at, seg, line);
            flow.forward.take(seg);
            flow.receiver.handle_segment(Time(at), seg);
            if !flow.receiver.is_idle() {
                acknowledge(at, flow, seg, line);
            }
        }
        receive_timers(flow, end - 1, seg, line);
        arrived += (flow.forward.head - before) as u64;
        flow.forward.tidy();
    }
    arrived
}

#[inline]
fn acknowledge(now: u64, flow: &mut Flow, seg: &mut Segment, line: &Line) {
    loop {
        let train = flow.receiver.poll_train(Time(now), seg, u32::MAX);
        if train.segments == 0 {
            return;
        }
        flow.back.send(now + line.one_way, seg);
        if !train.more {
            return;
        }
    }
}

#[inline]
fn receive_timers(flow: &mut Flow, until: u64, seg: &mut Segment, line: &Line) {
    while flow.receiver.poll_timeout().0 <= until {
        let due = flow.receiver.poll_timeout();
        flow.receiver.handle_timeout(due);
        acknowledge(due.0, flow, seg, line);
    }
}

fn measure(case: &Case, algorithm: &str, single: bool) {
    let &Case { flows: count, window, loss, rounds, by_receiver } = case;
    let control = congestion::find(algorithm).expect("a built-in algorithm");
    let make = || congestion::Controller::new(&control, &BTreeMap::new()).expect("its defaults");
    let cfg = Config {
        initial_cwnd: window as u32,
        cwnd_clamp: Some(if by_receiver { 2 * window } else { window } as u32),
        sack_compression: false,
        receive_window: Size(if by_receiver { window * 1_448 } else { 1 << 30 }),
        ..Config::default()
    };
    let one_way = count * window * SPACING_NS / 2;
    let mut line = Line { one_way, spacing: count * SPACING_NS, loss, lottery: 1, single };
    let mut seg = Segment::default();
    let mut flows: Vec<Flow> = (0..count)
        .map(|_| Flow {
            sender: Endpoint::new_client(cfg.clone(), make(), Time::ZERO),
            receiver: Endpoint::new_server(cfg.clone(), make(), Time::ZERO),
            forward: Pipe::default(),
            back: Pipe::default(),
            line_free: 0,
        })
        .collect();
    for flow in &mut flows {
        flow.sender.connect(Time::ZERO);
        flow.sender.write(Time::ZERO, u64::MAX / 4);
        send_train(0, flow, &mut seg, &mut Line { loss: 0, ..line });
    }
    let horizon = HORIZON_NS.min(one_way);
    let mut costs = [vec![], vec![]];
    let mut segments = 0;
    for round in 1..=rounds {
        let end = round * horizon;
        let start = Instant::now();
        let arrived = receivers(&mut flows, end, &mut seg, &line);
        let between = Instant::now();
        senders(&mut flows, end, &mut seg, &mut line);
        let finish = Instant::now();
        if round > rounds / 4 && arrived > 0 {
            costs[0].push(((finish - between).as_nanos() as f64, arrived as f64));
            costs[1].push(((between - start).as_nanos() as f64, arrived as f64));
            segments += arrived;
        }
    }
    let [sender, receiver] = costs.map(|costs| {
        let mean = costs.iter().map(|cost| cost.0).sum::<f64>() / costs.iter().map(|cost| cost.1).sum::<f64>();
        let mut each: Vec<f64> = costs.iter().map(|cost| cost.0 / cost.1).collect();
        each.sort_unstable_by(f64::total_cmp);
        format!("{:.1} ns (mean {mean:.1})", each[each.len() / 2])
    });
    let stats = flows[0].sender.stats();
    println!(
        "{count} flows of {algorithm}, window {window}{}, loss {}: sender {sender}, receiver {receiver} per data \
         segment ({segments} segments, first flow: {} RTT samples, {} retransmitted, {} time-outs, cwnd {})",
        if by_receiver { " of the receiver" } else { "" },
        if loss > 0 { format!("1/{loss}") } else { "0".into() },
        stats.rtt_samples,
        stats.retransmitted_segments,
        stats.timeouts,
        flows[0].sender.controller().sock().snd_cwnd,
    );
}
