//! The arm and the platter: when a block passes under a head.

use super::layout::{Run, SectorPosition, REVOLUTION};
use super::spec::DriveSpec;

/// A sector that began to pass less than this ago is taken as just beginning: times are cut to whole ns at every step,
/// and a block that follows on must not cost a revolution for that. 1 us is 4 % of a sector of the fastest drives.
const SLACK_NS: u64 = 1_000;

/// The position of the arm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arm {
    pub cylinder: u32,
    pub head: u32,
}

impl Arm {
    pub fn at(place: SectorPosition) -> Arm {
        Arm { cylinder: place.cylinder, head: place.head }
    }
}

/// A stay on a track: from block `first` on, as far as the run goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrackRun {
    pub first: u64,
    pub run: Run,
    /// Time at which the arm is on the track, ns.
    pub arrives: u64,
    /// Time at which the first block begins to pass, ns.
    pub begins: u64,
}

impl DriveSpec {
    /// Length of a revolution, ns.
    pub fn revolution_ns(&self) -> u64 {
        REVOLUTION / self.mechanics.rpm
    }

    /// Angle of the platter at a time: exact, and 0 at 0.
    fn phase(&self, at: u64) -> u64 {
        at % REVOLUTION * self.mechanics.rpm % REVOLUTION
    }

    /// Time of `sectors` sectors of a zone passing, ns, cut.
    pub fn passing_ns(&self, zone: usize, sectors: u64) -> u64 {
        // 2^20 sectors of a track in units of a revolution: below 2^56.
        sectors * REVOLUTION / (u64::from(self.layout.zones()[zone].sectors) * self.mechanics.rpm)
    }

    /// Blocks of a stay that pass one after the other, from `block` on.
    pub fn passing(&self, stay: &TrackRun, block: u64) -> Passing<'_> {
        let steps = stay.run.even.then(|| {
            let divisor = u64::from(self.layout.zones()[stay.run.place.zone].sectors) * self.mechanics.rpm;
            let passed = (block - stay.first) * REVOLUTION;
            Steps {
                ns: passed / divisor,
                rest: passed % divisor,
                step_ns: REVOLUTION / divisor,
                step_rest: REVOLUTION % divisor,
                divisor,
            }
        });
        Passing { spec: self, steps }
    }

    /// Time to another track, with the settling of a write.
    pub fn seek_ns(&self, from: Arm, to: Arm, write: bool) -> u64 {
        let distance = from.cylinder.abs_diff(to.cylinder) as usize;
        let last = self.mechanics.seek_ns.len() - 1;
        let seek = self.mechanics.seek_ns[distance.min(last)];
        let switch = if from.head == to.head { 0 } else { self.mechanics.head_switch_ns };
        match seek.max(switch) {
            0 => 0,
            moved if write => moved.saturating_add_signed(self.mechanics.settle_ns),
            moved => moved,
        }
    }

    /// Time until a sector begins to pass.
    fn latency_ns(&self, at: u64, place: SectorPosition) -> u64 {
        if self.mechanics.average_rotation {
            return self.revolution_ns() / 2;
        }
        let wait = (self.layout.angle(place) + REVOLUTION - self.phase(at)) % REVOLUTION;
        if REVOLUTION - wait <= SLACK_NS * self.mechanics.rpm {
            return 0;
        }
        wait / self.mechanics.rpm
    }

    /// Goes to a block from where the arm is at `from`; the way takes at least `least` ns.
    pub fn go(&self, arm: Arm, from: u64, block: u64, write: bool, least: u64) -> TrackRun {
        let run = self.layout.run(block);
        let arrives = from + self.seek_ns(arm, Arm::at(run.place), write).max(least);
        TrackRun { first: block, run, arrives, begins: arrives + self.latency_ns(arrives, run.place) }
    }

    /// Sectors from a stay's first block to another of it.
    fn sectors_to(&self, stay: &TrackRun, block: u64) -> u64 {
        let blocks = block - stay.first;
        if stay.run.even || blocks == 0 {
            return blocks;
        }
        u64::from(self.layout.locate(block).sector - stay.run.place.sector)
    }

    /// Time at which a block of a stay begins to pass.
    pub fn pass_begins(&self, stay: &TrackRun, block: u64) -> u64 {
        stay.begins + self.passing_ns(stay.run.place.zone, self.sectors_to(stay, block))
    }

    /// Time at which a block of a stay has passed.
    pub fn pass_ends(&self, stay: &TrackRun, block: u64) -> u64 {
        stay.begins + self.passing_ns(stay.run.place.zone, self.sectors_to(stay, block) + 1)
    }

    /// One past the last block of a stay that has passed at a time.
    pub fn passed(&self, stay: &TrackRun, at: u64) -> u64 {
        let end = stay.first + stay.run.blocks;
        if at >= self.pass_ends(stay, end - 1) {
            return end;
        }
        // Below a revolution here; blocks pass in order, so they are found by bisection where slips lie between.
        let (mut low, mut high) = (stay.first, end - 1);
        if stay.run.even {
            let sectors = u64::from(self.layout.zones()[stay.run.place.zone].sectors);
            let guess = at.saturating_sub(stay.begins) * self.mechanics.rpm * sectors / REVOLUTION;
            low = (stay.first + guess.saturating_sub(1)).min(high);
            high = (stay.first + guess + 1).min(high);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.pass_ends(stay, middle) <= at {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Blocks of a stay that pass one after the other: the same times as [`DriveSpec::pass_begins`] and
/// [`DriveSpec::pass_ends`] give, without a division for each.
pub struct Passing<'a> {
    spec: &'a DriveSpec,
    /// None: slips lie between the blocks.
    steps: Option<Steps>,
}

/// Multiples of a sector's time, cut to ns.
struct Steps {
    ns: u64,
    /// The part that was cut off, in 1 / `divisor` of a ns.
    rest: u64,
    step_ns: u64,
    step_rest: u64,
    divisor: u64,
}

impl Passing<'_> {
    /// Time at which the next block, `block`, begins to pass.
    #[inline]
    pub fn begins(&self, stay: &TrackRun, block: u64) -> u64 {
        match &self.steps {
            Some(steps) => stay.begins + steps.ns,
            None => self.spec.pass_begins(stay, block),
        }
    }

    /// Time at which the next block, `block`, has passed; the one behind it is next then.
    #[inline]
    pub fn ends(&mut self, stay: &TrackRun, block: u64) -> u64 {
        let Some(steps) = &mut self.steps else { return self.spec.pass_ends(stay, block) };
        steps.ns += steps.step_ns;
        steps.rest += steps.step_rest;
        if steps.rest >= steps.divisor {
            steps.rest -= steps.divisor;
            steps.ns += 1;
        }
        stay.begins + steps.ns
    }
}
