//! A disk with its queue: requests in, completions out, time as an argument.

use super::drive::{Drive, Extent};
use super::flash::Flash;
use super::schedule::{choose, Candidate, Scheduler};
use crate::trace::Kind;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::Time;

/// The device that serves the requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// One request at a time.
    Drive(Box<Drive>),
    /// As many as its queue depth.
    Flash(Box<Flash>),
}

impl Device {
    /// Blocks of 512 bytes.
    pub fn blocks(&self) -> u64 {
        match self {
            Device::Drive(drive) => drive.blocks(),
            Device::Flash(flash) => flash.spec().blocks,
        }
    }

    /// Its name in the description.
    pub fn name(&self) -> &str {
        match self {
            Device::Drive(drive) => &drive.spec().name,
            Device::Flash(flash) => &flash.spec().name,
        }
    }

    /// The order of requests that its description asks for.
    pub fn scheduler(&self) -> Scheduler {
        match self {
            Device::Drive(drive) => drive.spec().scheduler,
            Device::Flash(_) => Scheduler::Fcfs,
        }
    }

    fn slots(&self) -> usize {
        match self {
            Device::Drive(_) => 1,
            Device::Flash(flash) => flash.spec().queue_depth,
        }
    }

    fn serve(&mut self, now: u64, extent: Extent) -> u64 {
        match self {
            Device::Drive(drive) => drive.serve(now, extent),
            Device::Flash(flash) => flash.serve(now, extent),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct QueuedRequest {
    id: u64,
    arrived: u64,
    extent: Extent,
    cylinder: u32,
}

/// A request that is done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Completion {
    /// Time of its end.
    pub done: Time,
    /// Its number among all requests of the disk, by which equal times are told apart.
    number: u64,
    /// As given with the request.
    pub id: u64,
    /// Time of its arrival.
    pub arrived: Time,
    /// Time at which the device took it.
    pub began: Time,
    /// True if it was a read.
    pub read: bool,
}

/// A disk that queues. One mutation at a time: `handle_*`, then `poll_*` until they give nothing.
#[derive(Clone, Debug)]
pub struct Disk {
    device: Device,
    scheduler: Scheduler,
    up: bool,
    waiting: VecDeque<QueuedRequest>,
    serving: BinaryHeap<Reverse<Completion>>,
    finished: VecDeque<Completion>,
    taken: u64,
}

impl Disk {
    /// A disk at rest.
    pub fn new(device: Device, scheduler: Scheduler) -> Disk {
        Disk {
            device,
            scheduler,
            up: true,
            waiting: VecDeque::new(),
            serving: BinaryHeap::new(),
            finished: VecDeque::new(),
            taken: 0,
        }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Requests that wait or are being served.
    pub fn outstanding(&self) -> usize {
        self.waiting.len() + self.serving.len()
    }

    /// Time at which all writes that are completed are on the medium (what SYNCHRONIZE CACHE waits for).
    pub fn durable_at(&self, now: Time) -> Time {
        match &self.device {
            Device::Drive(drive) => Time(drive.durable_at(now.0)),
            Device::Flash(_) => now,
        }
    }

    /// A request comes. `now` does not go back.
    ///
    /// # Errors
    /// An extent that is empty or beyond the disk. The disk is as before.
    pub fn handle_request(&mut self, now: Time, id: u64, extent: Extent) -> Result<(), String> {
        let room = self.device.blocks().saturating_sub(extent.block);
        if extent.blocks == 0 || extent.blocks > room {
            return Err(format!(
                "blocks {} to before {}: {} has {} blocks of 512 bytes",
                extent.block,
                extent.block.saturating_add(extent.blocks),
                self.device.name(),
                self.device.blocks()
            ));
        }
        let cylinder = match (&self.device, self.scheduler) {
            (Device::Drive(_), Scheduler::Fcfs) | (Device::Flash(_), _) => 0,
            (Device::Drive(drive), _) => drive.cylinder_of(extent.block),
        };
        self.waiting.push_back(QueuedRequest { id, arrived: now.0, extent, cylinder });
        self.dispatch(now.0);
        Ok(())
    }

    /// The time of the next completion.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.serving.peek().map(|next| next.0.done)
    }

    /// Completes what is done by `now`; each completion lets the next request go at its own time.
    pub fn handle_timeout(&mut self, now: Time) {
        while self.serving.peek().is_some_and(|next| next.0.done <= now) {
            if let Some(Reverse(completion)) = self.serving.pop() {
                self.finished.push_back(completion);
                self.dispatch(completion.done.0);
            }
        }
    }

    /// The next completed request, in the order of completion.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.finished.pop_front()
    }

    fn dispatch(&mut self, now: u64) {
        while self.serving.len() < self.device.slots() {
            let Some(index) = self.next(now) else { return };
            let Some(waiting) = self.waiting.remove(index) else { return };
            let done = self.device.serve(now, waiting.extent);
            self.serving.push(Reverse(Completion {
                done: Time(done),
                number: self.taken,
                id: waiting.id,
                arrived: Time(waiting.arrived),
                began: Time(now),
                read: waiting.extent.kind == Kind::Read,
            }));
            self.taken += 1;
        }
    }

    /// The request that goes next. FCFS costs one step, the others as many as there are waiting.
    fn next(&mut self, now: u64) -> Option<usize> {
        let Device::Drive(drive) = &self.device else { return (!self.waiting.is_empty()).then_some(0) };
        if self.scheduler == Scheduler::Fcfs || self.waiting.len() < 2 {
            return (!self.waiting.is_empty()).then_some(0);
        }
        let timed = self.scheduler == Scheduler::Sptf;
        let candidates = self.waiting.iter().map(|waiting| Candidate {
            cylinder: waiting.cylinder,
            positioning_ns: if timed { drive.positioning_ns(now, waiting.extent) } else { 0 },
        });
        choose(self.scheduler, drive.cylinder(), &mut self.up, candidates)
    }
}
