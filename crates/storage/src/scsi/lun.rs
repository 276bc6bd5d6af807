//! A logical unit: its state, and the unit attentions of its initiators.

use super::command::{Reply, Step};
use super::nexus::Nexus;
use super::reserve::Reservations;
use super::sense::{status, Sense};
use super::settings::{LunConfig, Modes};
use std::collections::{BTreeMap, VecDeque};
use wire::iscsi::Payload;

/// Unit attentions that wait for one initiator; beyond that the oldest go.
const MAX_ATTENTIONS: usize = 8;

/// State per initiator port.
#[derive(Clone, Debug, Default)]
pub(super) struct NexusState {
    pub attentions: VecDeque<(u8, u8)>,
    pub prevents_removal: bool,
}

/// A logical unit.
#[derive(Clone, Debug)]
pub struct Lun {
    pub(super) config: LunConfig,
    pub(super) modes: Modes,
    pub(super) reservations: Reservations,
    pub(super) standing: BTreeMap<Nexus, NexusState>,
    pub(super) started: bool,
}

impl Lun {
    /// A unit that is started, unreserved, with its default modes.
    pub fn new(config: LunConfig) -> Lun {
        let modes = Modes { write_cache: config.write_cache, ..Modes::default() };
        let (reservations, standing) = Default::default();
        Lun { config, modes, reservations, standing, started: true }
    }

    /// Configuration.
    pub fn config(&self) -> &LunConfig {
        &self.config
    }

    /// An initiator has come.
    pub fn attach(&mut self, nexus: &Nexus) {
        self.standing.entry(nexus.clone()).or_default();
    }

    /// An initiator has gone: what does not survive its session goes with it (SPC-4, 5.12; SAM-5, 6.3.4).
    pub fn detach(&mut self, nexus: &Nexus) {
        self.standing.remove(nexus);
        self.reservations.forget_nexus(nexus);
    }

    /// A reset: RESERVE's reservation and prevented removals go, and every initiator gets a unit attention, the
    /// one that asked for it too (SAM-5, 6.3.3: BUS DEVICE RESET FUNCTION OCCURRED).
    pub fn reset(&mut self) {
        self.reservations.forget_simple();
        self.modes = Modes { write_cache: self.config.write_cache, ..Modes::default() };
        self.started = true;
        for standing in self.standing.values_mut() {
            standing.prevents_removal = false;
            standing.attentions.clear();
        }
        self.raise_attention(None, (0x29, 0x03));
    }

    /// A unit attention for everyone but `but`.
    pub(super) fn raise_attention(&mut self, but: Option<&Nexus>, code: (u8, u8)) {
        for (nexus, standing) in &mut self.standing {
            if Some(nexus) != but {
                push(&mut standing.attentions, code);
            }
        }
    }

    /// A unit attention for one.
    pub(super) fn raise_attention_for(&mut self, nexus: &Nexus, code: (u8, u8)) {
        if let Some(standing) = self.standing.get_mut(nexus) {
            push(&mut standing.attentions, code);
        }
    }

    pub(super) fn write_protection(&self) -> Option<Sense> {
        match (self.config.read_only, self.modes.software_protected) {
            (true, _) => Some(Sense::WRITE_PROTECTED),
            (_, true) => Some(Sense::SOFTWARE_PROTECTED),
            _ => None,
        }
    }

    pub(super) fn check(&self, sense: Sense) -> Reply {
        let sense = sense.bytes(self.modes.descriptor_sense);
        Reply { status: status::CHECK_CONDITION, sense, data: Payload::default() }
    }

    /// A CHECK CONDITION in the format that the initiator chose.
    pub fn refuse(&self, sense: Sense) -> Reply {
        self.check(sense)
    }

    pub(super) fn plain(status: u8) -> Reply {
        Reply { status, sense: Vec::new(), data: Payload::default() }
    }

    /// Done without the medium.
    pub(super) fn good() -> Step {
        Step::Done(Lun::plain(status::GOOD))
    }
}

fn push(attentions: &mut VecDeque<(u8, u8)>, code: (u8, u8)) {
    if attentions.contains(&code) {
        return;
    }
    if attentions.len() == MAX_ATTENTIONS {
        attentions.pop_front();
    }
    attentions.push_back(code);
}
