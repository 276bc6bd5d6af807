//! The target's use of its memory budget: claims, releases, admission of waiting commands, stalled peers.

use super::connection::{Connection, Phase};
use super::connection_id::ConnectionId;
use super::memory::{ClaimedBytes, MemoryOwner, PeerProgress, PendingRelease, Size, TaskMemory};
use super::session::{Session, Stage};
use super::work::WorkOrigin;
use super::Target;
use units::Time;

impl Target {
    /// Bytes that the target has taken for its peers, of [`super::MemoryConfig::limit_bytes`].
    pub fn memory_bytes(&self) -> u64 {
        self.memory.taken()
    }

    /// `bytes` of a connection's PDUs were handed to the transport.
    pub fn handle_sent(&mut self, now: Time, id: ConnectionId, bytes: u64) {
        self.now = now;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.sent += bytes;
        connection.progress.moved(now, bytes);
        while let Some(connection) = self.connections.get_mut(&id) {
            let Some(&PendingRelease { held, .. }) =
                connection.pending_releases.front().filter(|l| l.at <= connection.sent)
            else {
                break;
            };
            connection.pending_releases.pop_front();
            self.release(id, held);
        }
        self.settle();
    }

    /// The connection of a command with an operation on the medium is closed; its memory stays in use.
    pub(super) fn orphan_work(&mut self, tsih: u16, serial: u64) {
        let of_task = |origin: &&mut WorkOrigin| origin.tsih == tsih && origin.serial == serial;
        if let Some(origin) = self.work_origins.values_mut().find(of_task) {
            origin.owner = MemoryOwner::Session;
            self.memory.orphaned += origin.held.claim;
        }
    }

    /// A session is closed; memory of its operations on the medium stays in use.
    pub(super) fn orphan_session(&mut self, tsih: u16) {
        for origin in self.work_origins.values_mut().filter(|origin| origin.tsih == tsih) {
            if origin.owner == MemoryOwner::Task {
                self.memory.orphaned += origin.held.claim;
            }
            if origin.owner != MemoryOwner::Target {
                self.memory.orphaned += origin.held.unsolicited;
            }
            origin.owner = MemoryOwner::Target;
        }
    }

    /// The medium is done with a command.
    pub(super) fn note_work_done(&mut self, origin: &WorkOrigin) {
        let session = self.sessions.get_mut(&origin.tsih).filter(|_| origin.owner != MemoryOwner::Target);
        match (origin.owner, session) {
            (MemoryOwner::Task, Some(session)) => {
                // Its peer had nothing to move until now.
                let task = session.tasks.get(&origin.itt).filter(|task| task.serial == origin.serial);
                if let Some(connection) = task.and_then(|task| self.connections.get_mut(&task.connection)) {
                    connection.progress = PeerProgress::new(self.now);
                }
                return;
            }
            (MemoryOwner::Session, Some(session)) => {
                session.unsolicited = session.unsolicited.saturating_sub(origin.held.unsolicited);
                self.memory.orphaned -= origin.held.claim;
            }
            (MemoryOwner::Target, _) => self.memory.orphaned -= origin.held.claim + origin.held.unsolicited,
            _ => return,
        }
        self.memory.released = true;
    }

    /// `bytes` arrived on a connection.
    pub fn handle_received(&mut self, now: Time, id: ConnectionId, bytes: u64) {
        self.now = now;
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.progress.moved(now, bytes);
        }
    }

    /// Releases `held` once all PDUs polled so far have been sent.
    pub(super) fn release_when_sent(&mut self, id: ConnectionId, held: TaskMemory) {
        let is_unlimited = self.memory.is_unlimited();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if is_unlimited || connection.sent >= connection.polled {
            return self.release(id, held);
        }
        connection.pending_releases.push_back(PendingRelease { at: connection.polled, held });
    }

    /// Releases the memory of a command.
    pub(super) fn release(&mut self, id: ConnectionId, held: TaskMemory) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.committed -= held.share;
        self.memory.release(&mut connection.claimed, held.claim);
        self.readmit.insert(id);
        if let Phase::Full { tsih } = connection.phase {
            if let Some(session) = self.sessions.get_mut(&tsih) {
                session.unsolicited = session.unsolicited.saturating_sub(held.unsolicited);
            }
        }
    }

    /// Claims room for a waiting command; false: it waits on.
    pub(super) fn claim(&mut self, id: ConnectionId, claim: u64) -> bool {
        // One that has nothing beyond what it always has, and cannot get it, is not passed by others.
        let size = self.config.memory.size(claim);
        let first = self.memory.queues[size as usize].iter().copied().find(|&id| self.is_entitled(size, id));
        let is_next = first.is_none_or(|first| first == id);
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        let has_nothing = connection.claimed == ClaimedBytes::default();
        if !self.memory.claim(&mut connection.claimed, claim, is_next) {
            if !self.memory.queues[size as usize].contains(&id) {
                connection.waiting_since = Some(self.now);
                self.memory.queues[size as usize].push_back(id);
            }
            return false;
        }
        if has_nothing {
            connection.progress = PeerProgress::new(self.now);
        }
        true
    }

    /// Returns whether a waiting connection has nothing of a size beyond what it always has.
    fn is_entitled(&self, size: Size, id: ConnectionId) -> bool {
        let claimed = self.connections.get(&id).map(|connection| connection.claimed[size as usize]);
        claimed.is_some_and(|claimed| self.config.memory.beyond(size, claimed) == 0)
    }

    /// Admits waiting commands for which there is room now.
    pub(super) fn settle(&mut self) {
        while std::mem::take(&mut self.memory.released) || !self.readmit.is_empty() {
            while let Some(id) = self.readmit.pop_first() {
                if let Some(tsih) = self.tsih_of(id) {
                    self.admit(id, tsih);
                }
            }
            Size::ALL.into_iter().for_each(|size| self.admit_queue(size));
        }
    }

    fn admit_queue(&mut self, size: Size) {
        let mut index = 0;
        while let Some(&id) = self.memory.queues[size as usize].get(index) {
            if let Some(tsih) = self.tsih_of(id) {
                self.admit(id, tsih);
            }
            if self.next_claim(id).is_some_and(|claim| self.config.memory.size(claim) == size) {
                if self.is_entitled(size, id) {
                    return;
                }
                index += 1;
            } else {
                // It has what it waited for, or is gone.
                self.memory.queues[size as usize].remove(index);
            }
        }
    }

    /// The claim of the command that a connection waits with.
    fn next_claim(&self, id: ConnectionId) -> Option<u64> {
        let itt = self.connections.get(&id)?.waiting.front()?;
        self.sessions.get(&self.tsih_of(id)?)?.tasks.get(itt).map(|task| task.held.claim)
    }

    /// Closes the connection stalled longest, when a connection without claims has waited too long for its memory.
    pub(super) fn cut_stalled(&mut self, now: Time) {
        let stall = self.config.memory.stall;
        let is_late =
            |id: &ConnectionId| self.connections[id].waiting_since.is_some_and(|since| now.since(since) >= stall);
        let waits = |size: Size| {
            let mut queue = self.memory.queues[size as usize].iter();
            queue.any(|id| self.connections.contains_key(id) && self.is_entitled(size, *id) && is_late(id))
        };
        // One at a time: it gives back what it held when its connection is closed.
        let is_cutting = self.connections.values().any(|connection| connection.is_aborted);
        let Some(size) = Size::ALL.into_iter().find(|&size| waits(size)).filter(|_| !is_cutting) else { return };
        let stalled =
            self.connections.iter().filter(|(id, c)| now.since(c.progress.since) >= stall && self.holds(**id, c));
        let stalled = stalled.filter(|(_, c)| c.claimed[size as usize] > 0);
        let longest = stalled.min_by_key(|(_, c)| (c.progress.since, std::cmp::Reverse(c.claimed)));
        let Some((id, claimed)) = longest.map(|(id, c)| (*id, c.claimed.iter().sum::<u64>())) else { return };
        let seconds = stall.0 / 1_000_000_000;
        self.abort_connection(
            id,
            format!("it held {claimed} bytes of memory without moving for {seconds} s, and others wait"),
        );
    }

    /// Returns whether a connection holds memory that is its peer's to move: not what the medium is at.
    fn holds(&self, id: ConnectionId, connection: &Connection) -> bool {
        if connection.closing.is_some() || connection.claimed == ClaimedBytes::default() {
            return false;
        }
        let Phase::Full { tsih } = connection.phase else { return false };
        let of_peer = |session: &Session| {
            let mut own = session.tasks.values().filter(|task| task.connection == id && task.admitted);
            own.any(|task| task.held.claim > 0 && task.stage != Stage::Working)
        };
        !connection.pending_releases.is_empty() || self.sessions.get(&tsih).is_some_and(of_peer)
    }
}
