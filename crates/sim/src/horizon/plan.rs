//! The static part of horizons: kinds of links, their order, and the lookahead.

use super::processes::Processes;
use crate::routes::{Hop, Routed, Routes};
use link::{Link, Packet};
use std::collections::BTreeSet;

/// No link, no process, no bound.
pub const NONE: u32 = u32::MAX;

/// Largest rate at which even a packet of [`SMALLEST_BYTES`] takes a ns: packets of one link come at different times
/// then, and later than they were sent even without a delay.
const MAX_RATE_BPS: u64 = 8 * SMALLEST_BYTES * 1_000_000_000;
/// IP and TCP headers without options.
const SMALLEST_BYTES: u64 = 40;

/// Reason for which a network has no horizons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// A link is a hold buffer, or takes batches so fast that two may leave at one ns.
    LinkOfOtherKind(u32),
    /// A path of a route goes on where another one ends.
    PathGoesOn(u32),
    /// A route leads from one host to another without delay, or around in a circle of links.
    NoLookahead,
    /// From this link some packets are handed on ahead of time, unless others wait at its end for their events.
    MayWait(u32),
    /// A process has so many timers that looking up the next one would take longer than a queue of events.
    ManyTimers(u32),
    /// A route has no sender.
    UnknownSender(u32),
}

/// Place of a link among the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// One process alone sends into it: its packets pass as they are sent.
    Direct,
    /// One link alone leads into it: its packets pass with that link's.
    Fused,
    /// The same; it leads from a merged link to one inbox and drops nothing: its packets pass when the turn of that
    /// inbox's host comes.
    Last(u32),
    /// Packets of several processes or links meet here.
    Merged,
}

/// Place to which a link leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Always this inbox of a host.
    Inbox(u32),
    /// Always this link.
    Link(u32),
    /// One or another.
    Mixed,
}

/// The plan of a network.
pub struct Plan {
    /// By link.
    pub nexts: Vec<Next>,
    /// By link.
    pub places: Vec<Place>,
    /// By merged link: one that it leads to may lose packets, which count as lost from when they came here.
    pub is_careful: Vec<bool>,
    /// Merged links in the order of the data's way, with the time that packets take at least from any process to them.
    pub merged: Vec<(u32, u64)>,
    /// By position on a route: the inbox of a link that is the last one ([`Place::Last`]); else `u32::MAX`.
    pub lasts: Vec<u32>,
    /// By inbox: the link that leads to it. The first ones are the hosts', in their order.
    pub last_links: Vec<u32>,
    /// Host of each further inbox: of those to which several links lead.
    pub other_inboxes: Vec<u32>,
    /// By merged link: packets may come to it, or to another one, as the selected path says when they are there.
    pub is_selected: Vec<bool>,
    /// Packets may change their path.
    pub has_moves: bool,
    /// Least time from one process to another.
    pub lookahead: u64,
    /// Least time from a merged link's entry to a process.
    pub from_merged: u64,
    /// By link: it decides at the time of a packet, or may change.
    pub is_late: Vec<bool>,
    /// By link: it may deliver several packets in one ns, and hosts may answer at once in an order that matters: it
    /// leads to several places, or a process to which it leads sends into it or into one that takes batches.
    pub counts_ties: Vec<bool>,
    /// There is such a link.
    pub has_late: bool,
    /// By link: least delay.
    pub delays: Vec<u64>,
}

impl Plan {
    /// Of `links` along `routes`; `fused` tells whether a link hands all its packets on to the next one.
    pub fn new<P: Packet + Routed>(
        links: &[Link<P>],
        routes: &Routes,
        fused: impl Fn(u32, u32) -> bool,
        processes: &Processes,
    ) -> Result<Plan, Unfit> {
        let delays = least_delays(links, processes)?;
        let is_late: Vec<bool> = links.iter().map(|link| !link.is_precomputed()).collect();
        let is_selected = is_selected(links.len(), routes);
        let walks = walks(routes, processes)?;
        let Topology { nexts, last_links, other_inboxes, senders, inputs } =
            Topology::new(links.len(), processes.of_host.len(), &walks);
        let is_fast = |link: &Link<P>| matches!(link, Link::Precomputed(link) if link.rate().0 > MAX_RATE_BPS);
        let mut places: Vec<Place> = (0..)
            .zip(&inputs)
            .map(|(link, of)| match (of.as_slice(), senders[link as usize]) {
                ([], Senders::Several) => Place::Merged,
                ([], _) => Place::Direct,
                (&[from], Senders::None) if fused(from, link) => Place::Fused,
                // A late link delivers by events, which then pass such a link at once.
                (&[from], Senders::None) if is_late[from as usize] && !is_selected[link as usize] => Place::Fused,
                _ => Place::Merged,
            })
            .collect();
        for (place, _) in places.iter_mut().zip(&is_late).filter(|(_, &is_late)| is_late) {
            *place = Place::Merged;
        }
        check_waits(&walks, &places, &is_late)?;
        let sizes = processes.packet_bytes;
        let drops_nothing = |from: u32, link: usize| drops_nothing(links, from, link as u32, sizes);
        for link in 0..links.len() {
            if let (&[from], Place::Fused, Next::Inbox(inbox)) = (inputs[link].as_slice(), places[link], nexts[link]) {
                if places[from as usize] == Place::Merged && drops_nothing(from, link) {
                    places[link] = Place::Last(inbox);
                }
            }
        }
        let mut is_careful = vec![false; links.len()];
        for link in 0..links.len() {
            let mut from = link;
            while places[from] == Place::Fused {
                from = inputs[from][0] as usize;
            }
            if from != link && places[from] == Place::Merged {
                is_careful[from] |= !drops_nothing(inputs[link][0], link);
            }
        }
        let order = topological(&inputs).ok_or(Unfit::NoLookahead)?;
        // A packet that was sent at the end of a horizon may take no ns on fast links.
        let slack = u64::from(links.iter().any(is_fast));
        // Least time from a process to a link's entry, and from the latest merged link's entry.
        let (mut entry, mut since_merged) = (vec![u64::MAX; links.len()], vec![u64::MAX; links.len()]);
        for at in order.iter().map(|&link| link as usize) {
            let after = |times: &[u64], from: u32| times[from as usize].saturating_add(delays[from as usize]);
            let sent = if senders[at] == Senders::None { u64::MAX } else { 0 };
            entry[at] = inputs[at].iter().map(|&from| after(&entry, from)).fold(sent, u64::min);
            since_merged[at] = match places[at] {
                Place::Merged => 0,
                Place::Direct => u64::MAX,
                Place::Fused | Place::Last(_) => after(&since_merged, inputs[at][0]),
            };
        }
        let least = |of: &[u64]| {
            let to_hosts = last_links.iter().filter(|&&link| link != NONE).map(|&link| link as usize);
            to_hosts.map(|link| of[link].saturating_sub(slack).saturating_add(delays[link])).min().unwrap_or(u64::MAX)
        };
        let sends: BTreeSet<_> = walks.iter().map(|walk| (walk.links[0], walk.sender)).collect();
        let has_ties = |link: usize| is_late[link] || is_fast(&links[link]);
        let mut counts_ties: Vec<bool> =
            (0..links.len()).map(|link| has_ties(link) && nexts[link] == Next::Mixed).collect();
        let hosts = (0..processes.of_host.len() as u32).chain(other_inboxes.iter().copied());
        for (&link, host) in last_links.iter().zip(hosts).filter(|(&link, _)| link != NONE) {
            let process = processes.of_host[host as usize];
            let answers = |&(first, sender): &(u32, u32)| {
                sender == process && (first == link || matches!(links[first as usize], Link::Batched(_)))
            };
            counts_ties[link as usize] |= has_ties(link as usize) && sends.iter().any(answers);
        }
        let has_late = is_late.contains(&true);
        // Late links have handed over nothing that they deliver later.
        let (lookahead, from_merged) = (least(&entry), if has_late { 0 } else { least(&since_merged) });
        if lookahead == 0 {
            return Err(Unfit::NoLookahead);
        }
        let is_merged = |&link: &u32| places[link as usize] == Place::Merged;
        let merged = order.into_iter().filter(is_merged);
        let merged = merged.map(|link| (link, entry[link as usize].saturating_sub(slack))).collect();
        let last_at = |(hop, _): (Hop, bool)| match hop {
            Hop::Link(link) => match places[link as usize] {
                Place::Last(inbox) => inbox,
                _ => NONE,
            },
            Hop::Host(_) | Hop::Redirect(_) => NONE,
        };
        let lasts = routes.hops().map(last_at).collect();
        let has_moves = routes.has_alternates();
        Ok(Plan {
            is_careful,
            lasts,
            nexts,
            places,
            merged,
            last_links,
            other_inboxes,
            is_selected,
            has_moves,
            lookahead,
            from_merged,
            is_late,
            counts_ties,
            has_late,
            delays,
        })
    }

    /// Inbox of packets that come to `host` over `link`.
    #[inline]
    pub fn inbox(&self, host: u32, link: u32) -> u32 {
        if self.other_inboxes.is_empty() || self.last_links[host as usize] == link {
            return host;
        }
        let hosts = self.last_links.len() - self.other_inboxes.len();
        let is_its = |inbox: &usize| self.other_inboxes[inbox - hosts] == host && self.last_links[*inbox] == link;
        (hosts..self.last_links.len()).find(is_its).expect("a link leads to the host") as u32
    }

    /// Host of an inbox.
    #[inline]
    pub fn host_of(&self, inbox: u32) -> u32 {
        let hosts = (self.last_links.len() - self.other_inboxes.len()) as u32;
        if inbox < hosts {
            inbox
        } else {
            self.other_inboxes[(inbox - hosts) as usize]
        }
    }
}

/// Processes that send into a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Senders {
    None,
    One(u32),
    Several,
}

/// Neighbours of links.
struct Topology {
    /// By link; one on no route has [`Next::Mixed`].
    nexts: Vec<Next>,
    /// As those of [`Plan`].
    last_links: Vec<u32>,
    other_inboxes: Vec<u32>,
    /// By link.
    senders: Vec<Senders>,
    /// By link: the links that lead to it, each once.
    inputs: Vec<Vec<u32>>,
}

impl Topology {
    fn new(links: usize, hosts: usize, walks: &[Walk]) -> Topology {
        let mut nexts: Vec<Option<Next>> = vec![None; links];
        let mut last_links = vec![NONE; hosts];
        let mut other_inboxes: Vec<u32> = vec![];
        let mut senders = vec![Senders::None; links];
        let mut inputs: Vec<Vec<u32>> = vec![vec![]; links];
        for walk in walks {
            let (first, last) = (walk.links[0], walk.links[walk.links.len() - 1]);
            let mut inboxes = std::iter::once(walk.host as usize)
                .chain((hosts..).zip(&other_inboxes).filter(|(_, &host)| host == walk.host).map(|(inbox, _)| inbox));
            let inbox = match inboxes.find(|&inbox| [NONE, last].contains(&last_links[inbox])) {
                Some(inbox) => inbox,
                None => {
                    other_inboxes.push(walk.host);
                    last_links.push(last);
                    last_links.len() - 1
                }
            };
            last_links[inbox] = last;
            let sender = &mut senders[first as usize];
            *sender = match *sender {
                Senders::None => Senders::One(walk.sender),
                Senders::One(other) if other == walk.sender => *sender,
                _ => Senders::Several,
            };
            note_next(&mut nexts[last as usize], Next::Inbox(inbox as u32));
            for pair in walk.links.windows(2) {
                note_next(&mut nexts[pair[0] as usize], Next::Link(pair[1]));
                inputs[pair[1] as usize].push(pair[0]);
            }
        }
        for of in &mut inputs {
            of.sort_unstable();
            of.dedup();
        }
        let nexts = nexts.into_iter().map(|next| next.unwrap_or(Next::Mixed)).collect();
        Topology { nexts, last_links, other_inboxes, senders, inputs }
    }
}

/// Checks that each link hands on all its packets ahead of time, or none: else one may wait behind another.
fn check_waits(walks: &[Walk], places: &[Place], is_late: &[bool]) -> Result<(), Unfit> {
    let mut hands_on: Vec<Option<bool>> = vec![None; places.len()];
    for walk in walks {
        for (position, &link) in walk.links.iter().enumerate().filter(|(_, &link)| !is_late[link as usize]) {
            let next = walk.links.get(position + 1);
            let ahead = next.is_some_and(|&next| places[next as usize] == Place::Fused);
            if *hands_on[link as usize].get_or_insert(ahead) != ahead {
                return Err(Unfit::MayWait(link));
            }
        }
    }
    Ok(())
}

fn drops_nothing<P: Packet>(links: &[Link<P>], from: u32, link: u32, sizes: [u32; 2]) -> bool {
    match (&links[from as usize], &links[link as usize]) {
        (Link::Precomputed(from), Link::Precomputed(link)) => link.drops_nothing_after(from, sizes),
        _ => false,
    }
}

fn note_next(known: &mut Option<Next>, next: Next) {
    *known = Some(if known.is_none_or(|known| known == next) { next } else { Next::Mixed });
}

/// A path of a route: its links and the host at its end.
pub struct Walk {
    pub links: Vec<u32>,
    pub host: u32,
    /// The process that sends.
    pub sender: u32,
}

pub fn walks(routes: &Routes, processes: &Processes) -> Result<Vec<Walk>, Unfit> {
    let by_hop: std::collections::BTreeMap<u32, u32> = processes.senders.iter().copied().collect();
    let alternates = routes.alternates();
    let mut walks = vec![];
    let mut links = vec![];
    let mut first = 0;
    for (position, (hop, is_diverging)) in routes.hops().enumerate() {
        match hop {
            Hop::Link(link) => links.push(link),
            Hop::Host(host) if is_diverging => return Err(Unfit::PathGoesOn(host)),
            Hop::Redirect(_) => unreachable!("hops without redirects"),
            Hop::Host(host) => {
                let route = alternates.get(&first).copied().unwrap_or(first);
                let sender = *by_hop.get(&route).ok_or(Unfit::UnknownSender(route))?;
                walks.push(Walk { links: std::mem::take(&mut links), host, sender });
                first = position as u32 + 1;
            }
        }
    }
    Ok(walks)
}

/// By link: packets come to it, or to another one, by the selected path.
fn is_selected(links: usize, routes: &Routes) -> Vec<bool> {
    let mut found = vec![false; links];
    for (hop, is_diverging) in routes.hops() {
        if let Hop::Link(link) = hop {
            found[link as usize] |= is_diverging;
        }
    }
    found
}

/// The least delay of each link.
fn least_delays<P: Packet>(links: &[Link<P>], processes: &Processes) -> Result<Vec<u64>, Unfit> {
    let mut delays = vec![];
    for (number, link) in (0..).zip(links) {
        match link {
            // Two batches do not leave at one ns.
            Link::Batched(link) if link.rate().0 <= MAX_RATE_BPS => {}
            Link::Batched(_) | Link::HoldBuffer(_) => return Err(Unfit::LinkOfOtherKind(number)),
            Link::Precomputed(_) | Link::Variable(_) | Link::Policed(_) => {}
        }
        delays.push(link.delay().0);
    }
    for &(link, delay) in &processes.later_delays {
        delays[link as usize] = delay.0.min(delays[link as usize]);
    }
    Ok(delays)
}

/// The links in an order in which each comes after its inputs; None: there is a circle.
fn topological(inputs: &[Vec<u32>]) -> Option<Vec<u32>> {
    let mut outputs: Vec<Vec<u32>> = vec![vec![]; inputs.len()];
    let mut missing: Vec<usize> = inputs.iter().map(Vec::len).collect();
    for (link, of) in (0..).zip(inputs) {
        for &from in of {
            outputs[from as usize].push(link);
        }
    }
    let mut order: Vec<u32> = (0..).zip(inputs).filter(|(_, of)| of.is_empty()).map(|(link, _)| link).collect();
    let mut done = 0;
    while done < order.len() {
        for &next in &outputs[order[done] as usize] {
            missing[next as usize] -= 1;
            if missing[next as usize] == 0 {
                order.push(next);
            }
        }
        done += 1;
    }
    (order.len() == inputs.len()).then_some(order)
}
