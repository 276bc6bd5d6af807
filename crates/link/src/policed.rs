//! A link behind a policer.

use crate::admission::Admission;
use crate::config::PolicerConfig;
use crate::counters::DropReason;
use crate::packet::Packet;
use crate::policer::Policer;
use crate::variable::VariableLink;

/// A link whose packets pass a policer, if there is one, before they come to the queue. A packet that the policer drops
/// has no part in queue and line: neither limits nor numbers of losses count it.
pub struct PolicedLink<P> {
    policer: Option<Policer>,
    link: VariableLink<P>,
}

impl<P: Packet> PolicedLink<P> {
    pub(crate) fn new(policer: Option<&PolicerConfig>, link: VariableLink<P>) -> PolicedLink<P> {
        PolicedLink { policer: policer.map(Policer::new), link }
    }

    /// Packets that come from now on pass `policer`, whose bucket is full; None: no policer.
    pub(crate) fn set_policer(&mut self, policer: Option<&PolicerConfig>) {
        self.policer = policer.map(Policer::new);
    }

    pub(crate) fn link(&self) -> &VariableLink<P> {
        &self.link
    }

    pub(crate) fn link_mut(&mut self) -> &mut VariableLink<P> {
        &mut self.link
    }

    // Beside the links that most runs have: a call, so that it costs those nothing.
    #[inline(never)]
    pub(crate) fn handle_packet(&mut self, now: u64, packet: P) -> Admission<P> {
        if self.policer.as_mut().is_none_or(|policer| policer.admits(now, packet.bytes())) {
            return self.link.handle_packet(now, packet);
        }
        self.link.counters_mut().stats.count_drop(DropReason::Policer);
        Admission::Dropped(packet, DropReason::Policer)
    }
}
