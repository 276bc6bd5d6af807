//! Exchange numbers: which are in use, which rest after an abort.

use std::collections::BTreeMap;
use wire::fc::FcId;

/// Rest of a number whose exchange was aborted (FC-FS-2, 12.3.3: the recovery qualifier).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Resting {
    pub target: FcId,
    pub rx_id: u16,
    /// Time at which frames of the exchange are gone from the network, ns.
    pub until_ns: u64,
    /// RRQ is under way.
    pub asked: bool,
    /// The target knows of the abort, so that it wants an RRQ.
    pub reinstates: bool,
}

/// Exchange numbers 0 to `count` - 1, given out in turn: a number comes again as late as can be.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    count: u16,
    next: u16,
    resting: BTreeMap<u16, Resting>,
}

impl Numbers {
    pub fn new(count: u16) -> Numbers {
        let count = count.clamp(1, crate::fc::nport::LINK_SERVICE_EXCHANGES);
        Numbers { count, next: 0, resting: BTreeMap::new() }
    }

    /// A number that neither rests nor is one of the `used` that `is_used` knows; None when there is none. Costs a step
    /// for each that is passed over.
    pub fn take(&mut self, used: usize, is_used: impl Fn(u16) -> bool) -> Option<u16> {
        if used + self.resting.len() >= usize::from(self.count) {
            return None;
        }
        for _ in 0..self.count {
            let number = self.next;
            self.next = (self.next + 1) % self.count;
            if !is_used(number) && !self.resting.contains_key(&number) {
                return Some(number);
            }
        }
        None
    }

    /// Lets a number rest.
    pub fn rest(&mut self, number: u16, resting: Resting) {
        self.resting.insert(number, resting);
    }

    /// Number of those that rest.
    pub fn resting(&self) -> usize {
        self.resting.len()
    }

    /// A number may be used again.
    pub fn release(&mut self, number: u16) {
        self.resting.remove(&number);
    }

    /// Nobody is there any more to send RRQ to: numbers rest until their time is over.
    pub fn forget(&mut self, target: FcId) {
        for resting in self.resting.values_mut().filter(|resting| resting.target == target) {
            (resting.asked, resting.reinstates) = (false, false);
        }
    }

    /// Time at which the first rest is over, of those that no RRQ is under way for.
    pub fn next_ns(&self) -> Option<u64> {
        self.resting.values().filter(|resting| !resting.asked).map(|resting| resting.until_ns).min()
    }

    /// Numbers whose rest is over. Those that want an RRQ are marked as asked; the others are free.
    pub fn take_due(&mut self, now_ns: u64) -> Vec<(u16, Resting)> {
        let due = |resting: &Resting| !resting.asked && resting.until_ns <= now_ns;
        let numbers: Vec<u16> = self.resting.iter().filter(|(_, resting)| due(resting)).map(|(at, _)| *at).collect();
        let mut wants = Vec::new();
        for number in numbers {
            let Some(resting) = self.resting.get_mut(&number) else { continue };
            if resting.reinstates {
                resting.asked = true;
                wants.push((number, *resting));
            } else {
                self.resting.remove(&number);
            }
        }
        wants
    }
}
