//! A read's way over the bus: block by block, as the blocks come off the medium.

use super::spec::Control;

/// The bus transfer of one read.
pub struct Transfer<'a> {
    control: &'a Control,
    /// Blocks of the request.
    blocks: u64,
    /// Blocks that must be there before the bus is taken again.
    watermark: u64,
    disconnect_ns: u64,
    /// Blocks that have gone.
    pub done: u64,
    /// Time at which the bus is free for the next, ns.
    pub at: u64,
    connected: bool,
}

impl<'a> Transfer<'a> {
    /// A transfer that may begin at `at`, with the bus or (`connected` false) after taking it.
    pub fn new(
        control: &'a Control,
        blocks: u64,
        watermark: u64,
        after_read: bool,
        at: u64,
        connected: bool,
    ) -> Transfer<'a> {
        let (read, write) = control.read_disconnect_ns;
        let disconnect_ns = if after_read { read } else { write };
        Transfer { control, blocks, watermark: watermark.max(1), disconnect_ns, done: 0, at, connected }
    }

    /// Carries blocks until `count` have gone; `ready` is when each is in the buffer, up to the watermark beyond
    /// `count`.
    pub fn carry(&mut self, count: u64, ready: &[u64]) {
        let hold = self.control.hold_read || self.control.never_disconnect;
        while self.done < count {
            let next = self.done as usize;
            if self.connected {
                if ready[next] > self.at {
                    if hold {
                        self.at = ready[next];
                    } else {
                        self.at += self.disconnect_ns;
                        self.connected = false;
                        continue;
                    }
                }
                self.at += self.control.block_ns.0;
                self.done += 1;
            } else {
                let enough = (self.done + self.watermark).min(self.blocks) as usize - 1;
                let there = ready.get(enough).or(ready.last()).copied().unwrap_or(0);
                // If blocks are taken as they pass, later ones may be there before earlier ones.
                self.at = self.at.max(there).max(ready[next]) + self.control.reselect_ns.0 + self.control.prepare_ns;
                self.connected = true;
            }
        }
    }
}
