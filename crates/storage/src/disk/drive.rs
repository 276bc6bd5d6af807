//! A disk drive that serves one request at a time: command, buffer, arm, platter, bus.
//!
//! Nothing happens between two requests that the next one cannot work out: what was read ahead, and when written data
//! reached the medium, follow from the time at which it comes. So a request costs the same however long the drive was
//! idle.

use super::mechanics::{Arm, TrackRun};
use super::medium::Medium;
use super::segments::{CacheHit, Segments, State};
use super::spec::{DriveSpec, ReadAhead};
use super::transfer::Transfer;
use crate::trace::Kind;
use std::sync::Arc;

/// The activity of the arm without a pending request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BackgroundTask {
    No,
    /// Reads on into a segment.
    Ahead {
        segment: usize,
        stay: TrackRun,
    },
    /// Brings a segment's blocks, which end before `end`, to the medium until a time.
    Writing {
        segment: usize,
        end: u64,
        until: u64,
    },
}

/// A drive and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drive {
    /// Shared by the copies of a drive: tables of some 60 kB, which stay in the cache once.
    spec: Arc<DriveSpec>,
    arm: Arm,
    busy: BackgroundTask,
    segments: Segments,
    /// True if the request before was a read.
    after_read: bool,
    /// Time at which each block of the current read is in the buffer; kept to spare its allocation.
    ready: Vec<u64>,
}

/// Blocks of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First block of 512 bytes.
    pub block: u64,
    /// Blocks; above zero.
    pub blocks: u64,
    /// Read or write.
    pub kind: Kind,
}

fn pick(pair: (u64, u64), first: bool) -> u64 {
    if first {
        pair.0
    } else {
        pair.1
    }
}

impl Drive {
    /// A drive at rest: arm on the first track, its first sector just beginning to pass at time 0, buffer empty; the
    /// first request counts as following a read. (DiskSim begins so.)
    pub fn new(spec: DriveSpec) -> Drive {
        let segments = Segments::new(&spec.buffer);
        Drive {
            spec: Arc::new(spec),
            arm: Arm::default(),
            busy: BackgroundTask::No,
            segments,
            after_read: true,
            ready: Vec::new(),
        }
    }

    /// The description of the drive.
    pub fn spec(&self) -> &DriveSpec {
        &self.spec
    }

    /// Blocks of 512 bytes.
    pub fn blocks(&self) -> u64 {
        self.spec.layout.blocks()
    }

    /// The cylinder of the arm.
    pub fn cylinder(&self) -> u32 {
        self.arm.cylinder
    }

    /// Time at which everything that was acknowledged is on the medium: at the latest of `now` and the end of what is
    /// being written.
    pub fn durable_at(&self, now: u64) -> u64 {
        match self.busy {
            BackgroundTask::Writing { until, .. } => until.max(now),
            _ => now,
        }
    }

    /// Time until a request's first block would pass if it were begun now, ns; 0 for a read that is in the buffer.
    pub fn positioning_ns(&self, now: u64, extent: Extent) -> u64 {
        let write = extent.kind == Kind::Write;
        if !write && self.segments.for_read(&self.spec.buffer, extent.block, extent.blocks).1 == CacheHit::Whole {
            return 0;
        }
        let from = self.durable_at(now);
        self.spec.go(self.arm, from, extent.block, write, 0).begins - now
    }

    /// The cylinder on which a block lies.
    pub fn cylinder_of(&self, block: u64) -> u32 {
        self.spec.layout.locate(block).cylinder
    }

    /// Serves a request that the drive takes at `now`, not before the one before was completed; returns when it is
    /// completed. The extent lies on the drive. Costs as many steps as there are blocks.
    pub fn serve(&mut self, now: u64, extent: Extent) -> u64 {
        let at = now + self.spec.control.request_ns;
        self.read_on(at);
        match extent.kind {
            Kind::Read => self.read(at, extent.block, extent.blocks),
            Kind::Write => self.write(at, extent.block, extent.blocks),
        }
    }

    /// Does what reading ahead has done up to a time.
    fn read_on(&mut self, at: u64) {
        while let BackgroundTask::Ahead { segment, stay } = self.busy {
            let passed = self.spec.passed(&stay, at);
            let filled = self.segments.get_mut(segment);
            let limit = filled.limit;
            filled.end = filled.end.max(passed.min(limit));
            self.segments.wrap(segment, &self.spec.buffer);
            let end = stay.first + stay.run.blocks;
            if passed >= limit {
                return self.rest(segment);
            }
            if passed < end {
                return;
            }
            let next = self.spec.layout.run(end);
            let stays = match self.spec.buffer.read_ahead {
                ReadAhead::No => false,
                ReadAhead::Track => Arm::at(next.place) == self.arm,
                ReadAhead::Cylinder => next.place.cylinder == self.arm.cylinder,
                ReadAhead::Segment | ReadAhead::TrackThenNext => true,
            };
            if !stays || end >= self.blocks() {
                return self.rest(segment);
            }
            let stay = self.spec.go(self.arm, self.spec.pass_ends(&stay, end - 1), end, false, 0);
            self.arm = Arm::at(stay.run.place);
            self.busy = BackgroundTask::Ahead { segment, stay };
        }
    }

    /// Ends reading ahead or writing; the segment keeps what it has, where the drive keeps such things.
    fn rest(&mut self, segment: usize) {
        let keeps = self.spec.buffer.enabled;
        let segment = self.segments.get_mut(segment);
        let kept = keeps && (!segment.written || self.spec.buffer.hit_on_written);
        segment.state = if kept { State::Clean } else { State::Empty };
        self.busy = BackgroundTask::No;
    }

    /// Frees the arm for another request; returns from when on it may go. Called after `read_on` for the same time.
    fn free(&mut self, at: u64) -> u64 {
        match self.busy {
            BackgroundTask::No => at,
            BackgroundTask::Ahead { segment, stay } => {
                let passed = self.spec.passed(&stay, at);
                self.rest(segment);
                // The step that is under way is ended: seek, wait, or sector.
                if at < stay.arrives {
                    stay.arrives
                } else if at < stay.begins {
                    stay.begins
                } else if self.spec.buffer.stop_in_sector || passed == stay.first + stay.run.blocks {
                    at
                } else {
                    self.spec.pass_ends(&stay, passed)
                }
            }
            BackgroundTask::Writing { segment, until, .. } => {
                self.rest(segment);
                at.max(until)
            }
        }
    }

    fn read(&mut self, at: u64, block: u64, blocks: u64) -> u64 {
        let control = &self.spec.control;
        let hit_ns = pick(control.read_hit_ns, self.after_read);
        let miss_ns = pick(control.read_miss_ns, self.after_read);
        let (prepare_ns, complete_ns) = (control.prepare_ns, control.read_complete_ns);
        let disconnect_ns = pick(control.read_disconnect_ns, self.after_read);
        let after_read = std::mem::replace(&mut self.after_read, true);

        // A drive that still brings written data to the medium does that first; only a hit may pass it, on some drives.
        let mut waited = None;
        if let BackgroundTask::Writing { until, .. } = self.busy {
            if until > at {
                let (index, hit) = self.segments.for_read(&self.spec.buffer, block, blocks);
                if hit == CacheHit::Whole && self.spec.buffer.sneaky {
                    self.segments.touch(index);
                    return at + hit_ns + prepare_ns + blocks * self.spec.control.block_ns.0 + complete_ns;
                }
                waited = Some(until);
            }
            self.free(at);
        }
        let (index, hit) = self.segments.for_read(&self.spec.buffer, block, blocks);
        let own =
            matches!(self.busy, BackgroundTask::Ahead { segment, .. } if segment == index) && hit != CacheHit::None;
        let end = block + blocks;
        let watermark = self.watermark(blocks);
        let there = self.segments.get(index).end.saturating_sub(block);
        let at_once = match hit {
            CacheHit::Whole => true,
            CacheHit::Part => self.spec.buffer.partial_at_once || there >= watermark.min(blocks),
            CacheHit::None => false,
        };
        let carry = if let (true, BackgroundTask::Ahead { stay, .. }) = (own, self.busy) { Some(stay) } else { None };
        let arm_free = if own { at } else { waited.unwrap_or_else(|| self.free(at)) };
        let never = self.spec.control.never_disconnect;
        let (bus_at, connected) = match waited {
            None if at_once => (at + hit_ns + prepare_ns, true),
            None if never => (at + miss_ns + prepare_ns, true),
            None => (at + miss_ns + disconnect_ns, false),
            Some(until) => ((at + miss_ns + disconnect_ns).max(until), false),
        };
        let segment = self.segments.get_mut(index);
        if hit == CacheHit::None {
            *segment = super::segments::Segment { start: block, end: block, used: segment.used, ..Default::default() };
        }
        segment.written &= hit != CacheHit::None;
        let from = segment.end.max(block);
        self.segments.touch(index);
        let limit = self.ahead_limit(index, block, blocks);
        let segment = self.segments.get_mut(index);
        segment.limit = segment.limit.max(limit);
        let limit = segment.limit;

        self.ready.clear();
        self.ready.resize(from.min(end).saturating_sub(block) as usize, 0);
        let mut ready = std::mem::take(&mut self.ready);
        let mut transfer = Transfer::new(&self.spec.control, blocks, watermark, after_read, bus_at, connected);
        let mut stay = carry;
        if from < end {
            let mut medium =
                Medium { spec: &self.spec, arm: self.arm, free: arm_free.max(at + miss_ns), stay, landed: None };
            medium.read(block, from, end, &mut ready, &mut transfer);
            if let (CacheHit::None, Some((passed, run))) = (hit, medium.landed) {
                if self.spec.buffer.free_blocks {
                    // Blocks that passed before the request on its track are kept.
                    let kept = passed.min(block - run.track.0);
                    self.segments.get_mut(index).start = block - kept;
                }
            }
            stay = medium.stay;
            self.arm = medium.arm;
        }
        transfer.carry(blocks, &ready);
        let done = transfer.at + complete_ns;
        self.ready = ready;

        let segment = self.segments.get_mut(index);
        segment.end = segment.end.max(end);
        if self.spec.buffer.forget_read {
            segment.start = end;
        }
        self.segments.wrap(index, &self.spec.buffer);
        let more = limit > self.segments.get(index).end;
        match stay {
            Some(stay) if more && self.spec.buffer.read_ahead != ReadAhead::No => {
                self.segments.get_mut(index).state = State::Reading;
                self.busy = BackgroundTask::Ahead { segment: index, stay };
            }
            None if more && self.spec.buffer.ahead_on_hit && hit == CacheHit::Whole => {
                let next = self.segments.get(index).end;
                let stay = self.spec.go(self.arm, arm_free.max(at + miss_ns), next, false, 0);
                self.arm = Arm::at(stay.run.place);
                self.segments.get_mut(index).state = State::Reading;
                self.busy = BackgroundTask::Ahead { segment: index, stay };
            }
            _ => self.rest(index),
        }
        done
    }

    fn write(&mut self, at: u64, block: u64, blocks: u64) -> u64 {
        let buffer = &self.spec.buffer;
        let control = &self.spec.control;
        let back = buffer.write_back;
        let command_ns = pick(if back { control.write_hit_ns } else { control.write_miss_ns }, self.after_read);
        self.after_read = false;
        let writing = match self.busy {
            BackgroundTask::Writing { segment, end, until } if until > at => Some((segment, end, until)),
            _ => None,
        };
        let joins = writing.filter(|&(_, end, _)| back && buffer.combine_writes && end == block);
        let (index, arm_free) = match joins {
            Some((segment, _, until)) => (segment, until),
            None => {
                // Chosen before the arm is freed: a segment that is being filled is the last choice.
                let chosen = self.segments.for_write(&self.spec.buffer, block, blocks);
                (chosen, self.free(at))
            }
        };
        let control = &self.spec.control;
        let last = self.segments.get(index);
        let extra = control.extra_disconnect.filter(|_| {
            let follows = last.written && self.segments.is_latest(index) && last.end != block;
            follows && writing.is_none() && !control.never_disconnect
        });
        let (bus_at, arm_from) = match (extra, writing) {
            (Some(extra), _) => {
                let command = at + extra.command_ns;
                let data =
                    command + extra.disconnect_ns + extra.between_ns + control.reselect_ns.0 + control.prepare_ns;
                (data, command + extra.seek_delta_ns)
            }
            (None, Some((_, _, until))) if joins.is_none() => {
                let command = at + command_ns;
                let again = (command + control.write_disconnect_ns).max(until) + control.reselect_ns.0;
                (again + control.prepare_ns, command)
            }
            _ => (at + command_ns + control.prepare_ns, at + command_ns),
        };

        let follows = joins.is_some();
        let least = if follows { 0 } else { control.least_write_seek_ns };
        let mut medium =
            Medium { spec: &self.spec, arm: self.arm, free: arm_free.max(arm_from), stay: None, landed: None };
        let mut ready = std::mem::take(&mut self.ready);
        let (bus_end, medium_end) = medium.write(block, block + blocks, bus_at, least, &mut ready);
        self.arm = medium.arm;
        self.ready = ready;

        let used = self.segments.get(index).used;
        let segment = self.segments.get_mut(index);
        if !follows {
            *segment = super::segments::Segment { start: block, used, ..Default::default() };
        }
        segment.end = block + blocks;
        segment.written = true;
        segment.state = State::Writing;
        self.segments.touch(index);
        self.segments.wrap(index, &self.spec.buffer);
        self.busy = BackgroundTask::Writing { segment: index, end: block + blocks, until: medium_end };
        if back {
            return bus_end + self.spec.control.write_complete_ns;
        }
        self.rest(index);
        let control = &self.spec.control;
        if control.hold_write || control.never_disconnect {
            return medium_end.max(bus_end) + control.write_complete_ns;
        }
        let disconnect_ns = extra.map_or(control.write_disconnect_ns, |extra| extra.again_ns);
        let reselect_ns = if extra.is_some() { control.reselect_ns.1 } else { control.reselect_ns.0 };
        medium_end.max(bus_end + disconnect_ns) + reselect_ns + control.write_complete_ns
    }

    fn watermark(&self, blocks: u64) -> u64 {
        let buffer = &self.spec.buffer;
        let of = if buffer.watermark_of_request { blocks.min(buffer.blocks) } else { buffer.blocks };
        let share = u128::from(of) * u128::from(buffer.read_watermark_e6);
        let share = if buffer.watermark_of_request { share / 1_000_000 } else { share.div_ceil(1_000_000) };
        (share as u64).max(1)
    }

    /// One past the last block that is read ahead after a request.
    fn ahead_limit(&self, index: usize, block: u64, blocks: u64) -> u64 {
        let buffer = &self.spec.buffer;
        let end = block + blocks;
        let limit = match buffer.read_ahead {
            ReadAhead::No => end,
            ReadAhead::TrackThenNext if end < self.blocks() => {
                let track = self.spec.layout.run(end).track;
                if self.segments.get(index).start < track.0 {
                    let zone = self.spec.layout.locate(block).zone;
                    track.1 + u64::from(self.spec.layout.zones()[zone].sectors)
                } else {
                    track.1
                }
            }
            _ if buffer.ahead_max > 0 => end + buffer.ahead_max,
            _ if buffer.ahead_counts_request => end.max(block + buffer.blocks),
            _ => end + buffer.blocks,
        };
        limit.min(self.blocks())
    }
}
