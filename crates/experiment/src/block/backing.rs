//! Storage behind the target: disks that take their time, or a medium that takes none.

use std::collections::VecDeque;
use storage::disk::{Disk, Extent};
use storage::scsi::{MediumError, Op, Outcome};
use storage::trace::Kind;
use units::Time;
use wire::iscsi::Payload;

/// Bytes of a block of the unit.
pub const BLOCK_BYTES: u32 = 512;

/// An operation that is over.
#[derive(Clone)]
pub struct Finished {
    /// Of the target's operation.
    pub work: u64,
    /// The initiator's number of its command.
    pub command: Option<u64>,
    /// Result of the work.
    pub outcome: Outcome,
    /// Time at which it reached the disk.
    pub began: Time,
    /// Time of its end.
    pub done: Time,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    work: u64,
    command: Option<u64>,
    began: Time,
    /// Blocks to hand out; 0 for a write.
    read_blocks: u32,
    /// Done only when it survives a loss of power.
    durable: bool,
    /// Disks that are still at it.
    left: u32,
}

/// Disks among which the blocks of the unit are dealt (RAID 0), or none.
#[derive(Clone)]
pub struct Backing {
    disks: Vec<Disk>,
    stripe_blocks: u64,
    blocks: u64,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Operations that wait for what disks have in their caches, and until when.
    syncing: Vec<(Time, usize)>,
    finished: VecDeque<Finished>,
    /// First block and number on each disk; kept to spare its allocation.
    parts: Vec<(u64, u64)>,
    /// Earliest end of an operation, which is asked for at every PDU.
    next: Time,
}

impl Backing {
    /// A medium of `blocks` that takes no time.
    pub fn instant(blocks: u64) -> Backing {
        Backing::new(Vec::new(), 1, blocks)
    }

    /// Copies of `disk`, with `stripe_blocks` on one before the next.
    pub fn striped(disk: &Disk, count: usize, stripe_blocks: u64) -> Backing {
        let each = disk.device().blocks();
        // Several disks use whole stripes only.
        let each = if count > 1 { each - each % stripe_blocks } else { each };
        Backing::new(vec![disk.clone(); count], stripe_blocks, each * count as u64)
    }

    fn new(disks: Vec<Disk>, stripe_blocks: u64, blocks: u64) -> Backing {
        let parts = vec![(0, 0); disks.len()];
        let (slots, free, syncing, finished) = Default::default();
        Backing { disks, stripe_blocks, blocks, slots, free, syncing, finished, parts, next: Time::NEVER }
    }

    /// Blocks of the unit.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The target's operation `work` comes, of the initiator's command `command`.
    pub fn handle_work(&mut self, now: Time, work: u64, op: &Op, command: Option<u64>) {
        let (extent, read_blocks, durable) = match op {
            Op::Read { lba, blocks } => ((*lba, u64::from(*blocks), Kind::Read), *blocks, false),
            Op::Write { lba, data, durable, .. } => {
                ((*lba, data.len() as u64 / u64::from(BLOCK_BYTES), Kind::Write), 0, *durable)
            }
            Op::Flush => ((0, 0, Kind::Write), 0, true),
            // The sources of requests read, write and flush.
            _ => {
                let outcome = Outcome::Failed(MediumError::Write);
                self.finished.push_back(Finished { work, command, outcome, began: now, done: now });
                return;
            }
        };
        let slot = Slot { work, command, began: now, read_blocks, durable, left: 0 };
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        self.slots[index] = slot;
        let (lba, blocks, kind) = extent;
        self.slots[index].left = self.deal(now, index as u64, lba, blocks, kind);
        if self.slots[index].left == 0 {
            self.part_done(now, index);
        }
        self.update_next();
    }

    /// Hands each disk its part, which is in one piece; returns how many have one.
    fn deal(&mut self, now: Time, id: u64, lba: u64, blocks: u64, kind: Kind) -> u32 {
        if self.disks.is_empty() {
            return 0;
        }
        let count = self.disks.len() as u64;
        self.parts.fill((0, 0));
        let (mut block, end) = (lba, lba + blocks);
        while block < end {
            let (chunk, within) =
                if count > 1 { (block / self.stripe_blocks, block % self.stripe_blocks) } else { (0, block) };
            let until = if count > 1 { end.min((chunk + 1) * self.stripe_blocks) } else { end };
            let part = &mut self.parts[(chunk % count) as usize];
            if part.1 == 0 {
                part.0 = chunk / count * self.stripe_blocks + within;
            }
            part.1 += until - block;
            block = until;
        }
        let mut busy = 0;
        for (disk, &(block, blocks)) in self.disks.iter_mut().zip(&self.parts) {
            // The unit has checked that its blocks are there, and they are the disks'.
            if blocks > 0 && disk.handle_request(now, id, Extent { block, blocks, kind }).is_ok() {
                busy += 1;
            }
        }
        busy
    }

    fn part_done(&mut self, now: Time, index: usize) {
        let slot = &mut self.slots[index];
        if slot.left > 1 {
            slot.left -= 1;
            return;
        }
        if std::mem::take(&mut slot.durable) {
            let until = self.disks.iter().map(|disk| disk.durable_at(now)).max().unwrap_or(now);
            if until > now {
                slot.left = 1;
                self.syncing.push((until, index));
                return;
            }
        }
        let slot = self.slots[index];
        self.free.push(index);
        let outcome = match slot.read_blocks {
            0 => Outcome::Done,
            // A command has 16 MiB at most.
            blocks => Outcome::Data(Payload::Zeros(blocks * BLOCK_BYTES)),
        };
        let (work, command, began) = (slot.work, slot.command, slot.began);
        self.finished.push_back(Finished { work, command, outcome, began, done: now });
    }

    /// Returns the earliest end of an operation.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        self.next
    }

    fn update_next(&mut self) {
        let disks = self.disks.iter().filter_map(Disk::poll_timeout);
        self.next = disks.chain(self.syncing.iter().map(|&(until, _)| until)).min().unwrap_or(Time::NEVER);
    }

    /// Completes the work that is done by `now`.
    #[inline]
    pub fn handle_timeout(&mut self, now: Time) {
        if self.next <= now {
            self.complete(now);
        }
    }

    fn complete(&mut self, now: Time) {
        for at in 0..self.disks.len() {
            self.disks[at].handle_timeout(now);
            while let Some(completion) = self.disks[at].poll_completion() {
                self.part_done(now, completion.id as usize);
            }
        }
        let mut at = 0;
        while at < self.syncing.len() {
            if self.syncing[at].0 > now {
                at += 1;
                continue;
            }
            let (_, index) = self.syncing.remove(at);
            self.part_done(now, index);
        }
        self.update_next();
    }

    /// The next operation that is over.
    pub fn poll_finished(&mut self) -> Option<Finished> {
        self.finished.pop_front()
    }
}
