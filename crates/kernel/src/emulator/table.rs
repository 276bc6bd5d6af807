//! Routes of packets: by flow if a port identifies the flow, else by pair of hosts.

use super::direction::Direction;
use crate::plan::{FlowPlan, HostPlan};
use experiment::{check_route, RunError};
use sim::{RouteId, Routes};
use spec::RunSpec;
use std::collections::BTreeMap;

/// IP protocol number of TCP.
const TCP: u8 = 6;

/// Beginning of 198.18.0.0/15, the network of hosts and routers (elephan/path/testbed.py): nothing of it lies behind an
/// end.
const OWN_NETWORK: [u8; 2] = [198, 18];

/// Beginning of 2001:2::/48, the same of IPv6.
const OWN_IPV6_NETWORK: [u8; 6] = [0x20, 0x01, 0, 2, 0, 0];

/// Source number of packets that flow `flow` sends in `direction`, as in the simulator: so they draw the same losses.
pub(super) fn source_of(flow: usize, direction: Direction) -> u32 {
    2 * flow as u32 + u32::from(direction == Direction::Reverse)
}

/// A route's entry into the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// First hop of the route.
    pub hop: u32,
    /// Number of the sender: [`source_of`]; None for a sender that the scenario does not know.
    pub source: Option<u32>,
}

/// All entries into the network.
#[derive(Default)]
pub(super) struct Table {
    /// Host by address.
    hosts: BTreeMap<[u8; 4], u32>,
    ipv6_hosts: BTreeMap<[u8; 16], u32>,
    /// By host that sends, host that receives, ports of TCP that are the flow's: destination port of data, source port
    /// back.
    data: BTreeMap<(u32, u16), Entry>,
    acks: BTreeMap<(u32, u16), Entry>,
    /// By pair of hosts.
    pairs: BTreeMap<(u32, u32), Entry>,
}

/// Returns the sending and the receiving host. Hosts of a program are its own, so that every packet between them is the
/// flow's.
fn pair_of(planned: &FlowPlan, direction: Direction) -> (u32, u32) {
    let (source, destination) = (planned.source as u32, planned.destination as u32);
    match direction {
        Direction::Forward => (source, destination),
        Direction::Reverse => (destination, source),
    }
}

fn wrong(text: String) -> RunError {
    RunError::Spec(text)
}

impl Table {
    /// The ways of `plan` over the links of `spec`; routes are added to `routes` and end at hosts by their index in the
    /// plan.
    ///
    /// # Errors
    /// The part of the plan that does not fit the spec.
    pub fn new(spec: &RunSpec, plan: &HostPlan, routes: &mut Routes) -> Result<Table, RunError> {
        let mut table = Table::default();
        let count = plan.hosts.len();
        for (index, host) in plan.hosts.iter().enumerate() {
            if host.node >= spec.nodes.len() {
                let address = host.address;
                return Err(wrong(format!(
                    "host {address}: node {} does not exist, there are {}",
                    host.node,
                    spec.nodes.len()
                )));
            }
            if table.hosts.insert(host.address.octets(), index as u32).is_some() {
                return Err(wrong(format!("host {index}: another host has the address {}", host.address)));
            }
            if let Some(address) = host.ipv6_address {
                if table.ipv6_hosts.insert(address.octets(), index as u32).is_some() {
                    return Err(wrong(format!("host {index}: another host has the address {address}")));
                }
            }
        }
        let known = |what: &str, host: usize| {
            if host < count {
                return Ok(());
            }
            Err(wrong(format!("{what}: host {host} does not exist, there are {count}")))
        };
        for route in &plan.routes {
            let what = format!("route from host {} to host {}", route.from, route.to);
            known(&what, route.from)?;
            known(&what, route.to)?;
            let (from, to) = (plan.hosts[route.from].node, plan.hosts[route.to].node);
            check_route(&what, "links", &route.links, from, to, &spec.links)?;
            let hop = routes.add(&route.links, route.to as u32).0;
            table.pairs.insert((route.from as u32, route.to as u32), Entry { hop, source: None });
        }
        if !plan.flows.is_empty() && plan.flows.len() != spec.flows.len() {
            let (planned, asked) = (plan.flows.len(), spec.flows.len());
            return Err(wrong(format!("the plan has {planned} flows, the spec {asked}")));
        }
        for (index, (planned, flow)) in plan.flows.iter().zip(&spec.flows).enumerate() {
            let what = format!("flow {}", flow.name);
            known(&what, planned.source)?;
            known(&what, planned.destination)?;
            let ends = (plan.hosts[planned.source].node, plan.hosts[planned.destination].node);
            if ends != (flow.source, flow.destination) {
                return Err(wrong(format!("{what}: its hosts do not stand at its nodes")));
            }
            let hosts = [planned.source, planned.destination].map(|host| &plan.hosts[host]);
            if planned.ipv6 && hosts.iter().any(|host| host.ipv6_address.is_none()) {
                return Err(wrong(format!("{what}: its hosts have no IPv6 addresses")));
            }
            for (direction, links) in [(Direction::Forward, &flow.route), (Direction::Reverse, &flow.return_route)] {
                let host = check_route_of(spec, plan, index, direction, links)?;
                let entry = Entry { hop: routes.add(links, host).0, source: Some(source_of(index, direction)) };
                if planned.program.is_some() {
                    table.pairs.insert(pair_of(planned, direction), entry);
                } else if table
                    .of_direction(direction)
                    .insert((planned.destination as u32, planned.port), entry)
                    .is_some()
                {
                    return Err(wrong(format!("{what}: another flow has port {} of its host", planned.port)));
                }
            }
        }
        Ok(table)
    }

    fn of_direction(&mut self, direction: Direction) -> &mut BTreeMap<(u32, u16), Entry> {
        match direction {
            Direction::Forward => &mut self.data,
            Direction::Reverse => &mut self.acks,
        }
    }

    /// First hop of the route between two hosts that belongs to no flow.
    pub fn pair_hop(&self, from: usize, to: usize) -> Option<u32> {
        self.pairs.get(&(from as u32, to as u32)).map(|entry| entry.hop)
    }

    /// By flow of the spec: the routes of its data and its ACKs. Where the plan runs no flows, those between the ends
    /// of the first flow, which are what any program's packets follow; None for the others.
    pub fn flow_routes(&self, spec: &RunSpec, plan: &HostPlan) -> Vec<Option<[RouteId; 2]>> {
        let of_flow = |index: usize| {
            if let Some(planned) = plan.flows.get(index) {
                if planned.program.is_some() {
                    let pair = |direction| self.pairs.get(&pair_of(planned, direction));
                    return Some([pair(Direction::Forward)?, pair(Direction::Reverse)?]);
                }
                let port = (planned.destination as u32, planned.port);
                return Some([self.data.get(&port)?, self.acks.get(&port)?]);
            }
            let flow = spec.flows.first().filter(|_| index == 0)?;
            let at = |node: usize| plan.hosts.iter().position(|host| host.node == node).map(|host| host as u32);
            let (source, destination) = (at(flow.source)?, at(flow.destination)?);
            Some([self.pairs.get(&(source, destination))?, self.pairs.get(&(destination, source))?])
        };
        (0..spec.flows.len()).map(|index| of_flow(index).map(|sides| sides.map(|entry| RouteId(entry.hop)))).collect()
    }

    /// Returns the route entry of a packet from host `from`; None if it has no route. Cost: logarithmic in flows and
    /// hosts.
    pub fn entry(&self, from: u32, packet: &[u8]) -> Option<Entry> {
        let (to, is_own, header, has_ports) = match packet.first()? >> 4 {
            4 if packet.len() >= 20 => {
                let is_own = packet[16] == OWN_NETWORK[0] && packet[17] & 0xfe == OWN_NETWORK[1];
                // A fragment after the first has no ports.
                let later = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff != 0;
                let header = usize::from(packet[0] & 15) * 4;
                (self.hosts.get(&packet[16..20]), is_own, header, packet[9] == TCP && !later)
            }
            // Behind extension headers, those of fragments among them, no ports are looked for.
            6 if packet.len() >= 40 => {
                let is_own = packet[24..].starts_with(&OWN_IPV6_NETWORK);
                (self.ipv6_hosts.get(&packet[24..40]), is_own, 40, packet[6] == TCP)
            }
            _ => return None,
        };
        let Some(&to) = to else {
            return if is_own { None } else { self.across(from) };
        };
        if has_ports && packet.len() >= header + 4 {
            let port = |at: usize| u16::from_be_bytes([packet[header + at], packet[header + at + 1]]);
            let found = self.data.get(&(to, port(2))).or_else(|| self.acks.get(&(from, port(0))));
            if found.is_some() {
                return found.copied();
            }
        }
        self.pairs.get(&(from, to)).copied()
    }

    /// Entry of a packet to an address behind the other end, of two: the kernel at host `from` has a route that leads
    /// there over the device, as over a line.
    fn across(&self, from: u32) -> Option<Entry> {
        let to = (self.hosts.len() == 2).then_some(1 - from)?;
        self.pairs.get(&(from, to)).copied()
    }
}

/// Checks that `links` is a way for flow `flow` and returns the host at its end.
///
/// # Errors
/// There is no such flow or the links do not lead from its one end to the other.
pub(super) fn check_route_of(
    spec: &RunSpec,
    plan: &HostPlan,
    flow: usize,
    direction: Direction,
    links: &[usize],
) -> Result<u32, RunError> {
    let (Some(planned), Some(asked)) = (plan.flows.get(flow), spec.flows.get(flow)) else {
        return Err(wrong(format!("flow {flow} does not exist, there are {}", plan.flows.len())));
    };
    let what = format!("flow {}", asked.name);
    let (key, from, to, host) = match direction {
        Direction::Forward => ("route", asked.source, asked.destination, planned.destination),
        Direction::Reverse => ("return_route", asked.destination, asked.source, planned.source),
    };
    check_route(&what, key, links, from, to, &spec.links)?;
    Ok(host as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{EmulatorPlan, HostSpec, RoutePlan};
    use crate::testing::Line;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn table(hosts: u8) -> Table {
        let host = |number: u8| HostSpec {
            namespace: String::new(),
            device: String::new(),
            address: Ipv4Addr::new(198, 18, 0, 1 + number),
            ipv6_address: Some(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1 + u16::from(number))),
            node: usize::from(number.min(1)),
            mtu_bytes: 1500,
        };
        let route = |from, to, link| RoutePlan { from, to, links: vec![link] };
        let plan = HostPlan {
            hosts: (0..hosts).map(host).collect(),
            flows: vec![],
            routes: vec![route(0, 1, 0), route(1, 0, 1)],
            routers: vec![],
            emulator: EmulatorPlan::default(),
        };
        Table::new(&Line::new(1_000_000, 0, 1).spec(), &plan, &mut Routes::default()).expect("a right plan")
    }

    fn to(address: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1];
        packet.extend(address);
        packet
    }

    #[test]
    fn of_two_hosts_each_leads_to_what_lies_behind_the_other() {
        let table = table(2);
        let (there, back) = (table.pair_hop(0, 1), table.pair_hop(1, 0));
        let hop = |from, packet: &[u8]| table.entry(from, packet).map(|entry| entry.hop);
        assert_eq!((hop(0, &to([198, 18, 0, 2])), hop(0, &to([10, 77, 2, 2]))), (there, there));
        assert_eq!((hop(1, &to([10, 77, 1, 2])), hop(1, &[&[0x60][..], &[0; 39]].concat())), (back, back));
        // Routers answer nothing, and nothing else of the test network is there.
        assert_eq!((hop(0, &to([198, 19, 0, 1])), hop(0, &to([198, 18, 0, 9]))), (None, None));
        assert_eq!((hop(0, &[0x60; 39]), hop(0, &[]), hop(0, &[0x50; 60])), (None, None, None), "no IP packet");
    }

    fn to_ipv6(address: [u16; 8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, 58, 64];
        packet.extend([0xfd; 16]);
        packet.extend(Ipv6Addr::from(address).octets());
        packet
    }

    #[test]
    fn hosts_are_found_by_their_ipv6_addresses() {
        let test = |network, last| to_ipv6([0x2001, 2, network, 0, 0, 0, 0, last]);
        let two = table(2);
        let hop = |from, packet: &[u8]| two.entry(from, packet).map(|entry| entry.hop);
        assert_eq!((hop(0, &test(0, 2)), hop(1, &test(0, 1))), (two.pair_hop(0, 1), two.pair_hop(1, 0)));
        assert_eq!(
            (hop(0, &test(0, 9)), hop(0, &test(1, 2))),
            (None, two.pair_hop(0, 1)),
            "its own network ends at 48"
        );
        let three = table(3);
        assert!(three.entry(0, &test(0, 2)).is_some() && three.entry(0, &test(1, 2)).is_none());
    }

    #[test]
    fn among_more_hosts_an_unknown_address_leads_nowhere() {
        assert!(table(3).entry(0, &to([10, 77, 2, 2])).is_none());
    }
}
