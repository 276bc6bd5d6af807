//! A logical process: the inboxes of its hosts, and timers.

/// A logical process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    /// Time of its next timer, ns, and that timer.
    pub due: u64,
    pub timer: u32,
    /// Time of the next sample of its hosts; they take none by themselves: `u64::MAX`.
    pub next_sample: u64,
    /// Time and order of the event behind which it paused last; none: `u64::MAX` and 0.
    pub paused_at: (u64, u64),
    /// A link into which it sends; none: `u32::MAX`.
    pub first_link: u32,
    pub inboxes: Vec<u32>,
    pub timers: Vec<u32>,
}

impl Default for Process {
    fn default() -> Process {
        Process {
            due: u64::MAX,
            timer: 0,
            next_sample: u64::MAX,
            paused_at: (u64::MAX, 0),
            first_link: u32::MAX,
            inboxes: vec![],
            timers: vec![],
        }
    }
}

impl Process {
    /// Its inbox, if that is its only one, and the link into which it sends; else `u32::MAX`.
    pub fn alone(&self) -> (u32, u32) {
        match *self.inboxes.as_slice() {
            [inbox] => (inbox, self.first_link),
            _ => (u32::MAX, u32::MAX),
        }
    }

    /// Looks up its next timer.
    pub fn find_next(&mut self, due: &[u64]) {
        let of_it = self.timers.iter().map(|&timer| (due[timer as usize], timer));
        (self.due, self.timer) = of_it.min().unwrap_or((u64::MAX, 0));
    }

    /// Notes that `timer` is due at `at`.
    #[inline]
    pub fn note(&mut self, timer: u32, at: u64, due: &[u64]) {
        if (at, timer) < (self.due, self.timer) {
            (self.due, self.timer) = (at, timer);
        } else if timer == self.timer && at != self.due {
            self.find_next(due);
        }
    }
}
