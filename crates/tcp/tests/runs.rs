//! `handle_run` does what `handle_segment` and `poll_train` do for one segment after the other, `handle_timer_run` what
//! `handle_timeout` and `poll_train` do for one timer after the other.

use std::collections::BTreeMap;
use tcp::config::{Config, Count, Recovery};
use tcp::segment::{SackBlock, Segment};
use tcp::{Arrival, Endpoint};
use units::{Size, Span, Time};

const PHASES: u64 = 400;

/// A path's settings.
struct Case {
    name: &'static str,
    algorithm: &'static str,
    cfg: Config,
    /// Drop each segment of data whose count is a multiple; 0 = none.
    drop: u64,
    /// Bytes written in each phase; 0: without an end at the start.
    write: u64,
    path: Path,
}

/// The path; what is computed at once takes as long as one way.
#[derive(Clone, Copy)]
struct Path {
    /// One way, ns.
    delay_ns: u64,
    /// Time of a segment on the line, ns.
    spacing_ns: u64,
    /// Waiting time for the line beyond which a segment is dropped, ns.
    queue_ns: u64,
    /// Now and then a segment is late by up to this, ns, and overtaken by others; some arrive twice.
    jitter_ns: u64,
}

/// 1 Gbit/s and 8 ms.
const SHORT: Path = Path { delay_ns: 4_000_000, spacing_ns: 12_000, queue_ns: 6_000_000, jitter_ns: 0 };
/// 100 Mbit/s and 200 ms: timers fall within what is computed at once.
const LONG: Path = Path { delay_ns: 100_000_000, spacing_ns: 120_000, queue_ns: 100_000_000, jitter_ns: 0 };
/// 40 Mbit/s and 20 ms, with a long queue.
const SLOW: Path = Path { delay_ns: 10_000_000, spacing_ns: 300_000, queue_ns: 400_000_000, jitter_ns: 0 };

/// One end, with the segments on their way to it and the time to which its timer is set.
struct End {
    endpoint: Endpoint,
    arrivals: Vec<(u64, Segment)>,
    armed: u64,
    /// Firings of the timer, and segments taken in runs.
    fired: u64,
    fired_in_runs: u64,
    in_runs: u64,
    /// Of these, behind a hole.
    held_in_runs: u64,
}

/// Both ends; `log` has each train sent: time, first segment, number.
struct World {
    runs: bool,
    ends: [End; 2],
    line_free: u64,
    sent: u64,
    drop: u64,
    path: Path,
    lottery: u64,
    log: Vec<String>,
}

impl World {
    fn new(case: &Case, runs: bool) -> World {
        let algorithm = congestion::find(case.algorithm).expect("a built-in algorithm");
        let make = || congestion::Controller::new(&algorithm, &BTreeMap::new()).expect("its defaults");
        let end = |endpoint| End {
            endpoint,
            arrivals: vec![],
            armed: u64::MAX,
            fired: 0,
            fired_in_runs: 0,
            in_runs: 0,
            held_in_runs: 0,
        };
        let ends = [
            end(Endpoint::new_client(case.cfg.clone(), make(), Time::ZERO)),
            end(Endpoint::new_server(case.cfg.clone(), make(), Time::ZERO)),
        ];
        World { runs, ends, line_free: 0, sent: 0, drop: case.drop, path: case.path, lottery: 1, log: vec![] }
    }

    /// A train leaves end `side`.
    fn depart(&mut self, side: usize, now: u64, first: &Segment, segments: u32) {
        let mut segment = *first;
        segment.sacks[usize::from(first.sack_count)..].fill(SackBlock::default());
        self.log.push(format!("{side} {now} {segments} {segment:?}"));
        for _ in 0..segments {
            let mut at = now + self.path.delay_ns;
            let mut lost = false;
            if segment.len > 0 {
                self.sent += 1;
                let free = self.line_free.max(now);
                lost = free - now > self.path.queue_ns || (self.drop > 0 && self.sent.is_multiple_of(self.drop));
                if !lost {
                    self.line_free = free + self.path.spacing_ns;
                    at += self.line_free - now;
                }
            }
            if !lost {
                at += self.lateness();
                self.ends[1 - side].arrivals.push((at, segment));
                if self.path.jitter_ns > 0 && self.lottery.is_multiple_of(997) {
                    self.ends[1 - side].arrivals.push((at, segment));
                }
            }
            segment.seq += u64::from(segment.len);
        }
    }

    /// Trains of a run leave end `side`, and its timer is set.
    fn depart_all(&mut self, side: usize, trains: Vec<(u64, Segment, u32)>) {
        for (at, segment, segments) in trains {
            self.depart(side, at, &segment, segments);
        }
        self.arm(side);
    }

    /// Of one segment in 500 on a path with jitter, ns.
    fn lateness(&mut self) -> u64 {
        self.lottery =
            self.lottery.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 1;
        if self.path.jitter_ns > 0 && (self.lottery >> 20).is_multiple_of(500) {
            (self.lottery >> 32) % self.path.jitter_ns
        } else {
            0
        }
    }

    /// Sends all that end `side` has, and sets its timer as a simulator does.
    fn pump(&mut self, side: usize, now: u64) {
        let mut segment = Segment::default();
        loop {
            let train = self.ends[side].endpoint.poll_train(Time(now), &mut segment, u32::MAX);
            if train.segments > 0 {
                self.depart(side, now, &segment, train.segments);
            }
            if train.segments == 0 || !train.more {
                break;
            }
        }
        self.arm(side);
    }

    fn arm(&mut self, side: usize) {
        let end = &mut self.ends[side];
        end.armed = end.armed.min(end.endpoint.poll_timeout().0);
    }

    fn fire(&mut self, side: usize, until: u64) {
        while self.ends[side].armed < until {
            let end = &mut self.ends[side];
            let due = std::mem::replace(&mut end.armed, u64::MAX);
            if self.runs {
                let mut trains = vec![];
                let send = |at: Time, seg: &Segment, n| trains.push((at.0, *seg, n));
                let (_, fired) = end.endpoint.handle_timer_run(Time(due), Time(until), send);
                end.fired += fired;
                end.fired_in_runs += fired - 1;
                self.depart_all(side, trains);
                continue;
            }
            end.fired += 1;
            end.endpoint.handle_timeout(Time(due));
            self.pump(side, due);
        }
    }

    /// End `side` takes all that arrives before `end`.
    fn take(&mut self, side: usize, end: u64) {
        let mut arrivals = std::mem::take(&mut self.ends[side].arrivals);
        arrivals.sort_by_key(|arrival| arrival.0);
        let count = arrivals.partition_point(|arrival| arrival.0 < end);
        self.ends[side].arrivals = arrivals.split_off(count);
        let mut index = 0;
        while index < count {
            if self.runs {
                let mut trains = vec![];
                let this = &mut self.ends[side];
                let until = Time(this.armed.min(end));
                let rest = arrivals[index..].iter().map(|(at, s)| Arrival {
                    at: Time(*at),
                    seq: s.seq,
                    ack: s.ack,
                    window: s.window,
                    flags: s.flags,
                    sack_count: s.sack_count,
                    ts_val: s.ts_val,
                    ts_ecr: s.ts_ecr,
                    len: s.len,
                });
                let held = this.endpoint.stats().out_of_order_segments;
                let taken =
                    this.endpoint.handle_run(until, rest, |at: Time, seg: &Segment, n| trains.push((at.0, *seg, n)));
                this.in_runs += taken as u64;
                this.held_in_runs += this.endpoint.stats().out_of_order_segments - held;
                index += taken;
                self.depart_all(side, trains);
                if index == count {
                    break;
                }
            }
            let (at, segment) = arrivals[index];
            self.fire(side, at + 1);
            self.ends[side].endpoint.handle_segment(Time(at), &segment);
            self.pump(side, at);
            index += 1;
        }
        self.fire(side, end);
    }

    /// All that can be told apart.
    fn state(&self) -> String {
        let ends = self.ends.each_ref().map(|end| format!("{:?} {} {}", end.endpoint, end.armed, end.fired));
        ends.join("\n")
    }
}

/// Returns the segments behind a hole that were taken in runs.
fn compare(case: &Case) -> u64 {
    let mut worlds = [World::new(case, false), World::new(case, true)];
    for phase in 0..PHASES {
        let (start, end) = (phase * case.path.delay_ns, (phase + 1) * case.path.delay_ns);
        for world in &mut worlds {
            if phase == 0 {
                world.ends[0].endpoint.connect(Time::ZERO);
            }
            if phase == 0 || case.write > 0 {
                let bytes = if case.write == 0 { 1 << 40 } else { case.write };
                world.ends[0].endpoint.write(Time(start), bytes);
                world.pump(0, start);
            }
            world.take(1, end);
            world.take(0, end);
        }
        let [single, run] = &mut worlds;
        for (a, b) in single.log.iter().zip(&run.log) {
            assert_eq!(a, b, "{}, phase {phase}", case.name);
        }
        assert_eq!(single.log.len(), run.log.len(), "{}, phase {phase}", case.name);
        single.log.clear();
        run.log.clear();
        if phase % 25 == 24 {
            assert!(
                single.state() == run.state(),
                "{}, phase {phase}: {}\n\n{}",
                case.name,
                single.state(),
                run.state()
            );
        }
    }
    let [sender, receiver] = &worlds[1].ends;
    let (acks, data) = (receiver.endpoint.stats().acks_sent, sender.endpoint.stats().data_segments_sent);
    let (timers, is_paced) = (sender.fired_in_runs, case.cfg.pacing || case.algorithm == "bbr");
    // Between two bursts there are ACKs.
    let has_bursts = is_paced && case.cfg.tso_autosizing && case.cfg.recovery == Recovery::Rack;
    assert!(
        data > 300 && (has_bursts || timers + sender.in_runs > acks / 4),
        "{}: {} of {acks} ACKs in runs",
        case.name,
        sender.in_runs
    );
    assert!(!is_paced || has_bursts || timers > data / 4, "{}: {timers} timers of {data} segments in runs", case.name);
    assert!(receiver.in_runs > data / 4, "{}: {} of {data} segments in runs", case.name, receiver.in_runs);
    receiver.held_in_runs
}

#[test]
fn a_run_is_one_call_after_the_other() {
    let usual = Config { sack_compression: false, ..Config::default() };
    let on = |path, name, algorithm, cfg: &Config, drop, write| Case {
        name,
        algorithm,
        cfg: cfg.clone(),
        drop,
        write,
        path,
    };
    let case = |name, algorithm, cfg, drop, write| on(SHORT, name, algorithm, cfg, drop, write);
    let alone = Config { tso_autosizing: false, ..Config::default() };
    let narrow = Config { receive_window: Size(400_000), ..usual.clone() };
    let plain = Config { timestamps: false, delayed_ack: false, ..usual.clone() };
    let buffered = Config { send_buffer: Some(Size(1_000_000)), ..usual.clone() };
    let short_rto = Config { rto_min: Span::from_micros(500), ..usual.clone() };
    let sack = Config { recovery: Recovery::Sack, ..usual.clone() };
    // A window that no queue drops: without SACK a round-trip time repairs one loss.
    let newreno = Config { recovery: Recovery::NewReno, receive_window: Size(600_000), ..plain.clone() };
    let as_ns2 = Config { recovery: Recovery::Reno, count: Count::Acks, cwnd_validation: false, ..newreno.clone() };
    let held: Vec<u64> = [
        case("queue", "cubic", &usual, 0, 0),
        case("loss", "cubic", &Config::default(), 1_009, 0),
        case("reno with loss", "reno", &usual, 4_001, 0),
        case("the peer's window", "cubic", &narrow, 0, 0),
        case("without timestamps and delayed ACKs", "reno", &plain, 5_003, 0),
        on(
            SLOW,
            "time-outs without timestamps",
            "reno",
            &Config { rto_min: Span::from_millis(1), ..plain.clone() },
            89,
            0,
        ),
        case("a slow application", "cubic", &usual, 0, 300_077),
        on(Path { delay_ns: 30_000_000, ..SHORT }, "pauses shorter than a delayed ACK", "cubic", &usual, 0, 100_077),
        on(Path { delay_ns: 45_000_000, ..SHORT }, "pauses longer than a delayed ACK", "reno", &usual, 1_009, 30_011),
        on(
            Path { delay_ns: 30_000_000, ..SHORT },
            "pauses longer than the RTO",
            "reno",
            &Config { rto_min: Span::from_millis(1), ..usual.clone() },
            0,
            100_077,
        ),
        case("a send buffer", "reno", &buffered, 0, 400_000),
        on(LONG, "timers", "cubic", &usual, 0, 0),
        on(LONG, "timers with loss", "reno", &usual, 2_003, 0),
        on(SLOW, "a short RTO", "reno", &short_rto, 97, 0),
        on(SLOW, "a short RTO of few segments", "reno", &Config { cwnd_clamp: Some(3), ..short_rto.clone() }, 0, 0),
        on(Path { jitter_ns: 300_000, ..SHORT }, "reordering", "cubic", &usual, 3_001, 0),
        on(Path { jitter_ns: 5_000_000, ..LONG }, "reordering on a long path", "reno", &Config::default(), 0, 0),
        case("SACK without RACK", "cubic", &sack, 1_009, 0),
        case("NewReno", "reno", &newreno, 4_001, 0),
        on(Path { jitter_ns: 300_000, ..SHORT }, "NewReno and duplicates", "cubic", &newreno, 0, 0),
        case("SACK and the peer's window", "reno", &Config { recovery: Recovery::Sack, ..narrow.clone() }, 0, 0),
        case("SACK and a slow application", "reno", &sack, 0, 300_077),
        on(LONG, "SACK and timers", "reno", &sack, 2_003, 0),
        on(SLOW, "SACK and a short RTO", "reno", &Config { recovery: Recovery::Sack, ..short_rto.clone() }, 97, 0),
        on(Path { jitter_ns: 30_000, ..SHORT }, "SACK and reordering", "cubic", &sack, 3_001, 0),
        case("Reno as in ns-2", "reno", &as_ns2, 9_001, 0),
        case("Reno as in ns-2 and the peer's window", "htcp", &as_ns2, 0, 0),
        case("RACK and growth by ACKs", "reno", &Config { count: Count::Acks, ..usual.clone() }, 2_003, 0),
        case("only time-outs repair", "reno", &Config { fast_retransmit: false, ..sack.clone() }, 5_003, 0),
        case("SACK compression", "reno", &Config::default(), 4_001, 0),
        case("SACK compression and many holes", "htcp", &Config::default(), 61, 0),
        case(
            "SACK compression without timestamps",
            "cubic",
            &Config { timestamps: false, ..Config::default() },
            997,
            0,
        ),
        on(LONG, "SACK compression on a long path", "reno", &Config::default(), 2_003, 0),
        on(
            Path { jitter_ns: 300_000, ..SHORT },
            "SACK compression and reordering",
            "cubic",
            &Config::default(),
            3_001,
            0,
        ),
        case(
            "SACK compression and no delayed ACKs",
            "cubic",
            &Config { delayed_ack: false, ..Config::default() },
            1_009,
            0,
        ),
        case("BBR", "bbr", &Config::default(), 0, 0),
        case("BBR with loss", "bbr", &Config::default(), 211, 0),
        on(LONG, "BBR on a long path", "bbr", &Config::default(), 2_003, 0),
        case("BBR with a slow application", "bbr", &usual, 0, 300_077),
        case("BBR, each segment alone", "bbr", &alone, 211, 0),
        on(LONG, "loss on a long path, each segment alone", "cubic", &alone, 2_003, 0),
        case("pacing, each segment alone", "reno", &Config { pacing: true, ..alone.clone() }, 1_009, 0),
        case("pacing", "reno", &Config { pacing: true, ..Config::default() }, 1_009, 0),
        on(SLOW, "pacing with a short RTO", "cubic", &Config { pacing: true, ..short_rto.clone() }, 97, 0),
        case("a clamp", "htcp", &Config { cwnd_clamp: Some(200), ..usual.clone() }, 0, 0),
    ]
    .iter()
    .map(compare)
    .collect();
    assert!(held.iter().sum::<u64>() > 10_000, "behind a hole: {held:?}");
}

/// The end of a connection that only receives, with the segment that the other end would send next.
fn receiver(cfg: &Config) -> (Endpoint, Segment, u64) {
    let algorithm = congestion::find("reno").expect("a built-in algorithm");
    let make = || congestion::Controller::new(&algorithm, &BTreeMap::new()).expect("its defaults");
    let mut ends =
        [Endpoint::new_client(cfg.clone(), make(), Time::ZERO), Endpoint::new_server(cfg.clone(), make(), Time::ZERO)];
    let (mut segment, mut now) = (Segment::default(), 0);
    ends[0].connect(Time::ZERO);
    for (from, to) in [(0, 1), (1, 0), (0, 1)] {
        now += 1_000_000;
        while ends[from].poll_transmit(Time(now), &mut segment) {
            ends[to].handle_segment(Time(now), &segment);
        }
    }
    let [mut sender, receiver] = ends;
    sender.write(Time(now), 1 << 20);
    assert!(sender.poll_transmit(Time(now), &mut segment));
    (receiver, segment, now)
}

/// Some bytes of what begins with `first`.
fn part(first: &Segment, after: u64, len: u32) -> Segment {
    let mut segment = *first;
    segment.seq += after;
    segment.len = len;
    segment
}

/// Its block goes, from this ACK on.
#[test]
fn a_segment_behind_a_hole_may_fill_the_place_of_another() {
    let cfg = Config { recovery: Recovery::Sack, sack_compression: false, quickack_segments: 0, ..Config::default() };
    let [single, run] = [false, true].map(|runs| {
        let (mut end, first, now) = receiver(&cfg);
        let segment = |after, len| part(&first, after, len);
        let mut blocks = vec![];
        let mut note = |ack: &Segment| blocks.push(ack.sacks[..usize::from(ack.sack_count)].to_vec());
        let mut ack = Segment::default();
        end.handle_segment(Time(now), &segment(2_500, 100));
        assert!(end.poll_transmit(Time(now), &mut ack));
        let coming = [segment(1_000, 1_000), segment(2_000, 1_000), segment(10_000, 1_000)];
        if runs {
            let arrivals = coming.map(|s| Arrival {
                at: Time(now),
                seq: s.seq,
                ack: s.ack,
                window: s.window,
                flags: s.flags,
                sack_count: 0,
                ts_val: s.ts_val,
                ts_ecr: s.ts_ecr,
                len: s.len,
            });
            assert_eq!(end.handle_run(Time::NEVER, arrivals.into_iter(), |_, seg: &Segment, _| note(seg)), 3);
        } else {
            for segment in coming {
                end.handle_segment(Time(now), &segment);
                assert!(end.poll_transmit(Time(now), &mut ack));
                note(&ack);
            }
        }
        (blocks, format!("{end:?}"))
    });
    assert_eq!(single.0, run.0);
    assert_eq!(single.1, run.1);
}
