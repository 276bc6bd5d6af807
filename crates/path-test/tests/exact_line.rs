//! A line with a queue, a token bucket before it and another clock at its end: exact, in closed form.

use path_test::estimate::{Estimator, Next, Outcome};
use path_test::train::{Train, TrainPacket, TrainReport};

/// The path, with fluid-free arithmetic in ns.
#[derive(Clone)]
pub struct Line {
    pub rate_bps: u64,
    pub delay_ns: u64,
    /// Bytes that may wait.
    pub queue_bytes: u64,
    /// Rate, bit/s, and size, bytes, of a bucket; true: packets without tokens wait for them.
    pub bucket: Option<(u64, f64, bool)>,
    pub stamp_step_ns: u64,
    /// The receiver takes packets at multiples of this, ns.
    pub coalescing_ns: u64,
    /// Least time between two packets of the sender, ns.
    pub sender_gap_ns: u64,
    pub skew_e9: u64,
    /// The sender's host is away for so many ns at every so many packets' time; 0: never.
    pub stalls: (u64, u64),
    /// State: of the bucket, of the line, of the shaper.
    pub tokens: f64,
    pub filled_ns: u64,
    pub free_ns: u64,
    pub shaped_ns: u64,
}

impl Line {
    pub fn new(rate_bps: u64) -> Line {
        Line {
            rate_bps,
            delay_ns: 10_000_000,
            queue_bytes: u64::MAX,
            bucket: None,
            stamp_step_ns: 1,
            coalescing_ns: 1,
            sender_gap_ns: 0,
            skew_e9: 0,
            stalls: (0, 0),
            tokens: f64::INFINITY,
            filled_ns: 0,
            free_ns: 0,
            shaped_ns: 0,
        }
    }

    fn pass(&mut self, at_ns: u64, bytes: u32) -> Option<u64> {
        let mut at_ns = at_ns;
        if let Some((rate, size, shaper)) = self.bucket {
            let earned = (at_ns.max(self.filled_ns) - self.filled_ns) as f64 * rate as f64 / 8e9;
            self.tokens = (self.tokens + earned).min(size);
            self.filled_ns = self.filled_ns.max(at_ns);
            let needs = f64::from(bytes);
            if self.tokens < needs {
                if !shaper {
                    return None;
                }
                at_ns = self.filled_ns + ((needs - self.tokens) * 8e9 / rate as f64) as u64;
                self.filled_ns = at_ns;
                self.tokens = needs;
            }
            self.tokens -= needs;
            at_ns = at_ns.max(self.shaped_ns);
            self.shaped_ns = at_ns;
        }
        let takes = u64::from(bytes) * 8_000_000_000 / self.rate_bps;
        let waiting = self.free_ns.saturating_sub(at_ns);
        if u128::from(waiting) * u128::from(self.rate_bps) / 8_000_000_000 > u128::from(self.queue_bytes) {
            return None;
        }
        self.free_ns = self.free_ns.max(at_ns) + takes;
        Some(self.free_ns + self.delay_ns)
    }

    fn send(&mut self, begin_ns: u64, train: &Train) -> TrainReport {
        let (mut last, mut late) = (0, 0);
        let packet = |(at, &offset): (usize, &u64)| {
            let due_ns = begin_ns + offset;
            let stalls = self.stalls.1 > 0 && (at as u64).is_multiple_of(self.stalls.1);
            let sent_ns = (due_ns + if stalls { self.stalls.0 } else { 0 }).max(last);
            late += u32::from(sent_ns > due_ns + 100_000);
            last = sent_ns + self.sender_gap_ns;
            let received_ns = self.pass(sent_ns, train.packet_bytes).map(|at| {
                let at = at.div_ceil(self.coalescing_ns) * self.coalescing_ns;
                let at = at + at * self.skew_e9 / 1_000_000_000 + 77_000_000_000;
                at / self.stamp_step_ns * self.stamp_step_ns
            });
            TrainPacket { sent_ns, received_ns, returned_ns: received_ns.map(|_| last), router: None }
        };
        let packets = train.offsets_ns.iter().enumerate().map(packet).collect();
        TrainReport { packets, stamp_step_ns: self.stamp_step_ns, late }
    }

    /// Runs `estimator` to its end.
    pub fn run(&mut self, mut estimator: Box<dyn Estimator>) -> Outcome {
        let mut now_ns = 1_000_000;
        for _ in 0..1000 {
            match estimator.poll_next(now_ns) {
                Next::Done(outcome) => return outcome,
                Next::Send { at_ns, train } => {
                    assert!(train.offsets_ns.is_sorted(), "offsets never fall");
                    let begin_ns = at_ns.max(now_ns);
                    let report = self.send(begin_ns, &train);
                    let end_ns = begin_ns + train.offsets_ns.last().copied().unwrap_or(0);
                    now_ns = end_ns.max(self.free_ns) + 2 * self.delay_ns;
                    estimator.handle_report(now_ns, &report);
                }
            }
        }
        panic!("no end after 1000 trains");
    }
}
