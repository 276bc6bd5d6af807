//! Commands under way by their number, which only grows.

use std::collections::VecDeque;
use units::Time;

/// A command of a request that has no status yet.
#[derive(Clone, Copy, Debug)]
pub struct UnderWay {
    /// Time at which the application had the request.
    pub due: Time,
    /// Read or write.
    pub read: bool,
    /// Its data, bytes.
    pub bytes: u32,
    /// Number of the place whose request it is, from its source.
    pub place: u32,
    /// Time at which its command went to TCP.
    pub sent: Option<Time>,
    /// Time at the disk.
    pub disk_ns: u64,
}

/// Commands under way.
#[derive(Default)]
pub struct Commands {
    /// From `base` on; those that are over are empty until the oldest goes.
    entries: VecDeque<Option<UnderWay>>,
    base: u64,
}

impl Commands {
    /// Adds one; numbers ascend.
    pub fn insert(&mut self, id: u64, command: UnderWay) {
        if self.entries.is_empty() {
            self.base = id;
        }
        while (self.entries.len() as u64) < id - self.base {
            self.entries.push_back(None);
        }
        self.entries.push_back(Some(command));
    }

    /// One that is under way.
    pub fn get(&mut self, id: u64) -> Option<&mut UnderWay> {
        let index = usize::try_from(id.checked_sub(self.base)?).ok()?;
        self.entries.get_mut(index)?.as_mut()
    }

    /// Takes one out.
    pub fn remove(&mut self, id: u64) -> Option<UnderWay> {
        let index = usize::try_from(id.checked_sub(self.base)?).ok()?;
        let command = self.entries.get_mut(index)?.take();
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.base += 1;
        }
        command
    }
}
