//! Requests under way: link services and questions to the name server, their numbers, their time-outs.

use bytes::Bytes;
use std::collections::BTreeMap;
use wire::fc::{FcId, FrameType};

/// First of the exchange numbers that belong to link services. Those below are FC-4's, so that neither has to ask the
/// other for a number.
pub const LINK_SERVICE_EXCHANGES: u16 = 0xf000;
const NUMBERS: u16 = 0xfff;

/// Purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// FLOGI or FDISC.
    FabricLogin,
    /// PLOGI to the directory server.
    DirectoryLogin,
    /// A registration, by its number.
    Register(usize),
    /// SCR.
    ListenToChanges,
    /// GPN_FT, for own logins.
    Discover,
    /// GID_FT, where the fabric has no GPN_FT.
    DiscoverIds,
    /// GPN_FT for the caller.
    ListPorts,
    /// GPN_ID of a port that changed.
    NameOf(FcId),
    /// PLOGI.
    Login(FcId),
    /// PRLI.
    ProcessLogin(FcId),
    /// RTV.
    ReadTimeouts(FcId),
    /// ADISC.
    Verify(FcId),
    /// LOGO; no answer is waited for twice.
    Logout(FcId),
    /// ECHO or ADISC, for the caller.
    Ping(FcId, u32),
    /// A question of the caller to the name server, by its number.
    Ask(u32),
    /// REC of FC-4, by its key.
    ReadExchange(u64),
    /// RRQ of FC-4, by its key.
    Reinstate(u64),
}

/// A request under way.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub to: FcId,
    pub kind: FrameType,
    pub payload: Bytes,
    pub purpose: Purpose,
    pub sent_ns: u64,
    pub deadline_ns: u64,
    /// Attempts that are left.
    pub attempts: u32,
}

/// All requests under way, by their exchange numbers.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    pending: BTreeMap<u16, Pending>,
    next: u16,
}

impl Requests {
    pub fn new() -> Requests {
        Requests { pending: BTreeMap::new(), next: 0 }
    }

    /// Number of requests under way.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Takes a request and returns its exchange number; None when all are in use. Numbers go round, so that a late
    /// answer does not meet a new request.
    pub fn add(&mut self, pending: Pending) -> Option<u16> {
        for _ in 0..NUMBERS {
            let ox_id = LINK_SERVICE_EXCHANGES + self.next;
            self.next = (self.next + 1) % NUMBERS;
            if let std::collections::btree_map::Entry::Vacant(free) = self.pending.entry(ox_id) {
                free.insert(pending);
                return Some(ox_id);
            }
        }
        None
    }

    /// The request that an answer belongs to. The fabric controller's and fabric port's answers may come from either
    /// address of the fabric.
    pub fn get(&self, ox_id: u16, from: FcId) -> Option<&Pending> {
        self.pending.get(&ox_id).filter(|pending| pending.to == from)
    }

    pub fn remove(&mut self, ox_id: u16) -> Option<Pending> {
        self.pending.remove(&ox_id)
    }

    /// Forgets requests by their purpose.
    pub fn forget(&mut self, mut which: impl FnMut(&Pending) -> bool) {
        self.pending.retain(|_, pending| !which(pending));
    }

    pub fn has(&self, purpose: Purpose) -> bool {
        self.pending.values().any(|pending| pending.purpose == purpose)
    }

    /// Time of the first time-out.
    pub fn next_ns(&self) -> Option<u64> {
        self.pending.values().map(|pending| pending.deadline_ns).min()
    }

    /// Requests whose time is over, in order of numbers.
    pub fn take_due(&mut self, now_ns: u64) -> Vec<Pending> {
        let due: Vec<u16> =
            self.pending.iter().filter(|(_, pending)| pending.deadline_ns <= now_ns).map(|(id, _)| *id).collect();
        due.iter().filter_map(|id| self.pending.remove(id)).collect()
    }
}
