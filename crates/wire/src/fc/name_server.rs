//! Requests to the name server, and what it answers (FC-GS-2, clause 5).

use super::address::{FcId, Wwn};
use super::ct::CtHeader;
use crate::error::{require, WireError};
use bytes::{BufMut, Bytes, BytesMut};

/// Bit of an address object: it is the list's last.
const LAST: u8 = 0x80;
/// Bytes of the bitmap of FC-4 types.
const TYPE_MAP_BYTES: usize = 32;

/// FC-4 types of a port: one bit for each of 256 (FC-GS-2, 5.2.3.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TypeMap([u8; TYPE_MAP_BYTES]);

impl TypeMap {
    /// A map with one type.
    pub fn of(kind: u8) -> TypeMap {
        let mut map = TypeMap::default();
        let (byte, bit) = TypeMap::place(kind);
        map.0[byte] |= bit;
        map
    }

    /// True when the map has a type.
    pub fn has(&self, kind: u8) -> bool {
        let (byte, bit) = TypeMap::place(kind);
        self.0[byte] & bit != 0
    }

    /// The map of the bytes of an attribute.
    pub const fn from_bytes(bytes: [u8; TYPE_MAP_BYTES]) -> TypeMap {
        TypeMap(bytes)
    }

    /// The bytes.
    pub const fn to_bytes(self) -> [u8; TYPE_MAP_BYTES] {
        self.0
    }

    /// Words stand in order of types, 32 each; within a word the lowest type is the least significant bit.
    fn place(kind: u8) -> (usize, u8) {
        let word = usize::from(kind) / 32 * 4;
        (word + 3 - usize::from(kind) % 32 / 8, 1 << (kind % 8))
    }
}

/// Domain and area to which a query by type is limited; 0 = all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueryScope {
    /// Domain.
    pub domain: u8,
    /// Area.
    pub area: u8,
}

impl QueryScope {
    /// True when an address is in the scope.
    pub fn has(&self, id: FcId) -> bool {
        (self.domain == 0 || self.domain == id.domain()) && (self.area == 0 || self.area == id.area())
    }
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Query {
    /// GA_NXT: all objects of the port with the next higher address.
    AllNext(FcId),
    /// GPN_ID: name of the port with an address.
    PortNameOf(FcId),
    /// GNN_ID: name of the node of the port with an address.
    NodeNameOf(FcId),
    /// GFF_ID: FC-4 features of the port with an address.
    FeaturesOf(FcId),
    /// GID_PN: address of the port with a name.
    IdOfPort(Wwn),
    /// GID_FT: addresses of all ports of a type.
    IdsOfType {
        /// FC-4 type.
        kind: u8,
        /// Part of the fabric.
        scope: QueryScope,
    },
    /// GPN_FT: addresses and names of all ports of a type.
    PortsOfType {
        /// FC-4 type.
        kind: u8,
        /// Part of the fabric.
        scope: QueryScope,
    },
    /// GID_PT: addresses of all ports of a kind, such as 1 for N_Ports and 0x7f for all that log in.
    IdsOfPortType {
        /// Kind of port.
        port_type: u8,
        /// Part of the fabric.
        scope: QueryScope,
    },
    /// RPN_ID: registers a port's name.
    RegisterPortName(FcId, Wwn),
    /// RNN_ID: registers a node's name.
    RegisterNodeName(FcId, Wwn),
    /// RFT_ID: registers a port's FC-4 types.
    RegisterTypes(FcId, TypeMap),
    /// RFF_ID: registers the features of an FC-4 type.
    RegisterFeatures {
        /// The port.
        id: FcId,
        /// Bits: 1 target, 2 initiator.
        features: u8,
        /// FC-4 type.
        kind: u8,
    },
    /// RSPN_ID: registers a port's symbolic name.
    RegisterSymbolicPortName(FcId, Bytes),
    /// RSNN_NN: registers a node's symbolic name.
    RegisterSymbolicNodeName(Wwn, Bytes),
    /// Any other.
    Other(u16),
}

impl Query {
    const ALL_NEXT: u16 = 0x0100;
    const PORT_NAME_OF: u16 = 0x0112;
    const NODE_NAME_OF: u16 = 0x0113;
    const FEATURES_OF: u16 = 0x011f;
    const ID_OF_PORT: u16 = 0x0121;
    const IDS_OF_TYPE: u16 = 0x0171;
    const PORTS_OF_TYPE: u16 = 0x0172;
    const IDS_OF_PORT_TYPE: u16 = 0x01a1;
    const REGISTER_PORT_NAME: u16 = 0x0212;
    const REGISTER_NODE_NAME: u16 = 0x0213;
    const REGISTER_TYPES: u16 = 0x0217;
    const REGISTER_SYMBOLIC_PORT_NAME: u16 = 0x0218;
    const REGISTER_FEATURES: u16 = 0x021f;
    const REGISTER_SYMBOLIC_NODE_NAME: u16 = 0x0239;

    /// Reads the content of a request to the name server.
    ///
    /// # Errors
    /// Bytes of a known request are missing.
    pub fn parse(header: &CtHeader, content: &Bytes) -> Result<Query, WireError> {
        let need = |bytes: usize| require(content, bytes, "name server request");
        let id = || -> Result<FcId, WireError> {
            need(4)?;
            Ok(FcId::of(content[1], content[2], content[3]))
        };
        let name = |at: usize| -> Result<Wwn, WireError> {
            need(at + 8)?;
            let mut value = [0; 8];
            value.copy_from_slice(&content[at..at + 8]);
            Ok(Wwn(u64::from_be_bytes(value)))
        };
        let text = |at: usize| -> Result<Bytes, WireError> {
            need(at + 1)?;
            let length = usize::from(content[at]);
            need(at + 1 + length)?;
            Ok(content.slice(at + 1..at + 1 + length))
        };
        let scope = || -> Result<QueryScope, WireError> {
            need(4)?;
            Ok(QueryScope { domain: content[1], area: content[2] })
        };
        Ok(match header.code {
            Query::ALL_NEXT => Query::AllNext(id()?),
            Query::PORT_NAME_OF => Query::PortNameOf(id()?),
            Query::NODE_NAME_OF => Query::NodeNameOf(id()?),
            Query::FEATURES_OF => Query::FeaturesOf(id()?),
            Query::ID_OF_PORT => Query::IdOfPort(name(0)?),
            Query::IDS_OF_TYPE => Query::IdsOfType { scope: scope()?, kind: content[3] },
            Query::PORTS_OF_TYPE => Query::PortsOfType { scope: scope()?, kind: content[3] },
            Query::IDS_OF_PORT_TYPE => Query::IdsOfPortType { scope: scope()?, port_type: content[0] },
            Query::REGISTER_PORT_NAME => Query::RegisterPortName(id()?, name(4)?),
            Query::REGISTER_NODE_NAME => Query::RegisterNodeName(id()?, name(4)?),
            Query::REGISTER_TYPES => {
                need(4 + TYPE_MAP_BYTES)?;
                let mut map = TypeMap::default();
                map.0.copy_from_slice(&content[4..4 + TYPE_MAP_BYTES]);
                Query::RegisterTypes(id()?, map)
            }
            Query::REGISTER_FEATURES => {
                need(8)?;
                Query::RegisterFeatures { id: id()?, features: content[6], kind: content[7] }
            }
            Query::REGISTER_SYMBOLIC_PORT_NAME => Query::RegisterSymbolicPortName(id()?, text(4)?),
            Query::REGISTER_SYMBOLIC_NODE_NAME => Query::RegisterSymbolicNodeName(name(0)?, text(8)?),
            other => Query::Other(other),
        })
    }

    /// The request's bytes, header included.
    pub fn to_bytes(&self) -> Bytes {
        let mut content = BytesMut::with_capacity(40);
        let code = match self {
            Query::AllNext(id) => put_id(&mut content, *id, Query::ALL_NEXT),
            Query::PortNameOf(id) => put_id(&mut content, *id, Query::PORT_NAME_OF),
            Query::NodeNameOf(id) => put_id(&mut content, *id, Query::NODE_NAME_OF),
            Query::FeaturesOf(id) => put_id(&mut content, *id, Query::FEATURES_OF),
            Query::IdOfPort(name) => {
                content.put_u64(name.0);
                Query::ID_OF_PORT
            }
            Query::IdsOfType { kind, scope } => {
                content.put_slice(&[0, scope.domain, scope.area, *kind]);
                Query::IDS_OF_TYPE
            }
            Query::PortsOfType { kind, scope } => {
                content.put_slice(&[0, scope.domain, scope.area, *kind]);
                Query::PORTS_OF_TYPE
            }
            Query::IdsOfPortType { port_type, scope } => {
                content.put_slice(&[*port_type, scope.domain, scope.area, 0]);
                Query::IDS_OF_PORT_TYPE
            }
            Query::RegisterPortName(id, name) => {
                let code = put_id(&mut content, *id, Query::REGISTER_PORT_NAME);
                content.put_u64(name.0);
                code
            }
            Query::RegisterNodeName(id, name) => {
                let code = put_id(&mut content, *id, Query::REGISTER_NODE_NAME);
                content.put_u64(name.0);
                code
            }
            Query::RegisterTypes(id, map) => {
                let code = put_id(&mut content, *id, Query::REGISTER_TYPES);
                content.put_slice(&map.0);
                code
            }
            Query::RegisterFeatures { id, features, kind } => {
                let code = put_id(&mut content, *id, Query::REGISTER_FEATURES);
                content.put_slice(&[0, 0, *features, *kind]);
                code
            }
            Query::RegisterSymbolicPortName(id, name) => {
                let code = put_id(&mut content, *id, Query::REGISTER_SYMBOLIC_PORT_NAME);
                put_text(&mut content, name);
                code
            }
            Query::RegisterSymbolicNodeName(node, name) => {
                content.put_u64(node.0);
                put_text(&mut content, name);
                Query::REGISTER_SYMBOLIC_NODE_NAME
            }
            Query::Other(code) => *code,
        };
        CtHeader::name_server(code).with(&content)
    }
}

fn put_id(content: &mut BytesMut, id: FcId, code: u16) -> u16 {
    content.put_u32(id.value());
    code
}

/// A text with its length before it; what is beyond 255 bytes is cut off.
fn put_text(content: &mut BytesMut, text: &[u8]) {
    let text = &text[..text.len().min(255)];
    content.put_u8(text.len() as u8);
    content.put_slice(text);
}

/// The answer of GPN_FT: addresses and names, 16 bytes each; the last is marked.
pub fn list_of_ports(ports: &[(FcId, Wwn)]) -> Bytes {
    let mut content = BytesMut::with_capacity(16 * ports.len());
    for (place, (id, port)) in ports.iter().enumerate() {
        content.put_u8(if place + 1 == ports.len() { LAST } else { 0 });
        content.put_slice(&id.to_bytes());
        content.put_u32(0);
        content.put_u64(port.0);
    }
    content.freeze()
}

/// Reads the answer of GPN_FT.
///
/// # Errors
/// The list ends before its last object.
pub fn parse_list_of_ports(content: &[u8]) -> Result<Vec<(FcId, Wwn)>, WireError> {
    let mut ports = Vec::new();
    for object in content.chunks(16) {
        require(object, 16, "object of GPN_FT")?;
        let mut port = [0; 8];
        port.copy_from_slice(&object[8..16]);
        ports.push((FcId::of(object[1], object[2], object[3]), Wwn(u64::from_be_bytes(port))));
        if object[0] & LAST != 0 {
            return Ok(ports);
        }
    }
    Err(WireError::Truncated { part: "list of GPN_FT", needed: content.len() + 16, available: content.len() })
}

/// The answer of GID_FT and GID_PT: addresses, 4 bytes each; the last is marked.
pub fn list_of_ids(ids: &[FcId]) -> Bytes {
    let mut content = BytesMut::with_capacity(4 * ids.len());
    for (place, id) in ids.iter().enumerate() {
        content.put_u8(if place + 1 == ids.len() { LAST } else { 0 });
        content.put_slice(&id.to_bytes());
    }
    content.freeze()
}

/// Reads the answer of GID_FT and GID_PT.
///
/// # Errors
/// The list ends before its last object.
pub fn parse_list_of_ids(content: &[u8]) -> Result<Vec<FcId>, WireError> {
    let mut ids = Vec::new();
    for object in content.chunks(4) {
        require(object, 4, "object of GID_FT")?;
        ids.push(FcId::of(object[1], object[2], object[3]));
        if object[0] & LAST != 0 {
            return Ok(ids);
        }
    }
    Err(WireError::Truncated { part: "list of GID_FT", needed: content.len() + 4, available: content.len() })
}
