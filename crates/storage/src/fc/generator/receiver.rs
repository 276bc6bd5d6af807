//! The receiver's side: latency of every frame, loss, duplicates, order.

use super::stamp::Stamp;
use units::Histogram;

/// Frames behind the highest number of which the receiver knows whether they came. One that is later counts as too
/// late: loss, though it came.
const WINDOW: u64 = 65_536;
const WORDS: usize = (WINDOW / 64) as usize;

/// Counts of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Frames that came, each counted once.
    pub received: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Frames that did not come, of those up to the highest number that did.
    pub lost: u64,
    /// Frames that came again.
    pub duplicates: u64,
    /// Frames that came after one with a higher number.
    pub out_of_order: u64,
    /// Frames more than 65,536 numbers late: whether they came before is no longer known. They stay lost.
    pub too_late: u64,
    /// Frames of another load.
    pub foreign: u64,
    /// Frames that claim to be sent after they came: the clocks differ. Their latency counts as 0.
    pub from_the_future: u64,
    /// Time between the first and the last frame's arrival, ns.
    pub span_ns: u64,
}

/// Receiver of one load.
#[derive(Clone, Debug)]
pub struct Receiver {
    load: u32,
    report: Report,
    /// Number behind the highest that came.
    next: u64,
    /// One bit for each of the last [`WINDOW`] numbers, by the number modulo it: it came.
    came: Vec<u64>,
    first_ns: Option<u64>,
    latency: Histogram,
}

impl Receiver {
    /// A receiver of the load with a number.
    pub fn new(load: u32) -> Receiver {
        let report = Report::default();
        Receiver { load, report, next: 0, came: vec![0; WORDS], first_ns: None, latency: Histogram::default() }
    }

    /// Takes the stamp of a frame that came at `now_ns`.
    pub fn handle_stamp(&mut self, stamp: &Stamp, payload_bytes: usize, now_ns: u64) {
        let report = &mut self.report;
        if stamp.load != self.load || stamp.sequence == u64::MAX {
            report.foreign += 1;
            return;
        }
        let number = stamp.sequence;
        if number < self.next.saturating_sub(WINDOW) {
            report.too_late += 1;
            return;
        }
        let in_order = number >= self.next;
        if in_order {
            // Numbers that were left out have not come; all words together are one round of the window.
            for left_out in self.next..=number.min(self.next.saturating_add(WINDOW)) {
                self.came[word(left_out)] &= !(1 << (left_out % 64));
            }
            self.next = number + 1;
        }
        let bit = 1 << (number % 64);
        if self.came[word(number)] & bit != 0 {
            report.duplicates += 1;
            return;
        }
        self.came[word(number)] |= bit;
        report.out_of_order += u64::from(!in_order);
        report.received += 1;
        report.payload_bytes += payload_bytes as u64;
        report.from_the_future += u64::from(stamp.sent_ns > now_ns);
        report.span_ns = now_ns.saturating_sub(*self.first_ns.get_or_insert(now_ns));
        self.latency.record(now_ns.saturating_sub(stamp.sent_ns));
    }

    /// The counts so far.
    pub fn report(&self) -> Report {
        Report { lost: self.next - self.report.received, ..self.report }
    }

    /// Latency of every frame, ns: mean and maximum exact, percentiles within 0.4 %.
    pub fn latency(&self) -> &Histogram {
        &self.latency
    }
}

fn word(number: u64) -> usize {
    (number % WINDOW / 64) as usize
}
