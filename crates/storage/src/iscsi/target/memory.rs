//! The memory budget of a target. **Invariant: all data held was reserved before it arrived, and all reservations
//! together stay within the limit.** There are three kinds of reservation:
//!
//! - per connection, while it is open: its buffers, and a small share for commands, so that small ones always find
//!   room;
//! - per session, from its login on: unsolicited data for every command of its window. A target may not discard such
//!   data and request it again (RFC 7143, 4.2.5.2), and a connection that is not read for want of room would delay
//!   requested data. So it is reserved in full, and the offered FirstBurstLength shrinks with the free memory, down to
//!   none;
//! - per command: the data that it requests or reads, claimed at its admission. Until then it gets no R2T and its read
//!   does not begin.
//!
//! So an admitted command completes without more memory, and the target reads every connection. Usual and large
//! commands have separate shares and separate queues. A connection may claim at most the memory left free afterwards
//! (the dynamic thresholds of Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 130-140, 1998). So
//! stalled peers do not take everything; where they hold memory that a connection without any claim waits for, the
//! target closes the one stalled longest.

use super::connection::{Connection, Phase};
use super::session::Stage;
use super::{ConnectionId, Target, WorkOrigin};
use std::collections::VecDeque;
use units::{Span, Time};

/// Limits of the memory budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryConfig {
    /// All of it, bytes; [`MemoryConfig::UNLIMITED`] has no bound.
    pub limit_bytes: u64,
    /// Most connections that may be open, in whatever phase.
    pub connections: u64,
    /// Buffers of a connection, bytes.
    pub buffer_bytes: u64,
    /// Guaranteed share of the commands of a connection, and of the unsolicited data of a session beside its
    /// reservation, bytes.
    pub small_bytes: u64,
    /// Most data of a command of usual size, bytes.
    pub usual_bytes: u64,
    /// Most data of any command, bytes.
    pub largest_bytes: u64,
    /// How long a peer may stall while another waits for its memory.
    pub stall: Span,
}

/// Bytes that a peer has to move within [`MemoryConfig::stall`] to count as active.
const STALL_BYTES: u64 = 1 << 20;
/// Least unsolicited data to offer, bytes: less gains nothing.
const MIN_UNSOLICITED: u64 = 4096;

impl MemoryConfig {
    /// No bound: for the simulator, which moves no payload.
    pub const UNLIMITED: MemoryConfig = MemoryConfig {
        limit_bytes: u64::MAX,
        connections: 0,
        buffer_bytes: 0,
        small_bytes: 0,
        // Linux asks for 1.25 MiB at most unless it is told otherwise (max_sectors_kb).
        usual_bytes: 2 << 20,
        largest_bytes: crate::scsi::MAX_TRANSFER_BYTES as u64,
        stall: Span::from_secs(10),
    };

    /// Memory of each connection, bytes.
    pub fn connection_bytes(&self) -> u64 {
        self.buffer_bytes + 2 * self.small_bytes
    }

    /// The smallest limit with which the largest command finds room, and usual ones as much beside it, while sessions
    /// have reserved all that they may, bytes.
    pub fn least_bytes(&self) -> u64 {
        self.connections * self.connection_bytes() + 4 * self.largest_bytes
    }

    /// Most unsolicited data of a command of the first session to log in, where `wanted` bytes would suit it and it may
    /// have `window` commands under way; 0: none may come.
    pub fn first_burst_bytes(&self, window: u32, wanted: u32) -> u32 {
        if self.is_unlimited() {
            return wanted;
        }
        MemoryBudget::new(*self).reserve(window, wanted)
    }

    fn is_unlimited(&self) -> bool {
        self.limit_bytes == u64::MAX
    }

    /// Memory that all sessions together may reserve: half of the rest after connections.
    fn reservable(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.connections * self.connection_bytes()) / 2
    }

    fn size(&self, claim: u64) -> Size {
        if claim > self.usual_bytes {
            Size::Large
        } else {
            Size::Usual
        }
    }

    /// Part of a connection's claims of a size that goes beyond what it always has.
    fn beyond(&self, size: Size, claimed: u64) -> u64 {
        match size {
            Size::Usual => claimed.saturating_sub(self.small_bytes),
            Size::Large => claimed,
        }
    }
}

/// Claims that wait apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Size {
    Usual = 0,
    Large = 1,
}

impl Size {
    const ALL: [Size; 2] = [Size::Usual, Size::Large];
}

/// Bytes claimed by a connection, by size.
pub(super) type ClaimedBytes = [u64; 2];

/// Memory of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct TaskMemory {
    /// Of the data of commands under way per connection.
    pub share: u64,
    /// ClaimedBytes at its admission.
    pub claim: u64,
    /// Unsolicited data.
    pub unsolicited: u64,
}

/// The account of the memory of a command with an operation on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MemoryOwner {
    /// Its task.
    Task,
    /// Its connection is closed: the session counts unsolicited data, the target the claim.
    Session,
    /// Its session is closed as well.
    Target,
}

/// Memory released once the outgoing stream has been sent up to a position.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRelease {
    pub at: u64,
    pub held: TaskMemory,
}

/// Progress of a peer, for stall detection.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerProgress {
    since: Time,
    bytes: u64,
}

impl PeerProgress {
    pub fn new(now: Time) -> PeerProgress {
        PeerProgress { since: now, bytes: 0 }
    }

    fn moved(&mut self, now: Time, bytes: u64) {
        self.bytes += bytes;
        if self.bytes >= STALL_BYTES {
            *self = PeerProgress::new(now);
        }
    }
}

/// Memory in use, bytes.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    config: MemoryConfig,
    /// Connections that are open.
    connections: u64,
    /// Reserved by sessions.
    reserved: u64,
    /// Claims of connections beyond what each always has.
    claimed: ClaimedBytes,
    /// Memory of operations on the medium without a session.
    orphaned: u64,
    /// Connections with commands that wait for room, by the size of their next one, in the order in which they began
    /// to.
    queues: [VecDeque<ConnectionId>; 2],
    /// Memory was released since the last pass over the queues.
    released: bool,
}

impl MemoryBudget {
    pub fn new(config: MemoryConfig) -> MemoryBudget {
        let (connections, reserved, claimed, orphaned, queues) = Default::default();
        MemoryBudget { config, connections, reserved, claimed, orphaned, queues, released: false }
    }

    pub fn is_unlimited(&self) -> bool {
        self.config.is_unlimited()
    }

    /// All that is taken.
    pub fn taken(&self) -> u64 {
        let claimed: u64 = self.claimed.iter().sum();
        self.connections * self.config.connection_bytes() + self.reserved + claimed + self.orphaned
    }

    fn room(&self) -> u64 {
        self.config.limit_bytes.saturating_sub(self.taken())
    }

    /// Room for more claims of a size: large ones have half of what all may claim, and usual ones leave room for the
    /// largest.
    fn room_for(&self, size: Size) -> u64 {
        let all = self.room() + self.claimed.iter().sum::<u64>();
        let most = match size {
            Size::Usual => all - self.config.largest_bytes.min(all / 2),
            Size::Large => all / 2,
        };
        most.saturating_sub(self.claimed[size as usize]).min(self.room())
    }

    pub fn opened(&mut self) {
        self.connections += 1;
    }

    /// A connection is closed; releases the claims of its commands.
    pub fn closed(&mut self, claimed: ClaimedBytes) {
        self.connections -= 1;
        for size in Size::ALL {
            self.claimed[size as usize] -= self.config.beyond(size, claimed[size as usize]);
        }
        self.released = true;
    }

    /// Unasked data of a session with this reservation, bytes.
    pub fn unsolicited(&self, reserved: u64) -> u64 {
        if self.is_unlimited() {
            return u64::MAX;
        }
        self.config.small_bytes + reserved
    }

    /// Reserves unsolicited data for the commands of a window, `wanted` bytes each or fewer; what it is per command.
    /// Two fifths of what is left goes to one session, so that there is something for those that come later.
    pub fn reserve(&mut self, window: u32, wanted: u32) -> u32 {
        let left = self.config.reservable().saturating_sub(self.reserved) * 2 / 5;
        // Whole blocks; what is negotiated has 512 bytes at least (RFC 7143, 13.14).
        let each = (left.min(self.room()) / u64::from(window)).min(u64::from(wanted)) / 512 * 512;
        if each < MIN_UNSOLICITED.min(u64::from(wanted)) {
            return 0;
        }
        self.reserved += each * u64::from(window);
        each as u32
    }

    /// Releases a reservation.
    pub fn unreserve(&mut self, bytes: u64) {
        self.reserved -= bytes;
        self.released = true;
    }

    /// Claims for a command of a connection that has `claimed` already, while `is_next` says that nobody is to be let
    /// in before.
    fn claim(&mut self, claimed: &mut ClaimedBytes, claim: u64, is_next: bool) -> bool {
        let size = self.config.size(claim);
        let own = &mut claimed[size as usize];
        let (before, after) = (self.config.beyond(size, *own), self.config.beyond(size, *own + claim));
        if !self.is_unlimited() && after > before {
            let (more, room) = (after - before, self.room_for(size));
            // Of large ones there may be room for a single one.
            let is_alone = size == Size::Large && before == 0;
            if !is_next || more > room || !is_alone && after > room - more {
                return false;
            }
        }
        *own += claim;
        self.claimed[size as usize] += after - before;
        true
    }

    /// Gives back a claim of a connection that has `claimed` with it.
    fn release(&mut self, claimed: &mut ClaimedBytes, claim: u64) {
        let size = self.config.size(claim);
        let own = &mut claimed[size as usize];
        self.claimed[size as usize] -= self.config.beyond(size, *own) - self.config.beyond(size, *own - claim);
        *own -= claim;
        self.released = true;
    }
}

impl Target {
    /// Bytes that the target has taken for its peers, of [`MemoryConfig::limit_bytes`].
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

    /// Whether a waiting connection has nothing of a size beyond what it always has.
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

    /// Whether a connection holds memory that is its peer's to move: not what the medium is at.
    fn holds(&self, id: ConnectionId, connection: &Connection) -> bool {
        if connection.closing.is_some() || connection.claimed == ClaimedBytes::default() {
            return false;
        }
        let Phase::Full { tsih } = connection.phase else { return false };
        let of_peer = |session: &super::session::Session| {
            let mut own = session.tasks.values().filter(|task| task.connection == id && task.admitted);
            own.any(|task| task.held.claim > 0 && task.stage != Stage::Working)
        };
        !connection.pending_releases.is_empty() || self.sessions.get(&tsih).is_some_and(of_peer)
    }
}
