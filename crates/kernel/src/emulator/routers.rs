//! Routers of the emulated network: nodes at which a packet leaves one link for the next. They count the time to live
//! down, and tell a packet's sender by ICMP where it ended.

use super::table::Table;
use crate::icmp::Problem;
use crate::plan::HostPlan;
use experiment::{check_route, RunError};
use sim::Routes;
use spec::{LinkSpec, RunSpec};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use units::Time;

/// Time in which a router earns the right to one message, ns: 1000 in a second, as Linux's icmp_msgs_per_sec had it
/// (RFC 1812, 4.3.2.8 asks for a limit).
const MESSAGE_NS: u64 = 1_000_000;
/// Messages that it may save up (Linux's icmp_msgs_burst).
const BURST: u64 = 50;

/// A router.
struct Router {
    address: Ipv4Addr,
    ipv6_address: Option<Ipv6Addr>,
    /// By host: first hop of a route there; None: there is none.
    routes: Vec<Option<u32>>,
    /// Right to messages that is saved up, in ns of [`MESSAGE_NS`] each.
    saved_ns: u64,
    /// Time up to which it was counted.
    counted: Time,
    /// Identification of its latest packet.
    id: u16,
}

/// All routers.
#[derive(Default)]
pub(super) struct Routers {
    routers: Vec<Router>,
    /// By link: the router at its far end, if there is one.
    behind: Vec<Option<u32>>,
    /// By link: its MTU, bytes.
    mtus: Vec<u32>,
    /// Host by address.
    hosts: BTreeMap<IpAddr, u32>,
}

/// A message that a router sends.
pub(super) struct Reply {
    /// First hop of its route.
    pub hop: u32,
    /// Address of the router, of the version of the host's.
    pub address: IpAddr,
    /// Identification of the packet.
    pub id: u16,
}

impl Routers {
    /// The routers of `plan`; routes back to the hosts are added to `routes`.
    ///
    /// # Errors
    /// The part of the plan that does not fit the spec.
    pub fn new(spec: &RunSpec, plan: &HostPlan, table: &Table, routes: &mut Routes) -> Result<Routers, RunError> {
        let mut made = Routers {
            behind: vec![None; spec.links.len()],
            mtus: spec.links.iter().map(|link| link.mtu_bytes.unwrap_or(u32::MAX)).collect(),
            ..Routers::default()
        };
        for (host, planned) in plan.hosts.iter().enumerate() {
            made.hosts.insert(planned.address.into(), host as u32);
            made.hosts.extend(planned.ipv6_address.map(|address| (IpAddr::from(address), host as u32)));
        }
        for planned in &plan.routers {
            let (node, address) = (planned.node, planned.address);
            if node >= spec.nodes.len() {
                let nodes = spec.nodes.len();
                return Err(RunError::Spec(format!("router {address}: node {node} does not exist, there are {nodes}")));
            }
            if made.hosts.contains_key(&address.into()) || made.routers.iter().any(|other| other.address == address) {
                return Err(RunError::Spec(format!("router {address}: another node has this address")));
            }
            let number = made.routers.len() as u32;
            for (link, behind) in spec.links.iter().zip(&mut made.behind) {
                if link.to == node {
                    *behind = Some(number);
                }
            }
            let mut back = vec![];
            for host in 0..plan.hosts.len() {
                back.push(match shared_hop(spec, plan, table, node, host) {
                    Some(hop) => Some(hop),
                    None => way_back(spec, plan, node, host)?.map(|links| routes.add(&links, host as u32).0),
                });
            }
            let saved_ns = BURST * MESSAGE_NS;
            let ipv6_address = planned.ipv6_address;
            made.routers.push(Router { address, ipv6_address, routes: back, saved_ns, counted: Time::ZERO, id: 0 });
        }
        Ok(made)
    }

    /// Returns the router at the far end of `link`. Cost: one load.
    #[inline]
    pub fn behind(&self, link: u32) -> Option<u32> {
        self.behind.get(link as usize).copied().flatten()
    }

    /// Largest packet that `link` takes, bytes.
    #[inline]
    pub fn mtu_bytes(&self, link: u32) -> u32 {
        self.mtus.get(link as usize).copied().unwrap_or(u32::MAX)
    }

    /// `link` takes packets of `mtu_bytes` at most from now on.
    pub fn set_mtu(&mut self, link: usize, mtu_bytes: u32) {
        self.mtus[link] = mtu_bytes;
    }

    /// Returns how `router` answers the host with address `to` now; None where it may not yet, or knows no route.
    pub fn reply(&mut self, now: Time, router: u32, to: IpAddr) -> Option<Reply> {
        let host = *self.hosts.get(&to)?;
        let router = &mut self.routers[router as usize];
        let hop = router.routes[host as usize]?;
        let address = match to {
            IpAddr::V4(_) => router.address.into(),
            IpAddr::V6(_) => router.ipv6_address?.into(),
        };
        router.saved_ns = (router.saved_ns + now.since(router.counted).0).min(BURST * MESSAGE_NS);
        router.counted = now;
        router.saved_ns = router.saved_ns.checked_sub(MESSAGE_NS)?;
        router.id = router.id.wrapping_add(1);
        Some(Reply { hop, address, id: router.id })
    }
}

/// The hop at `node` of a route between hosts to `host`: messages take it wherever events move it. None where none
/// passes the node.
fn shared_hop(spec: &RunSpec, plan: &HostPlan, table: &Table, node: usize, host: usize) -> Option<u32> {
    plan.routes.iter().filter(|route| route.to == host).find_map(|route| {
        let at = route.links.iter().position(|&link| spec.links[link].from == node)?;
        Some(table.pair_hop(route.from, host)? + at as u32)
    })
}

/// The links from `node` to `host`: the rest of a flow's route there, where that passes the node, else those of fewest
/// links. None where there are none.
fn way_back(spec: &RunSpec, plan: &HostPlan, node: usize, host: usize) -> Result<Option<Vec<usize>>, RunError> {
    let flows = plan.flows.iter().zip(&spec.flows);
    let data = flows.clone().filter(|(flow, _)| flow.destination == host).map(|(_, flow)| &flow.route);
    let acks = flows.filter(|(flow, _)| flow.source == host).map(|(_, flow)| &flow.return_route);
    for links in acks.chain(data) {
        if let Some(at) = links.iter().position(|&link| spec.links.get(link).is_some_and(|link| link.from == node)) {
            return Ok(Some(links[at..].to_vec()));
        }
    }
    let Some(links) = fewest_links(&spec.links, spec.nodes.len(), node, plan.hosts[host].node) else { return Ok(None) };
    let what = format!("a router's route to host {host}");
    check_route(&what, "links", &links, node, plan.hosts[host].node, &spec.links)?;
    Ok(Some(links))
}

/// The links of a route of fewest links; None where there is none, or where it has none.
fn fewest_links(links: &[LinkSpec], nodes: usize, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut over = vec![None; nodes];
    let mut next = VecDeque::from([from]);
    while let Some(node) = next.pop_front() {
        for (index, link) in links.iter().enumerate().filter(|(_, link)| link.from == node) {
            if link.to != from && over[link.to].is_none() {
                over[link.to] = Some(index);
                next.push_back(link.to);
            }
        }
    }
    let mut route = vec![];
    let mut node = to;
    while node != from {
        let link = over[node]?;
        route.push(link);
        node = links[link].from;
    }
    route.reverse();
    (!route.is_empty()).then_some(route)
}

/// Counters of what routers did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterCounters {
    /// Packets whose time to live was used up.
    pub expired: u64,
    /// Packets larger than the next link's MTU that were not to be fragmented.
    pub too_big: u64,
    /// Packets that were fragmented.
    pub fragmented: u64,
    /// ICMP messages sent.
    pub messages: u64,
}

impl RouterCounters {
    pub(super) fn count(&mut self, problem: Problem) {
        match problem {
            Problem::TimeExceeded => self.expired += 1,
            Problem::TooBig(_) => self.too_big += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{EmulatorPlan, HostSpec, RoutePlan, RouterPlan};
    use serde_json::json;

    /// Nodes 0 to 3 in a row, there over links 0 to 2 and back over 3 to 5, and node 4 beside node 2.
    fn row() -> (RunSpec, HostPlan) {
        let mut spec = crate::testing::Line::new(1_000_000, 0, 1).spec();
        let ends = [(0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0), (0, 4), (4, 2)];
        let link = |(index, (from, to)): (usize, &(usize, usize))| {
            let mut link = spec.links[0].clone();
            (link.name, link.from, link.to) = (format!("l{index}"), *from, *to);
            link.mtu_bytes = (index == 1).then_some(1400);
            link
        };
        spec.links = ends.iter().enumerate().map(link).collect();
        spec.nodes = ["a", "r1", "r2", "b", "r3"].map(str::to_owned).to_vec();
        let host = |last: u8, node| HostSpec {
            namespace: String::new(),
            device: String::new(),
            address: Ipv4Addr::new(198, 18, 0, last),
            ipv6_address: Some(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, last.into())),
            node,
            mtu_bytes: 1500,
        };
        let router = |node: u8| RouterPlan {
            node: node.into(),
            address: Ipv4Addr::new(198, 19, 0, node),
            ipv6_address: (node < 4).then(|| Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 1, node.into())),
        };
        let route = |from, to, links: [usize; 3]| RoutePlan { from, to, links: links.to_vec() };
        let plan = HostPlan {
            hosts: vec![host(1, 0), host(2, 3)],
            flows: vec![],
            routes: vec![route(0, 1, [0, 1, 2]), route(1, 0, [3, 4, 5])],
            routers: [1, 2, 4].map(router).to_vec(),
            emulator: EmulatorPlan::default(),
        };
        (spec, plan)
    }

    fn made(spec: &RunSpec, plan: &HostPlan) -> Result<(Routers, Routes), RunError> {
        let mut routes = Routes::default();
        let table = Table::new(spec, plan, &mut routes)?;
        Ok((Routers::new(spec, plan, &table, &mut routes)?, routes))
    }

    #[test]
    fn messages_take_the_rest_of_the_route_back() {
        let (spec, plan) = row();
        let (mut routers, routes) = made(&spec, &plan).unwrap();
        let mut way = |link: u32, to: u8| {
            let router = routers.behind(link).expect("a router");
            let reply = routers.reply(Time(0), router, [198, 18, 0, to].into()).expect("a route");
            let hops = (reply.hop..).map(|at| routes.at(at));
            let links = hops.map_while(|hop| if let sim::Hop::Link(link) = hop { Some(link) } else { None });
            (reply.address, links.collect::<Vec<_>>())
        };
        let by = |last: u8| IpAddr::from([198, 19, 0, last]);
        assert_eq!(way(0, 1), (by(1), vec![5]));
        assert_eq!(way(1, 1), (by(2), vec![4, 5]));
        assert_eq!(way(1, 2), (by(2), vec![2]));
        // No route passes it: the fewest links.
        assert_eq!(way(6, 1), (by(4), vec![7, 4, 5]));
        assert_eq!((routers.behind(2), routers.behind(5), routers.behind(99)), (None, None, None), "hosts, no link");
        assert_eq!((routers.mtu_bytes(0), routers.mtu_bytes(1), routers.mtu_bytes(99)), (u32::MAX, 1400, u32::MAX));
    }

    #[test]
    fn a_host_is_answered_by_the_version_of_its_address() {
        let (spec, plan) = row();
        let (mut routers, _) = made(&spec, &plan).unwrap();
        let host = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1);
        let by = routers.reply(Time(0), 1, host.into()).expect("a route").address;
        assert_eq!(by, Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 1, 2));
        assert!(routers.reply(Time(0), 2, host.into()).is_none(), "a router without an address");
        assert!(routers.reply(Time(0), 1, Ipv6Addr::LOCALHOST.into()).is_none());
    }

    #[test]
    fn a_router_sends_so_many_messages_in_a_second() {
        let (spec, plan) = row();
        let (mut routers, _) = made(&spec, &plan).unwrap();
        let mut sent_at = |at: u64| routers.reply(Time(at), 0, [198, 18, 0, 1].into()).is_some();
        assert_eq!((0..100).filter(|_| sent_at(0)).count() as u64, BURST);
        assert!(!sent_at(MESSAGE_NS - 1) && sent_at(MESSAGE_NS) && !sent_at(MESSAGE_NS));
        let second = (1..=100_000).filter(|&at| sent_at(MESSAGE_NS + at * 10_000)).count() as u64;
        assert_eq!(second, 1000);
        assert_eq!((0..100).filter(|_| sent_at(100_000_000_000)).count() as u64, BURST, "no more is saved up");
    }

    #[test]
    fn a_router_that_does_not_fit_is_named() {
        for (node, last, words) in [(9, 9, "node 9 does not exist"), (1, 2, "has this address")] {
            let (spec, mut plan) = row();
            plan.routers.push(RouterPlan { node, address: Ipv4Addr::new(198, 19, 0, last), ipv6_address: None });
            let error = made(&spec, &plan).err().expect("an error").to_string();
            assert!(error.contains(words), "{error}");
        }
        let (_, plan) = row();
        assert!(plan.routers.len() == 3 && serde_json::from_value::<RouterPlan>(json!({"node": 1})).is_err());
    }
}
