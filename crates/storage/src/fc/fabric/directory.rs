//! The name server's database.

use super::output::PortKey;
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::BTreeMap;
use wire::fc::ct::CtHeader;
use wire::fc::name_server::{list_of_ids, list_of_ports, Query, TypeMap};
use wire::fc::{FcId, Wwn};

/// Kinds of port that GID_PT asks for: N_Ports, and all that log in.
const N_PORT: u8 = 0x01;
const ANY_PORT: u8 = 0x7f;
/// FC-4 types whose features fit into the object of GFF_ID, four bits each.
const FEATURE_BYTES: usize = 128;

/// Place of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// At a link of this fabric.
    Attached(PortKey),
    /// Behind a gateway.
    Remote,
}

/// A port, as the name server knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its place.
    pub location: Location,
    /// Name of the port.
    pub port: Wwn,
    /// Name of the node.
    pub node: Wwn,
    /// FC-4 types.
    pub types: TypeMap,
    /// Features by FC-4 type.
    pub features: BTreeMap<u8, u8>,
    /// Symbolic name of the port.
    pub symbolic_port: Bytes,
    /// Symbolic name of the node.
    pub symbolic_node: Bytes,
}

impl Entry {
    /// An entry with names alone.
    pub fn new(location: Location, port: Wwn, node: Wwn) -> Entry {
        Entry {
            location,
            port,
            node,
            types: TypeMap::default(),
            features: BTreeMap::new(),
            symbolic_port: Bytes::new(),
            symbolic_node: Bytes::new(),
        }
    }

    /// The object of GFF_ID: four bits for each type, eight types a word, the lowest in the least significant bits.
    fn features_object(&self) -> Bytes {
        let mut object = BytesMut::zeroed(FEATURE_BYTES);
        for (kind, features) in &self.features {
            let word = usize::from(*kind) / 8 * 4;
            let place = usize::from(*kind) % 8;
            let Some(byte) = object.get_mut(word + 3 - place / 2) else { continue };
            *byte |= (features & 0x0f) << (place % 2 * 4);
        }
        object.freeze()
    }
}

/// Entries by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    entries: BTreeMap<FcId, Entry>,
}

/// An answer to a query, and whether it changed what others want to hear of.
pub(super) struct Answer {
    /// Response with its header.
    pub payload: Bytes,
    /// Address of the entry that changed.
    pub changed: Option<FcId>,
}

impl Directory {
    pub fn insert(&mut self, id: FcId, entry: Entry) {
        self.entries.insert(id, entry);
    }

    pub fn remove(&mut self, id: FcId) -> Option<Entry> {
        self.entries.remove(&id)
    }

    pub fn get(&self, id: FcId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (FcId, &Entry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    /// Answers a request of the port `from`. A port registers itself alone.
    pub fn answer(&mut self, from: FcId, header: &CtHeader, query: &Query) -> Answer {
        let registered = match query {
            Query::RegisterPortName(id, _)
            | Query::RegisterNodeName(id, _)
            | Query::RegisterTypes(id, _)
            | Query::RegisterFeatures { id, .. }
            | Query::RegisterSymbolicPortName(id, _) => Some(*id),
            Query::RegisterSymbolicNodeName(..) => Some(from),
            _ => None,
        };
        let Some(id) = registered else { return Answer { payload: self.find(header, query), changed: None } };
        let Some(entry) = self.entries.get_mut(&id).filter(|_| id == from) else {
            return Answer { payload: header.reject(CtHeader::UNABLE, CtHeader::ID_NOT_REGISTERED), changed: None };
        };
        let before = entry.clone();
        match query {
            // The name is that of the login (FC-LS): another is refused.
            Query::RegisterPortName(_, name) if *name != entry.port => {
                let payload = header.reject(CtHeader::UNABLE, CtHeader::PORT_NAME_NOT_REGISTERED);
                return Answer { payload, changed: None };
            }
            Query::RegisterNodeName(_, name) => entry.node = *name,
            Query::RegisterTypes(_, types) => entry.types = *types,
            Query::RegisterFeatures { features, kind, .. } => {
                entry.features.insert(*kind, *features);
            }
            Query::RegisterSymbolicPortName(_, name) => entry.symbolic_port = name.clone(),
            Query::RegisterSymbolicNodeName(node, name) if *node == entry.node => entry.symbolic_node = name.clone(),
            _ => {}
        }
        let changed = (before != *entry).then_some(id);
        Answer { payload: header.accept(&[]), changed }
    }

    fn find(&self, header: &CtHeader, query: &Query) -> Bytes {
        let unknown = |explanation| header.reject(CtHeader::UNABLE, explanation);
        let named = |name: Wwn| {
            let mut content = BytesMut::new();
            content.put_u64(name.0);
            header.accept(&content)
        };
        let entry = |id: &FcId| self.entries.get(id);
        let ids = |matches: &dyn Fn(FcId, &Entry) -> bool| {
            let found: Vec<FcId> = self.iter().filter(|(id, entry)| matches(*id, entry)).map(|(id, _)| id).collect();
            if found.is_empty() {
                return unknown(CtHeader::TYPE_NOT_REGISTERED);
            }
            header.accept_list(found.len(), 4, |taken| list_of_ids(&found[..taken]))
        };
        match query {
            Query::PortNameOf(id) => {
                entry(id).map_or_else(|| unknown(CtHeader::ID_NOT_REGISTERED), |entry| named(entry.port))
            }
            Query::NodeNameOf(id) => {
                entry(id).map_or_else(|| unknown(CtHeader::ID_NOT_REGISTERED), |entry| named(entry.node))
            }
            Query::FeaturesOf(id) => entry(id)
                .map_or_else(|| unknown(CtHeader::ID_NOT_REGISTERED), |entry| header.accept(&entry.features_object())),
            Query::IdOfPort(name) => match self.iter().find(|(_, entry)| entry.port == *name) {
                Some((id, _)) => header.accept(&id.value().to_be_bytes()),
                None => unknown(CtHeader::PORT_NAME_NOT_REGISTERED),
            },
            Query::IdsOfType { kind, scope } => ids(&|id, entry| entry.types.has(*kind) && scope.has(id)),
            Query::IdsOfPortType { port_type: N_PORT | ANY_PORT, scope } => ids(&|id, _| scope.has(id)),
            Query::PortsOfType { kind, scope } => {
                let found: Vec<(FcId, Wwn)> = self
                    .iter()
                    .filter(|(id, entry)| entry.types.has(*kind) && scope.has(*id))
                    .map(|(id, entry)| (id, entry.port))
                    .collect();
                if found.is_empty() {
                    return unknown(CtHeader::TYPE_NOT_REGISTERED);
                }
                header.accept_list(found.len(), 16, |taken| list_of_ports(&found[..taken]))
            }
            _ => header.reject(CtHeader::NOT_SUPPORTED, CtHeader::NO_EXPLANATION),
        }
    }
}
