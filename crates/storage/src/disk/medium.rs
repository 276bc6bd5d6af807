//! The arm and the medium during one request: when each block is read or written.

use super::layout::Run;
use super::mechanics::{Arm, TrackRun};
use super::spec::DriveSpec;
use super::transfer::Transfer;

/// The arm at work for one request.
pub struct Medium<'a> {
    pub spec: &'a DriveSpec,
    pub arm: Arm,
    /// From when on the arm may go.
    pub free: u64,
    /// The stay under way.
    pub stay: Option<TrackRun>,
    /// Sectors that passed on the first track before the request's, and that track.
    pub landed: Option<(u64, Run)>,
}

impl Medium<'_> {
    /// Reads the blocks from `from` to before `end` of a request that begins at `block`: fills in when each is in the
    /// buffer.
    pub fn read(&mut self, block: u64, from: u64, end: u64, ready: &mut Vec<u64>, transfer: &mut Transfer<'_>) {
        let room = self.spec.buffer.blocks;
        let revolution = self.spec.revolution_ns();
        let mut next = from;
        while next < end {
            let mut stay = match self.stay {
                Some(stay) if next < stay.first + stay.run.blocks => stay,
                last => {
                    let free = match last {
                        Some(stay) => self.spec.pass_ends(&stay, stay.first + stay.run.blocks - 1).max(self.free),
                        None => self.free,
                    };
                    let stay = self.spec.go(self.arm, free, next, false, 0);
                    self.arm = Arm::at(stay.run.place);
                    if last.is_none() && self.landed.is_none() {
                        let passing = self.spec.passing_ns(stay.run.place.zone, 1).max(1);
                        self.landed = Some(((stay.begins - stay.arrives) / passing, stay.run));
                    }
                    stay
                }
            };
            let until = end.min(stay.first + stay.run.blocks);
            let mut passing = self.spec.passing(&stay, next);
            if until - block <= room {
                ready.extend((next..until).map(|next| passing.ends(&stay, next)));
                next = until;
            }
            while next < until {
                let number = next - block;
                if number >= room {
                    // A request larger than the segment: the place of a block must have been emptied before the next
                    // comes.
                    transfer.carry(number - room + 1, ready);
                    let begins = passing.begins(&stay, next);
                    if transfer.at > begins {
                        stay.begins += (transfer.at - begins).div_ceil(revolution) * revolution;
                    }
                }
                ready.push(passing.ends(&stay, next));
                next += 1;
            }
            self.stay = Some(stay);
        }
    }

    /// Writes the blocks from `block` to before `end`, whose data comes over the bus from `bus_at` on. Returns when
    /// the last has come, and when the last is on the medium.
    pub fn write(&mut self, block: u64, end: u64, bus_at: u64, least: u64, written: &mut Vec<u64>) -> (u64, u64) {
        let room = self.spec.buffer.blocks;
        let revolution = self.spec.revolution_ns();
        let block_ns = self.spec.control.block_ns.1;
        written.clear();
        let (mut bus, mut next, mut free, mut least) = (bus_at, block, self.free, least);
        let first_at = bus_at + self.spec.control.first_blocks(end - block).min(room) * block_ns;
        while next < end {
            let mut stay = self.spec.go(self.arm, free, next, true, least);
            least = 0;
            self.arm = Arm::at(stay.run.place);
            let until = end.min(stay.first + stay.run.blocks);
            let mut passing = self.spec.passing(&stay, next);
            while next < until {
                let number = next - block;
                if number >= room {
                    bus = bus.max(written[(number - room) as usize]);
                }
                bus += block_ns;
                let begins = passing.begins(&stay, next);
                let there = bus.max(first_at);
                if there > begins {
                    // The data is not there yet: the block passes, and comes again.
                    stay.begins += (there - begins).div_ceil(revolution) * revolution;
                }
                written.push(passing.ends(&stay, next));
                next += 1;
            }
            free = written.last().copied().unwrap_or(free);
        }
        (bus, free)
    }
}
