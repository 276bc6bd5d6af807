//! The target's command window as the initiator meets it: MaxCmdSN - ExpCmdSN + 1 (RFC 7143, 4.2.2.1).

use super::window_use::WindowUse;
use super::{Initiator, SessionState};
use wire::iscsi::serial_before;

impl Initiator {
    /// Takes the numbers of a PDU.
    pub(super) fn note_window(&mut self, exp_cmd_sn: u32, max_cmd_sn: u32) {
        // RFC 7143, 4.2.2.1: a window that is impossible is ignored, and so is one older than what is known.
        if !serial_before(max_cmd_sn, exp_cmd_sn.wrapping_sub(1)) && serial_before(self.max_cmd_sn, max_cmd_sn) {
            self.max_cmd_sn = max_cmd_sn;
            let width = max_cmd_sn.wrapping_sub(exp_cmd_sn).wrapping_add(1);
            self.window_use.width = self.window_use.width.max(width);
        }
    }

    /// Returns the counters of commands that the command window held up so far.
    pub fn window_use(&self) -> WindowUse {
        self.window_use
    }

    /// A command was submitted, and sent if it could be.
    pub(super) fn note_window_use(&mut self) {
        if self.state != SessionState::Up {
            return;
        }
        self.window_use.submitted += 1;
        if !self.queue.is_empty() && serial_before(self.max_cmd_sn, self.cmd_sn) {
            self.window_use.waited += 1;
        }
    }
}
