//! One workload over several connections: which connection a message goes to, and when the far side has it in order.
//!
//! A message goes whole to the connection with the least backlog, which is what is written to it and not acknowledged,
//! in turn among equals: one that repairs a loss gets no more until it has caught up. DRBD's load-balanced TCP
//! transport chooses by the same number (its `sk_stream_min_wspace`).

use super::application::{Application, Workload};
use super::copy::{FileCopy, Next};
use super::generator::Generator;
use super::messages::Peak;
use super::order::Order;
use super::sending_end::{SendingEnd, BLOCK_BYTES};
use std::ops::Range;
use units::Time;

/// The connections of a stripe, for as long as a call lasts. Lanes are its connections, counted from 0.
pub trait Lanes {
    /// Their sending end.
    type End: SendingEnd;
    /// Returns true if the connection was begun.
    fn is_open(&self, lane: usize) -> bool;
    /// Returns a connection's part of the workload, and its sending end.
    fn lane(&mut self, lane: usize) -> (&mut Workload, &mut Self::End);
}

/// A workload that several connections share.
pub struct Stripe {
    /// Flow of lane 0; those of the others follow.
    pub first: usize,
    load: Load,
    /// Messages on their way.
    order: Order,
    /// The lane that is asked first.
    turn: usize,
    begun: bool,
    stopped: bool,
    /// Lanes to which something was written, or which have nothing more to write.
    touched: Vec<usize>,
    /// Most bytes issued and not applied at the far side.
    pub at_risk: Peak,
    /// Time of the next piece of a copy of files; [`Time::NEVER`] for other loads, whose calls return theirs.
    due: Time,
    /// `due` is news to whoever keeps the time.
    is_due_new: bool,
}

enum Load {
    /// The rest of a copy, bytes.
    Copy { left: u64 },
    /// Chunks of files.
    Files(Box<FileCopy>),
    /// Frames: each counts when it has arrived itself.
    Frames { generator: Generator, credits: Option<u64>, blocked: bool },
    /// Mirrored writes: each counts when all before it have arrived too.
    Writes { generator: Generator },
}

impl Stripe {
    /// `bytes` over `lanes` connections from flow `first` on; each takes the next block when it has next to nothing
    /// left to send.
    pub fn copy(first: usize, lanes: usize, bytes: u64) -> Stripe {
        Stripe::new(first, lanes, Load::Copy { left: bytes }, false, Time::ZERO)
    }

    /// `files` over `lanes` connections from flow `first` on.
    pub fn files(first: usize, lanes: usize, files: FileCopy) -> Stripe {
        Stripe::new(first, lanes, Load::Files(Box::new(files)), false, Time::ZERO)
    }

    /// Frames of `generator`, at most `credits` of them in transit, measured from `from` on.
    pub fn frames(first: usize, lanes: usize, generator: Generator, credits: Option<u64>, from: Time) -> Stripe {
        Stripe::new(first, lanes, Load::Frames { generator, credits, blocked: false }, false, from)
    }

    /// Mirrored writes of `generator`, measured from `from` on.
    pub fn writes(first: usize, lanes: usize, generator: Generator, from: Time) -> Stripe {
        Stripe::new(first, lanes, Load::Writes { generator }, true, from)
    }

    fn new(first: usize, lanes: usize, load: Load, in_order: bool, from: Time) -> Stripe {
        Stripe {
            first,
            load,
            order: Order::new(lanes, in_order, from),
            turn: 0,
            begun: false,
            stopped: false,
            touched: vec![],
            at_risk: Peak::new(from),
            due: Time::NEVER,
            is_due_new: false,
        }
    }

    /// Number of connections.
    pub fn lanes(&self) -> usize {
        self.order.lanes()
    }

    /// Returns true if it is copies, without messages.
    pub fn is_copy(&self) -> bool {
        matches!(self.load, Load::Copy { .. } | Load::Files(_))
    }

    /// Files that are copied, where it is that.
    pub fn file_copy(&self) -> Option<&FileCopy> {
        match &self.load {
            Load::Files(files) => Some(files),
            _ => None,
        }
    }

    /// A time at which [`Stripe::handle_timer`] is to be called, beside those that other calls return; once each.
    pub fn poll_due(&mut self) -> Option<Time> {
        std::mem::take(&mut self.is_due_new).then_some(self.due)
    }

    /// Returns true if it is mirrored writes.
    pub fn is_mirror(&self) -> bool {
        matches!(self.load, Load::Writes { .. })
    }

    /// Its messages: on which lane, how long they took, how far behind the far side is.
    pub fn messages(&self) -> &Order {
        &self.order
    }

    /// A lane that has something to send or nothing more to write.
    pub fn poll_ready(&mut self) -> Option<usize> {
        self.touched.pop()
    }

    /// Begins connection `lane`, and with the first one the application; returns the time of the next call.
    pub fn open(&mut self, now: Time, lane: usize, lanes: &mut impl Lanes) -> Option<Time> {
        self.fill(now, lane, lanes);
        if std::mem::replace(&mut self.begun, true) {
            return None;
        }
        match &mut self.load {
            Load::Copy { .. } | Load::Files(_) => {}
            Load::Frames { generator, .. } | Load::Writes { generator } => generator.start(now),
        }
        Some(self.handle_timer(now, lanes))
    }

    /// The next call is due; returns the time of the one after it.
    pub fn handle_timer(&mut self, now: Time, lanes: &mut impl Lanes) -> Time {
        if self.stopped {
            return Time::NEVER;
        }
        if matches!(self.load, Load::Files(_)) {
            return self.fill_all(now, lanes);
        }
        while let Some(due) = self.generator().and_then(|generator| generator.peek()) {
            if due.at > now {
                return due.at;
            }
            if !self.has_credit() {
                if let Load::Frames { blocked, .. } = &mut self.load {
                    *blocked = true;
                }
                break;
            }
            let lane = self.choose(lanes);
            self.order.issue(lane, due.at, due.bytes);
            let (workload, end) = lanes.lane(lane);
            workload.add(now, due.bytes, end);
            self.touch(lane);
            if let Some(generator) = self.generator() {
                generator.advance();
            }
        }
        Time::NEVER
    }

    /// `received` bytes have arrived in order over `lane`. Returns a new time for the timer where that unblocked the
    /// source.
    pub fn handle_delivered(&mut self, now: Time, lane: usize, received: u64, lanes: &mut impl Lanes) -> Option<Time> {
        match &mut self.load {
            Load::Copy { .. } => return None,
            Load::Files(files) => {
                files.handle_delivered(now, lane, received);
                return None;
            }
            Load::Frames { .. } | Load::Writes { .. } => {}
        }
        // Between two deliveries the lag only grows, so it is largest just before one.
        self.at_risk.note(now, self.order.lag_bytes_at(now));
        self.order.handle_delivered(now, lane, received);
        if self.stopped || !self.has_credit() {
            return None;
        }
        let Load::Frames { blocked, generator, .. } = &mut self.load else { return None };
        if !std::mem::take(blocked) {
            return None;
        }
        generator.resume(now);
        Some(self.handle_timer(now, lanes))
    }

    /// `lane` may have room again. Returns true if it was given more of the copy and may take still more.
    pub fn fill(&mut self, now: Time, lane: usize, lanes: &mut impl Lanes) -> bool {
        let (workload, end) = lanes.lane(lane);
        workload.flush(now, end);
        if matches!(self.load, Load::Files(_)) {
            return self.fill_with_files(now, lane, lanes);
        }
        let Load::Copy { left } = &mut self.load else { return false };
        if *left == 0 || workload.backlog() > 0 || !end.has_room(BLOCK_BYTES) {
            return false;
        }
        let block = BLOCK_BYTES.min(*left);
        *left -= block;
        let is_last = *left == 0;
        workload.add(now, block, end);
        if is_last {
            self.end(now, lanes);
        }
        true
    }

    /// Gives every lane of a copy of files what it takes, in turn; returns when the next piece is there.
    fn fill_all(&mut self, now: Time, lanes: &mut impl Lanes) -> Time {
        self.due = Time::NEVER;
        let (count, mut idle) = (self.lanes(), 0);
        while idle < count {
            let lane = self.turn % count;
            self.turn = lane + 1;
            let sent = lanes.is_open(lane) && self.fill_with_files(now, lane, lanes);
            if sent {
                self.touch(lane);
            }
            idle = if sent { 0 } else { idle + 1 };
        }
        self.is_due_new = false;
        self.due
    }

    fn fill_with_files(&mut self, now: Time, lane: usize, lanes: &mut impl Lanes) -> bool {
        let Load::Files(files) = &mut self.load else { return false };
        let (workload, end) = lanes.lane(lane);
        if workload.backlog() > 0 {
            return false;
        }
        match files.next(now, lane, end) {
            Next::Idle => {}
            Next::Wait(due) => {
                if due < self.due {
                    (self.due, self.is_due_new) = (due, true);
                }
            }
            Next::Send(bytes) => {
                workload.add(now, bytes, end);
                return true;
            }
            Next::End(job) => {
                let of_job = files.lanes_of(job);
                self.stopped = (0..files.jobs()).all(|job| files.is_sent(job));
                self.end_lanes(now, of_job, lanes);
            }
        }
        false
    }

    /// The application writes no more; data that is written is still delivered.
    pub fn stop(&mut self, now: Time, lanes: &mut impl Lanes) {
        if !self.stopped {
            match &mut self.load {
                Load::Copy { left } => *left = 0,
                Load::Files(files) => files.stop(),
                Load::Frames { .. } | Load::Writes { .. } => {}
            }
            self.end(now, lanes);
        }
    }

    /// Nothing comes any more, for no lane; those that were not begun never have to be.
    fn end(&mut self, now: Time, lanes: &mut impl Lanes) {
        self.stopped = true;
        self.end_lanes(now, 0..self.lanes(), lanes);
    }

    fn end_lanes(&mut self, now: Time, which: Range<usize>, lanes: &mut impl Lanes) {
        for lane in which {
            let (workload, end) = lanes.lane(lane);
            workload.end(now, end);
            self.touch(lane);
        }
    }

    fn generator(&mut self) -> Option<&mut Generator> {
        match &mut self.load {
            Load::Copy { .. } | Load::Files(_) => None,
            Load::Frames { generator, .. } | Load::Writes { generator } => Some(generator),
        }
    }

    fn has_credit(&self) -> bool {
        match &self.load {
            Load::Frames { credits: Some(credits), .. } => (self.order.in_transit() as u64) < *credits,
            _ => true,
        }
    }

    /// The open lane with the least backlog, established ones first; in turn among equals. Costs as many steps as there
    /// are lanes.
    fn choose(&mut self, lanes: &mut impl Lanes) -> usize {
        let count = self.lanes();
        let mut best: Option<((bool, u64), usize)> = None;
        for lane in (0..count).map(|step| (self.turn + step) % count) {
            if !lanes.is_open(lane) {
                continue;
            }
            let (workload, end) = lanes.lane(lane);
            let rank = (!end.is_established(), workload.backlog() + end.unacknowledged());
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, lane));
            }
        }
        let chosen = best.map_or(0, |(_, lane)| lane);
        self.turn = (chosen + 1) % count;
        chosen
    }

    fn touch(&mut self, lane: usize) {
        if !self.touched.contains(&lane) {
            self.touched.push(lane);
        }
    }
}
