//! Exchanges between ports that are under way, as far as the frames that pass tell.

use std::collections::BTreeSet;
use wire::fc::{frame_control, FcId, Frame, FrameType};

/// Exchanges that are noted at once; those beyond are not waited for.
const EXCHANGES_MAX: usize = 65_536;

/// An exchange: its originator, its responder, the originator's number.
type Exchange = (FcId, FcId, u16);

/// The exchanges.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    open: BTreeSet<Exchange>,
    /// No exchange may begin any more.
    is_draining: bool,
}

impl Exchanges {
    /// Lets no exchange begin from now on.
    pub fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Number of exchanges under way.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Notes a frame between two ports. Returns false for one that would begin an exchange and may not.
    pub fn note(&mut self, frame: &Frame) -> bool {
        let header = &frame.header;
        let is_responders = header.has(frame_control::EXCHANGE_RESPONDER);
        let (originator, responder) =
            if is_responders { (header.d_id, header.s_id) } else { (header.s_id, header.d_id) };
        let exchange = (originator, responder, header.ox_id);
        // An abort names an exchange that is there, and may be its only frame here.
        let begins = !is_responders && header.has(frame_control::FIRST_SEQUENCE) && header.kind != FrameType::BASIC;
        if begins && self.is_draining && !self.open.contains(&exchange) {
            return false;
        }
        if header.has(frame_control::LAST_SEQUENCE) && header.has(frame_control::END_SEQUENCE) {
            // A load's frame is an exchange of its own, and costs nothing here.
            if !begins || !self.open.is_empty() {
                self.open.remove(&exchange);
            }
        } else if begins && self.open.len() < EXCHANGES_MAX {
            self.open.insert(exchange);
        }
        true
    }

    /// Forgets the exchanges of a port that is gone.
    pub fn forget(&mut self, id: FcId) {
        self.open.retain(|(originator, responder, _)| *originator != id && *responder != id);
    }

    /// Forgets the exchanges between two ports, of which one logged out of the other.
    pub fn forget_pair(&mut self, a: FcId, b: FcId) {
        self.open.retain(|(originator, responder, _)| ![(a, b), (b, a)].contains(&(*originator, *responder)));
    }
}
