//! The command window of a session, its room for unsolicited data, and its end.

use super::connection::Phase;
use super::connection_id::ConnectionId;
use super::session::Stage;
use super::Target;
use wire::iscsi::serial_before;

impl Target {
    /// ExpCmdSN and MaxCmdSN to tell on a connection. The window is as wide as there is room for commands, and never
    /// closes backwards.
    pub(super) fn window(&mut self, id: ConnectionId) -> (u32, u32) {
        let session = match self.connections.get(&id).map(|connection| &connection.phase) {
            Some(Phase::Full { tsih }) => self.sessions.get_mut(tsih),
            Some(Phase::Login(login)) => return (login.cmd_sn, login.cmd_sn),
            None => None,
        };
        let Some(session) = session else { return (0, 0) };
        let used = session.tasks.len() + session.early.len();
        let free = (session.window as usize).saturating_sub(used) as u32;
        let most = session.exp_cmd_sn.wrapping_add(free).wrapping_sub(1);
        if serial_before(session.max_cmd_sn, most) {
            session.max_cmd_sn = most;
        }
        (session.exp_cmd_sn, session.max_cmd_sn)
    }

    /// Returns whether there is room for so much data that nobody asked for. There is for what a session may send.
    pub(super) fn has_unsolicited_room(&self, tsih: u16, bytes: u64) -> bool {
        let Some(session) = self.sessions.get(&tsih) else { return true };
        session.all_unsolicited().saturating_add(bytes) <= self.memory.unsolicited(session.reserved)
    }

    /// A connection leaves its session, with the commands that came on it.
    pub(super) fn leave_session(&mut self, tsih: u16, id: ConnectionId) {
        let Some(session) = self.sessions.get_mut(&tsih) else { return };
        session.connections.retain(|_, connection| *connection != id);
        session.early.retain(|_, early| early.connection != id);
        session.waiting.retain(|waiting| waiting.connection != id);
        let mut gone = Vec::new();
        for (itt, task) in session.tasks.iter_mut().filter(|(_, task)| task.connection == id) {
            // None of them begins because another has gone.
            task.aborted = true;
            gone.push(*itt);
            if task.stage == Stage::Working {
                self.order.abandon(task.serial);
            }
        }
        for itt in gone {
            self.drop_task(tsih, itt);
        }
        let Some(session) = self.sessions.get(&tsih) else { return };
        if session.connections.is_empty() {
            let Some(gone) = self.sessions.remove(&tsih) else { return };
            self.memory.unreserve(gone.reserved);
            self.orphan_session(tsih);
            if !gone.discovery {
                self.device.detach(&gone.nexus);
            }
        }
    }

    /// Ends all connections of a session but one, and the session if there is none.
    pub(super) fn end_session(&mut self, tsih: u16, but: Option<ConnectionId>, why: &str) {
        let Some(session) = self.sessions.get(&tsih) else { return };
        let ids: Vec<_> = session.connections.values().copied().filter(|id| Some(*id) != but).collect();
        for id in ids {
            self.leave_session(tsih, id);
            self.fail(id, why.to_owned());
        }
    }
}
