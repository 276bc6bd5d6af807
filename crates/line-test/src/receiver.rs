//! The receiver's side of one stream, in constant memory.

use crate::ethernet::{FCS_BYTES, HEADER_BYTES};
use crate::pattern::Pattern;
use crate::report::{Latency, Report, Window};
use crate::stamp::{Stamp, STAMP_BYTES};
use units::Histogram;

/// Frames behind the highest number of which the receiver knows whether they came.
const KNOWN: u64 = 65_536;
const WORDS: usize = (KNOWN / 64) as usize;
/// Kinds of lengths of runs, each twice as long as the one before; the last has all that are longer.
const LENGTHS: usize = 12;
/// Frames whose smallest latency sets where the histogram begins.
const FIRST: usize = 64;
/// It begins so far below that one, ns: what is smaller counts as this far below, and the finest step is 1 / 128 of it.
const BELOW_FIRST_NS: i64 = 16_384;
const PER_MILLE: [u64; 4] = [500, 900, 990, 999];

/// A frame of the stream.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its stamp.
    pub stamp: Stamp,
    /// Its bytes behind addresses, tag and type, without the check sequence.
    pub content: &'a [u8],
    /// Bytes of the tag that it had on the line.
    pub tag_bytes: usize,
    /// Time of its arrival, ns since 1970 by the receiver's clock.
    pub at_ns: u64,
}

/// Receiver of one stream.
#[derive(Clone, Debug)]
pub struct Receiver {
    report: Report,
    /// Number behind the highest that came.
    next: u64,
    /// One bit for each of the last [`KNOWN`] numbers, by the number modulo it: it came.
    came: Vec<u64>,
    /// Frames of the run of lost ones that ends with the last number that is no longer known.
    run: u64,
    lengths: [u64; LENGTHS],
    first_ns: Option<u64>,
    /// Latencies of the first frames, until there are enough of them, ns.
    first: Vec<i64>,
    /// Latency that the histogram's 0 stands for, ns.
    base_ns: i64,
    latency: Histogram,
    latency_min_ns: i64,
    latency_max_ns: i64,
    latency_sum_ns: i128,
    /// Number and latency of the frame before.
    before: Option<(u64, i64)>,
    variation_sum_ns: u128,
    variations: u64,
    pattern: Option<Pattern>,
    expected: Vec<u8>,
    largest_bytes: usize,
    window: Window,
}

impl Receiver {
    /// A receiver of a stream whose frames have at most so many bytes, with their check sequences.
    pub fn new(largest_bytes: u32) -> Receiver {
        Receiver {
            report: Report::default(),
            next: 0,
            came: vec![0; WORDS],
            run: 0,
            lengths: [0; LENGTHS],
            first_ns: None,
            first: vec![],
            base_ns: 0,
            latency: Histogram::default(),
            latency_min_ns: i64::MAX,
            latency_max_ns: i64::MIN,
            latency_sum_ns: 0,
            before: None,
            variation_sum_ns: 0,
            variations: 0,
            pattern: None,
            expected: vec![],
            largest_bytes: largest_bytes as usize,
            window: Window::default(),
        }
    }

    /// Takes a frame of the stream.
    pub fn handle_frame(&mut self, arrival: &Arrival<'_>) {
        let number = arrival.stamp.sequence;
        if number == u64::MAX || number < self.next.saturating_sub(KNOWN) {
            self.report.too_late += 1;
            return;
        }
        let is_newest = number >= self.next;
        if is_newest {
            self.advance(number);
        } else {
            let bit = 1 << (number % 64);
            if self.came[word(number)] & bit != 0 {
                self.report.duplicates += 1;
                return;
            }
            self.report.reordered += 1;
            self.report.reorder_extent_max = self.report.reorder_extent_max.max(self.next - 1 - number);
        }
        self.came[word(number)] |= 1 << (number % 64);
        self.report.frames += 1;
        self.report.bytes += (HEADER_BYTES + arrival.tag_bytes + arrival.content.len() + FCS_BYTES) as u64;
        self.report.span_ns = arrival.at_ns.saturating_sub(*self.first_ns.get_or_insert(arrival.at_ns));
        self.time(number, arrival.at_ns.wrapping_sub(arrival.stamp.sent_ns) as i64);
        self.compare(arrival);
    }

    /// Counts a frame of the sender whose stamp cannot be read.
    pub fn handle_bad_header(&mut self) {
        self.report.bad_headers += 1;
    }

    /// Makes numbers up to `number` known: those that leave the window are lost or came.
    #[inline]
    fn advance(&mut self, number: u64) {
        let left_out = number - self.next;
        if left_out == 0 {
            self.forget(number);
        } else if left_out < KNOWN {
            (self.next..=number).for_each(|number| self.forget(number));
        } else {
            // All that was known leaves, and of what is between only the last numbers stay undecided.
            (self.next..self.next + KNOWN).for_each(|number| self.forget(number));
            self.run += left_out + 1 - KNOWN;
        }
        self.next = number + 1;
    }

    /// Makes room for a number: what stands in its place, [`KNOWN`] numbers before, is decided.
    #[inline]
    fn forget(&mut self, number: u64) {
        let (at, bit) = (word(number), 1 << (number % 64));
        if number >= KNOWN {
            if self.came[at] & bit == 0 {
                self.run += 1;
            } else if self.run > 0 {
                self.end_run();
            }
        }
        self.came[at] &= !bit;
    }

    fn end_run(&mut self) {
        self.report.loss_events += 1;
        self.report.longest_loss = self.report.longest_loss.max(self.run);
        self.lengths[(self.run.ilog2() as usize).min(LENGTHS - 1)] += 1;
        self.run = 0;
    }

    #[inline]
    fn time(&mut self, number: u64, latency_ns: i64) {
        self.latency_min_ns = self.latency_min_ns.min(latency_ns);
        if self.report.frames > FIRST as u64 {
            self.latency.record(latency_ns.saturating_sub(self.base_ns).max(0) as u64);
        } else {
            self.first.push(latency_ns);
            if self.first.len() == FIRST {
                self.base_ns = self.latency_min_ns.saturating_sub(BELOW_FIRST_NS);
                let above = |latency_ns: i64| latency_ns.saturating_sub(self.base_ns) as u64;
                std::mem::take(&mut self.first).into_iter().for_each(|one| self.latency.record(above(one)));
            }
        }
        self.latency_max_ns = self.latency_max_ns.max(latency_ns);
        self.latency_sum_ns += i128::from(latency_ns);
        if let Some((before, before_ns)) = self.before {
            if before + 1 == number {
                self.variation_sum_ns += u128::from(latency_ns.abs_diff(before_ns));
                self.variations += 1;
            }
        }
        self.before = Some((number, latency_ns));
        let window = &mut self.window;
        let is_first = window.frames == 0;
        window.frames += 1;
        window.latency_sum_ns = window.latency_sum_ns.saturating_add(latency_ns);
        window.latency_min_ns = if is_first { latency_ns } else { window.latency_min_ns.min(latency_ns) };
        window.latency_max_ns = if is_first { latency_ns } else { window.latency_max_ns.max(latency_ns) };
    }

    #[inline]
    fn compare(&mut self, arrival: &Arrival<'_>) {
        let Some(pattern) = Pattern::of(arrival.stamp.pattern) else {
            self.report.errored_frames += 1;
            return;
        };
        if self.pattern != Some(pattern) {
            self.pattern = Some(pattern);
            self.expected = pattern.bytes(self.largest_bytes).split_off(HEADER_BYTES + STAMP_BYTES);
        }
        let is_whole = arrival.content.len() == usize::from(arrival.stamp.content_bytes);
        let got = &arrival.content[STAMP_BYTES..];
        self.report.bits_checked += got.len() as u64 * 8;
        match self.expected.get(..got.len()) {
            Some(expected) if got == expected && is_whole => {}
            Some(expected) => {
                self.report.errored_frames += 1;
                self.report.wrong_lengths += u64::from(!is_whole);
                self.report.bit_errors += got
                    .iter()
                    .zip(expected)
                    .map(|(got, expected)| u64::from((got ^ expected).count_ones()))
                    .sum::<u64>();
            }
            None => {
                self.report.errored_frames += 1;
                self.report.wrong_lengths += 1;
            }
        }
    }

    /// Frames between two calls, and begins to count anew.
    pub fn take_window(&mut self) -> Window {
        std::mem::take(&mut self.window)
    }

    /// The counts so far. With the number of frames that were sent, losses are all of them that did not come; without,
    /// those up to the highest number that came.
    pub fn report(&self, sent: Option<u64>) -> Report {
        let mut decided = self.clone_counts();
        let end = sent.unwrap_or(self.next).max(self.next);
        for number in self.next.saturating_sub(KNOWN)..self.next {
            if self.came[word(number)] & 1 << (number % 64) == 0 {
                decided.run += 1;
            } else if decided.run > 0 {
                decided.end_run();
            }
        }
        decided.run += end - self.next;
        if decided.run > 0 {
            decided.end_run();
        }
        let mut report = decided.report;
        report.lost = end - report.frames;
        report.loss_lengths = (0..)
            .zip(decided.lengths)
            .filter(|(_, count)| *count > 0)
            .map(|(power, count)| (1 << power, count))
            .collect();
        report.latency_ns = self.summary();
        report.ipdv_mean_ns =
            (self.variations > 0).then(|| (self.variation_sum_ns / u128::from(self.variations)) as u64);
        report
    }

    /// The counts, with which runs of lost frames are counted to their end; without the large parts.
    fn clone_counts(&self) -> Receiver {
        Receiver {
            report: self.report.clone(),
            run: self.run,
            lengths: self.lengths,
            came: vec![],
            latency: Histogram::default(),
            expected: vec![],
            first: vec![],
            ..*self
        }
    }

    fn summary(&self) -> Option<Latency> {
        let count = self.report.frames;
        let quantiles = match self.latency.quantiles(&PER_MILLE) {
            found if found.is_empty() => {
                let mut sorted = self.first.clone();
                sorted.sort_unstable();
                let rank = |per_mille: u64| (count * per_mille).div_ceil(1000).max(1) as usize - 1;
                PER_MILLE.iter().map(|per_mille| sorted.get(rank(*per_mille)).copied()).collect::<Option<Vec<_>>>()?
            }
            found => {
                let value = |above: u64| self.base_ns.saturating_add_unsigned(above);
                let within = |value: i64| value.clamp(self.latency_min_ns, self.latency_max_ns);
                found.into_iter().map(|above| within(value(above))).collect()
            }
        };
        let &[p50, p90, p99, p999] = quantiles.as_slice() else { return None };
        Some(Latency {
            min: self.latency_min_ns,
            mean: (self.latency_sum_ns / i128::from(count)) as i64,
            p50,
            p90,
            p99,
            p999,
            max: self.latency_max_ns,
        })
    }
}

#[inline]
fn word(number: u64) -> usize {
    (number % KNOWN / 64) as usize
}
