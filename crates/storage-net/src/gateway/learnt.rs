//! Gateways that a name server (iSNS) lists, as peers with their ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use storage::fc::fabric::{Entry, Location};
use storage::fc::ifcp::RemotePort;
use storage::fc::isns;
use wire::fc::FrameType;
use wire::ifcp::AddressMode;
use wire::isns::{port_role, IpAddress};

/// Gateways that a server may list: each costs attempts to connect.
const GATEWAYS_MAX: usize = 256;

/// A gateway that the server lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LearntGateway {
    /// Its name at the server, without control characters.
    pub name: String,
    /// Address on which it listens.
    pub address: SocketAddr,
    /// The ports behind it.
    pub ports: Vec<RemotePort>,
}

/// Sorts ports by their gateways. Returns the gateways by name, and a line for each port or gateway that cannot be
/// used, with the reason.
pub(super) fn gateways_of<'a>(
    ports: impl Iterator<Item = &'a isns::RemotePort>,
    mode: AddressMode,
) -> (Vec<LearntGateway>, BTreeSet<String>) {
    let mut gateways: BTreeMap<String, LearntGateway> = BTreeMap::new();
    let mut refused = BTreeSet::new();
    for port in ports {
        let name = printable(&port.entity);
        if name.is_empty() {
            refused.insert(format!("port {}: refused: it has no gateway", port.name));
            continue;
        }
        let Some((address, tcp_port)) = port.portal.filter(|(_, tcp_port)| *tcp_port != 0) else {
            refused.insert(format!("{name}: refused: it has no portal"));
            continue;
        };
        if mode == AddressMode::Transparent && port.id.is_none() {
            refused.insert(format!("{name}: port {} refused: mode transparent needs its address", port.name));
            continue;
        }
        if gateways.len() >= GATEWAYS_MAX && !gateways.contains_key(&name) {
            refused.insert(format!("{name}: refused: more than {GATEWAYS_MAX} gateways"));
            continue;
        }
        let address = SocketAddr::new(ip_of(address), tcp_port);
        let gateway = gateways.entry(name.clone()).or_insert(LearntGateway { name, address, ports: Vec::new() });
        gateway.ports.push(remote_port(port));
    }
    (gateways.into_values().collect(), refused)
}

/// The address in the standard library's form.
pub(super) fn ip_of(address: IpAddress) -> IpAddr {
    match address.v4() {
        Some(bytes) => IpAddr::from(bytes),
        None => IpAddr::from(Ipv6Addr::from(address.0)),
    }
}

/// The address in iSNS' form.
pub(super) fn isns_address(address: IpAddr) -> IpAddress {
    match address {
        IpAddr::V4(address) => IpAddress::of_v4(address.octets()),
        IpAddr::V6(address) => IpAddress(address.octets()),
    }
}

/// A port as the fabric presents it. The name of a node that the server does not tell is that of the port.
fn remote_port(port: &isns::RemotePort) -> RemotePort {
    let mut entry = Entry::new(Location::Remote, port.name, port.node.unwrap_or(port.name));
    entry.types = port.types;
    let roles = (port.role & (port_role::TARGET | port_role::INITIATOR)) as u8;
    if roles != 0 {
        entry.features.insert(FrameType::FCP.0, roles);
    }
    entry.symbolic_port = port.symbolic.clone().into();
    RemotePort { id: port.id, entry }
}

/// A text of the server without characters that would begin a new line of the log.
fn printable(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { '?' } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::fc::name_server::TypeMap;
    use wire::fc::{FcId, Wwn};

    fn port(name: u64, entity: &str, portal: Option<([u8; 4], u16)>) -> isns::RemotePort {
        isns::RemotePort {
            name: Wwn(name),
            id: Some(FcId::of(2, 1, name as u8)),
            node: None,
            types: TypeMap::of(FrameType::FCP.0),
            role: port_role::TARGET | port_role::CONTROL,
            symbolic: String::new(),
            entity: entity.to_owned(),
            portal: portal.map(|(address, port)| (IpAddress::of_v4(address), port)),
        }
    }

    #[test]
    fn ports_are_sorted_by_their_gateways() {
        let at = |last| Some(([10, 0, 0, last], 3420));
        let ports = [port(1, "b", at(2)), port(2, "a", at(1)), port(3, "b", at(2))];
        let (gateways, refused) = gateways_of(ports.iter(), AddressMode::Transparent);
        let summary: Vec<(&str, String, usize)> =
            gateways.iter().map(|one| (one.name.as_str(), one.address.to_string(), one.ports.len())).collect();
        assert_eq!(summary, [("a", "10.0.0.1:3420".to_owned(), 1), ("b", "10.0.0.2:3420".to_owned(), 2)]);
        assert!(refused.is_empty());
        let entry = &gateways[0].ports[0].entry;
        assert_eq!((entry.port, entry.node), (Wwn(2), Wwn(2)));
        // The role of a control node is none of SCSI.
        assert_eq!(entry.features[&FrameType::FCP.0], 1);
    }

    #[test]
    fn what_cannot_be_used_is_named_in_one_line() {
        let at = Some(([10, 0, 0, 1], 3420));
        let without_id = isns::RemotePort { id: None, ..port(3, "c", at) };
        let ports = [port(1, "", at), port(2, "b\nc", None), port(4, "b\nc", Some(([10, 0, 0, 1], 0))), without_id];
        let (gateways, refused) = gateways_of(ports.iter(), AddressMode::Transparent);
        assert!(gateways.is_empty());
        let expected = [
            "b?c: refused: it has no portal".to_owned(),
            format!("c: port {} refused: mode transparent needs its address", Wwn(3)),
            format!("port {}: refused: it has no gateway", Wwn(1)),
        ];
        assert_eq!(refused.into_iter().collect::<Vec<_>>(), expected);
        assert_eq!(gateways_of(ports.iter(), AddressMode::Translation).0.len(), 1);
    }

    #[test]
    fn gateways_are_bounded() {
        let portal = Some(([10, 0, 0, 1], 3420));
        let ports: Vec<isns::RemotePort> =
            (0..GATEWAYS_MAX as u64 + 2).map(|number| port(number, &format!("gateway {number}"), portal)).collect();
        let (gateways, refused) = gateways_of(ports.iter(), AddressMode::Transparent);
        assert_eq!((gateways.len(), refused.len()), (GATEWAYS_MAX, 2));
    }

    #[test]
    fn addresses_keep_their_family() {
        for text in ["10.0.0.1", "2001:db8::1"] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(ip_of(isns_address(address)), address);
        }
    }
}
