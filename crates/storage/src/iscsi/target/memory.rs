//! One bound on the memory that a target takes for its peers. **Invariant: whatever is held was reserved before it
//! came, and all reservations together stay within the limit.** Three kinds:
//!
//! - of a connection, while it is open: its buffers, and a little for commands, so that small ones always find room;
//! - of a session, from its login on: the data that may come unasked, for every command of its window. A target may not
//!   discard such data and ask for it again (RFC 7143, 4.2.5.2), and a connection that is not read for want of room
//!   would hold up the data that was asked for before. So it is reserved in full, and what is offered shrinks with what
//!   is left: FirstBurstLength, in the end nothing;
//! - of a command: what it asks for or reads, claimed when it is admitted. Until then it gets no R2T and its read does
//!   not begin.
//!
//! So what is admitted can end without more memory, and no connection needs not to be read for want of it. Commands of
//! usual size and large ones have room apart and wait apart: neither takes the last of the other's. How much a
//! connection may claim follows what is left: never more than others find free afterwards (the dynamic thresholds of
//! Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 130-140, 1998). So peers that stand still do not take
//! everything; where they hold what a connection without any claim waits for, the one that has stood still longest is
//! cut.

use super::connection::{Connection, Phase};
use super::session::Stage;
use super::{ConnectionId, Target, Ticket};
use std::collections::VecDeque;
use units::{Span, Time};

/// What a target may take, and how it is shared out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryConfig {
    /// All of it, bytes; [`MemoryConfig::UNLIMITED`] has no bound.
    pub limit_bytes: u64,
    /// Most connections that may be open, in whatever phase.
    pub connections: u64,
    /// Buffers of a connection, bytes.
    pub buffer_bytes: u64,
    /// What commands of a connection may always claim together; and unasked data of a session beside its reservation,
    /// bytes.
    pub small_bytes: u64,
    /// Most data of a command of usual size, bytes.
    pub usual_bytes: u64,
    /// Most data of any command, bytes.
    pub largest_bytes: u64,
    /// How long a peer may stand still while another waits for what it holds.
    pub stall: Span,
}

/// Bytes that a peer has to move within the time of [`MemoryConfig::stall`], so as not to stand still.
const STALL_BYTES: u64 = 1 << 20;
/// Commands with less unasked data than this gain nothing from it: below it none is offered, bytes.
const LEAST_UNASKED: u64 = 4096;

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

    /// What each connection takes, bytes.
    pub fn connection_bytes(&self) -> u64 {
        self.buffer_bytes + 2 * self.small_bytes
    }

    /// The smallest limit with which the largest command finds room, and usual ones as much beside it, while sessions
    /// have reserved all that they may, bytes.
    pub fn least_bytes(&self) -> u64 {
        self.connections * self.connection_bytes() + 4 * self.largest_bytes
    }

    /// Most unasked data of a command of the first session to log in, where `wanted` bytes would suit it and it may
    /// have `window` commands under way; 0: none may come.
    pub fn first_burst_bytes(&self, window: u32, wanted: u32) -> u32 {
        if self.is_unlimited() {
            return wanted;
        }
        Memory::new(*self).reserve(window, wanted)
    }

    fn is_unlimited(&self) -> bool {
        self.limit_bytes == u64::MAX
    }

    /// What all sessions together may reserve: half of what connections leave.
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

/// What a connection has claimed, bytes, by size.
pub(super) type Claimed = [u64; 2];

/// What a command holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Held {
    /// Of the data of commands under way per connection.
    pub share: u64,
    /// Claimed at its admission.
    pub claim: u64,
    /// Data that came unasked.
    pub unasked: u64,
}

/// Who counts what a command holds that the medium is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// Its task.
    Task,
    /// Its connection is gone: the session counts what came unasked, and the target what was claimed.
    Session,
    /// Its session is gone as well.
    Target,
}

/// What is held until bytes before a place of the outgoing stream have been sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub at: u64,
    pub held: Held,
}

/// How a peer gets on with what it holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    since: Time,
    bytes: u64,
}

impl Progress {
    pub fn new(now: Time) -> Progress {
        Progress { since: now, bytes: 0 }
    }

    fn moved(&mut self, now: Time, bytes: u64) {
        self.bytes += bytes;
        if self.bytes >= STALL_BYTES {
            *self = Progress::new(now);
        }
    }
}

/// What is taken, bytes.
#[derive(Debug)]
pub(super) struct Memory {
    config: MemoryConfig,
    /// Connections that are open.
    connections: u64,
    /// Reserved by sessions.
    reserved: u64,
    /// Claims of connections beyond what each always has.
    claimed: Claimed,
    /// Of commands that the medium is at and that have no session any more.
    orphaned: u64,
    /// Connections with commands that wait for room, by the size of their next one, in the order in which they began
    /// to.
    queues: [VecDeque<ConnectionId>; 2],
    /// Something was given back since the queue was looked at.
    released: bool,
}

impl Memory {
    pub fn new(config: MemoryConfig) -> Memory {
        let (connections, reserved, claimed, orphaned, queues) = Default::default();
        Memory { config, connections, reserved, claimed, orphaned, queues, released: false }
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

    /// A connection is gone, with what its commands had claimed.
    pub fn closed(&mut self, claimed: Claimed) {
        self.connections -= 1;
        for size in Size::ALL {
            self.claimed[size as usize] -= self.config.beyond(size, claimed[size as usize]);
        }
        self.released = true;
    }

    /// Unasked data of a session with this reservation, bytes.
    pub fn unasked(&self, reserved: u64) -> u64 {
        if self.is_unlimited() {
            return u64::MAX;
        }
        self.config.small_bytes + reserved
    }

    /// Reserves unasked data for the commands of a window, `wanted` bytes each or fewer; what it is per command. Two
    /// fifths of what is left goes to one session, so that there is something for those that come later.
    pub fn reserve(&mut self, window: u32, wanted: u32) -> u32 {
        let left = self.config.reservable().saturating_sub(self.reserved) * 2 / 5;
        // Whole blocks; what is negotiated has 512 bytes at least (RFC 7143, 13.14).
        let each = (left.min(self.room()) / u64::from(window)).min(u64::from(wanted)) / 512 * 512;
        if each < LEAST_UNASKED.min(u64::from(wanted)) {
            return 0;
        }
        self.reserved += each * u64::from(window);
        each as u32
    }

    /// Gives back what was reserved.
    pub fn unreserve(&mut self, bytes: u64) {
        self.reserved -= bytes;
        self.released = true;
    }

    /// Claims for a command of a connection that has `claimed` already, while `is_next` says that nobody is to be let
    /// in before.
    fn claim(&mut self, claimed: &mut Claimed, claim: u64, is_next: bool) -> bool {
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
    fn release(&mut self, claimed: &mut Claimed, claim: u64) {
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

    /// So many bytes of a connection's PDUs were handed to the kernel, or whoever takes them.
    pub fn handle_sent(&mut self, now: Time, id: ConnectionId, bytes: u64) {
        self.now = now;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.sent += bytes;
        connection.progress.moved(now, bytes);
        while let Some(connection) = self.connections.get_mut(&id) {
            let Some(&Leaving { held, .. }) = connection.leaving.front().filter(|l| l.at <= connection.sent) else {
                break;
            };
            connection.leaving.pop_front();
            self.release(id, held);
        }
        self.settle();
    }

    /// The connection of a command that the medium is at is gone; its data is there still.
    pub(super) fn orphan_work(&mut self, tsih: u16, serial: u64) {
        let of_task = |ticket: &&mut Ticket| ticket.tsih == tsih && ticket.serial == serial;
        if let Some(ticket) = self.tickets.values_mut().find(of_task) {
            ticket.owner = Owner::Session;
            self.memory.orphaned += ticket.held.claim;
        }
    }

    /// A session is gone; what the medium is at of its commands is there still.
    pub(super) fn orphan_session(&mut self, tsih: u16) {
        for ticket in self.tickets.values_mut().filter(|ticket| ticket.tsih == tsih) {
            if ticket.owner == Owner::Task {
                self.memory.orphaned += ticket.held.claim;
            }
            if ticket.owner != Owner::Target {
                self.memory.orphaned += ticket.held.unasked;
            }
            ticket.owner = Owner::Target;
        }
    }

    /// The medium is done with a command.
    pub(super) fn note_work_done(&mut self, ticket: &Ticket) {
        let session = self.sessions.get_mut(&ticket.tsih).filter(|_| ticket.owner != Owner::Target);
        match (ticket.owner, session) {
            (Owner::Task, Some(session)) => {
                // Its peer had nothing to move until now.
                let task = session.tasks.get(&ticket.itt).filter(|task| task.serial == ticket.serial);
                if let Some(connection) = task.and_then(|task| self.connections.get_mut(&task.connection)) {
                    connection.progress = Progress::new(self.now);
                }
                return;
            }
            (Owner::Session, Some(session)) => {
                session.unasked = session.unasked.saturating_sub(ticket.held.unasked);
                self.memory.orphaned -= ticket.held.claim;
            }
            (Owner::Target, _) => self.memory.orphaned -= ticket.held.claim + ticket.held.unasked,
            _ => return,
        }
        self.memory.released = true;
    }

    /// So many bytes came on a connection.
    pub fn handle_received(&mut self, now: Time, id: ConnectionId, bytes: u64) {
        self.now = now;
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.progress.moved(now, bytes);
        }
    }

    /// Gives back what is held once everything has been sent that was polled so far.
    pub(super) fn release_when_sent(&mut self, id: ConnectionId, held: Held) {
        let is_unlimited = self.memory.is_unlimited();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if is_unlimited || connection.sent >= connection.polled {
            return self.release(id, held);
        }
        connection.leaving.push_back(Leaving { at: connection.polled, held });
    }

    /// Gives back what is held.
    pub(super) fn release(&mut self, id: ConnectionId, held: Held) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.committed -= held.share;
        self.memory.release(&mut connection.claimed, held.claim);
        self.readmit.insert(id);
        if let Phase::Full { tsih } = connection.phase {
            if let Some(session) = self.sessions.get_mut(&tsih) {
                session.unasked = session.unasked.saturating_sub(held.unasked);
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
        let has_nothing = connection.claimed == Claimed::default();
        if !self.memory.claim(&mut connection.claimed, claim, is_next) {
            if !self.memory.queues[size as usize].contains(&id) {
                connection.waiting_since = Some(self.now);
                self.memory.queues[size as usize].push_back(id);
            }
            return false;
        }
        if has_nothing {
            connection.progress = Progress::new(self.now);
        }
        true
    }

    /// Whether a waiting connection has nothing of a size beyond what it always has.
    fn is_entitled(&self, size: Size, id: ConnectionId) -> bool {
        let claimed = self.connections.get(&id).map(|connection| connection.claimed[size as usize]);
        claimed.is_some_and(|claimed| self.config.memory.beyond(size, claimed) == 0)
    }

    /// Lets commands go on for which there is room now.
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

    /// Cuts the peer that has stood still longest, when a connection without claims has waited long enough for what it
    /// holds.
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
        if connection.closing.is_some() || connection.claimed == Claimed::default() {
            return false;
        }
        let Phase::Full { tsih } = connection.phase else { return false };
        let of_peer = |session: &super::session::Session| {
            let mut own = session.tasks.values().filter(|task| task.connection == id && task.admitted);
            own.any(|task| task.held.claim > 0 && task.stage != Stage::Working)
        };
        !connection.leaving.is_empty() || self.sessions.get(&tsih).is_some_and(of_peer)
    }
}
