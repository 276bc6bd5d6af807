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

use super::connection_id::ConnectionId;
use std::collections::VecDeque;
use units::{Span, Time};

/// Limits of the memory budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryConfig {
    /// All of it, bytes; None: no bound.
    pub limit_bytes: Option<u64>,
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
    /// Longest stall of a peer while another waits for its memory.
    pub stall: Span,
}

/// Bytes that a peer has to move within [`MemoryConfig::stall`] to count as active.
const STALL_BYTES: u64 = 1 << 20;
/// Least unsolicited data to offer, bytes: less gains nothing.
const MIN_UNSOLICITED: u64 = 4096;

impl MemoryConfig {
    /// No bound: for the simulator, which moves no payload.
    pub const UNLIMITED: MemoryConfig = MemoryConfig {
        limit_bytes: None,
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
        self.limit_bytes.is_none()
    }

    /// The limit as a number to subtract from.
    fn bound(&self) -> u64 {
        self.limit_bytes.unwrap_or(u64::MAX)
    }

    /// Memory that all sessions together may reserve: half of the rest after connections.
    fn reservable(&self) -> u64 {
        self.bound().saturating_sub(self.connections * self.connection_bytes()) / 2
    }

    pub(super) fn size(&self, claim: u64) -> Size {
        if claim > self.usual_bytes {
            Size::Large
        } else {
            Size::Usual
        }
    }

    /// Part of a connection's claims of a size that goes beyond what it always has.
    pub(super) fn beyond(&self, size: Size, claimed: u64) -> u64 {
        match size {
            Size::Usual => claimed.saturating_sub(self.small_bytes),
            Size::Large => claimed,
        }
    }
}

/// Claims that wait apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Size {
    Usual = 0,
    Large = 1,
}

impl Size {
    pub(super) const ALL: [Size; 2] = [Size::Usual, Size::Large];
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
    pub since: Time,
    bytes: u64,
}

impl PeerProgress {
    pub fn new(now: Time) -> PeerProgress {
        PeerProgress { since: now, bytes: 0 }
    }

    pub(super) fn moved(&mut self, now: Time, bytes: u64) {
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
    pub orphaned: u64,
    /// Connections with commands that wait for room, by the size of their next one, in the order in which they began
    /// to.
    pub queues: [VecDeque<ConnectionId>; 2],
    /// Memory was released since the last pass over the queues.
    pub released: bool,
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
        self.config.bound().saturating_sub(self.taken())
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
    pub(super) fn claim(&mut self, claimed: &mut ClaimedBytes, claim: u64, is_next: bool) -> bool {
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
    pub(super) fn release(&mut self, claimed: &mut ClaimedBytes, claim: u64) {
        let size = self.config.size(claim);
        let own = &mut claimed[size as usize];
        self.claimed[size as usize] -= self.config.beyond(size, *own) - self.config.beyond(size, *own - claim);
        *own -= claim;
        self.released = true;
    }
}
