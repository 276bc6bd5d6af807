//! N_Ports as a name server of IP storage knows them.

use std::collections::BTreeMap;
use wire::fc::name_server::TypeMap;
use wire::fc::{FcId, Wwn};
use wire::isns::{Attribute, IpAddress, Tag};

/// An N_Port behind this gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalPort {
    /// Name of the port.
    pub name: Wwn,
    /// Its address in this gateway's fabric.
    pub id: FcId,
    /// Name of its node.
    pub node: Wwn,
    /// Name of the F_Port to which it is attached.
    pub fabric_port: Wwn,
    /// FC-4 types.
    pub types: TypeMap,
    /// Bits of [`wire::isns::port_role`].
    pub role: u32,
    /// Symbolic name; empty = none.
    pub symbolic: String,
}

/// An N_Port behind another gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemotePort {
    /// Name of the port.
    pub name: Wwn,
    /// Its address in its own gateway's fabric.
    pub id: Option<FcId>,
    /// Name of its node.
    pub node: Option<Wwn>,
    /// FC-4 types.
    pub types: TypeMap,
    /// Bits of [`wire::isns::port_role`].
    pub role: u32,
    /// Symbolic name; empty = none.
    pub symbolic: String,
    /// Name of its gateway.
    pub entity: String,
    /// Address and TCP port of its gateway.
    pub portal: Option<(IpAddress, u16)>,
}

impl LocalPort {
    /// Attributes of a registration: the port and, where it is wanted, the name of its node.
    pub(super) fn attributes(&self, with_node: bool) -> Vec<Attribute> {
        let mut attributes = vec![
            Attribute::wwn(Tag::PORT_NAME, self.name),
            Attribute::fc_id(Tag::PORT_ID, self.id),
            Attribute::word(Tag::PORT_TYPE, Tag::N_PORT),
        ];
        if !self.symbolic.is_empty() {
            attributes.push(Attribute::text(Tag::PORT_SYMBOLIC_NAME, &self.symbolic));
        }
        attributes.extend([
            Attribute::wwn(Tag::FABRIC_PORT_NAME, self.fabric_port),
            Attribute::word(Tag::CLASS_OF_SERVICE, Tag::CLASS_3),
            Attribute::bytes(Tag::FC4_TYPES, &self.types.to_bytes()),
            Attribute::word(Tag::PORT_ROLE, self.role),
        ]);
        if with_node {
            attributes.push(Attribute::wwn(Tag::NODE_NAME, self.node));
        }
        attributes
    }
}

/// Attributes that a query for ports asks for: the gateway's, the port's, its node's.
pub(super) const WANTED_OF_PORTS: [Tag; 10] = [
    Tag::ENTITY,
    Tag::PORTAL_ADDRESS,
    Tag::PORTAL_PORT,
    Tag::PORT_NAME,
    Tag::PORT_ID,
    Tag::PORT_TYPE,
    Tag::PORT_SYMBOLIC_NAME,
    Tag::FC4_TYPES,
    Tag::PORT_ROLE,
    Tag::NODE_NAME,
];

/// Attributes that a query for portals asks for.
pub(super) const WANTED_OF_PORTALS: [Tag; 3] = [Tag::ENTITY, Tag::PORTAL_ADDRESS, Tag::PORTAL_PORT];

/// Reads the ports of a response. What a gateway has stands before its ports, as the queries ask for it.
pub(super) fn parse_ports(operating: &[Attribute]) -> Vec<RemotePort> {
    let mut ports: Vec<RemotePort> = Vec::new();
    let (mut entity, mut address, mut portal) = (String::new(), None, None);
    // Attributes behind a port are its own until the next gateway or port begins.
    let mut of_port = false;
    for attribute in operating {
        match attribute.tag {
            Tag::ENTITY => {
                entity = attribute.as_text().unwrap_or_default().to_string();
                (address, portal, of_port) = (None, None, false);
            }
            Tag::PORTAL_ADDRESS => address = attribute.as_address(),
            Tag::PORTAL_PORT => portal = portal.or(address.zip(attribute.as_word().map(|port| port as u16))),
            Tag::PORT_NAME => {
                of_port = attribute.as_wwn().is_some();
                ports.extend(attribute.as_wwn().map(|name| RemotePort::new(name, &entity, portal)));
            }
            _ => {
                if let Some(port) = ports.last_mut().filter(|_| of_port) {
                    port.note(attribute);
                }
            }
        }
    }
    ports
}

/// Reads the portals of a response: the first of each gateway.
pub(super) fn parse_portals(operating: &[Attribute]) -> BTreeMap<String, (IpAddress, u16)> {
    let mut portals = BTreeMap::new();
    let (mut entity, mut address) = (String::new(), None);
    for attribute in operating {
        match attribute.tag {
            Tag::ENTITY => (entity, address) = (attribute.as_text().unwrap_or_default().to_string(), None),
            Tag::PORTAL_ADDRESS => address = attribute.as_address(),
            Tag::PORTAL_PORT => {
                if let Some((address, port)) = address.zip(attribute.as_word()) {
                    portals.entry(entity.clone()).or_insert((address, port as u16));
                }
            }
            _ => {}
        }
    }
    portals
}

impl RemotePort {
    fn new(name: Wwn, entity: &str, portal: Option<(IpAddress, u16)>) -> RemotePort {
        RemotePort {
            name,
            id: None,
            node: None,
            types: TypeMap::default(),
            role: 0,
            symbolic: String::new(),
            entity: entity.to_string(),
            portal,
        }
    }

    fn note(&mut self, attribute: &Attribute) {
        match attribute.tag {
            Tag::PORT_ID => self.id = attribute.as_fc_id(),
            Tag::NODE_NAME => self.node = attribute.as_wwn(),
            Tag::PORT_ROLE => self.role = attribute.as_word().unwrap_or_default(),
            Tag::PORT_SYMBOLIC_NAME => self.symbolic = attribute.as_text().unwrap_or_default().to_string(),
            Tag::FC4_TYPES => {
                self.types = <[u8; 32]>::try_from(&attribute.value[..]).map(TypeMap::from_bytes).unwrap_or_default();
            }
            _ => {}
        }
    }
}
