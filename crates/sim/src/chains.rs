//! Links that stand one behind the other on every route, moved as one source of events.
//!
//! Where all that leaves x enters y and nothing else does, nobody sees when a packet passes from x to y: it can be moved
//! later, with the time at which it did. A chain of such links has one event per packet, at the far end of its last link,
//! instead of one per link. Results are the same to the ns: an analytic link computes from arrival times, not from calls.

use crate::routes::{Hop, Routed, Routes};
use link::{Admission, DropReason, Link, Packet};
use units::Time;

/// A packet that a link inside a chain did not take, to be reported.
pub struct Refused<P> {
    pub time: Time,
    pub link: u32,
    pub packet: P,
    pub reason: DropReason,
}

/// Which links form chains. A link that is in none is a chain of its own.
pub struct Chains {
    /// Members of all chains, each from its first link to its last.
    members: Vec<u32>,
    /// By last link: where its chain's members lie. Empty for the other links.
    spans: Vec<(u32, u32)>,
    /// By link: the last link of its chain, whose number is the chain's source of events.
    last: Vec<u32>,
}

impl Chains {
    /// Each link alone.
    #[cfg(test)]
    pub fn none(links: usize) -> Chains {
        Chains::from_followers(&vec![None; links])
    }

    /// The longest chains that `routes` allow.
    pub fn new<P: Packet>(links: &[Link<P>], routes: &Routes) -> Chains {
        // By link: None = nothing seen yet, Some(None) = more than one, or a host (at which routes begin and end).
        let mut after: Vec<Option<Option<u32>>> = vec![None; links.len()];
        let mut before = after.clone();
        let see = |seen: &mut Option<Option<u32>>, other: Option<u32>| {
            *seen = Some(if seen.is_none() || *seen == Some(other) { other } else { None });
        };
        let mut from = None;
        for hop in routes.hops() {
            let to = match hop {
                Hop::Link(link) => Some(link),
                Hop::Host(_) => None,
            };
            if let Some(from) = from {
                see(&mut after[from as usize], to);
            }
            if let Some(to) = to {
                see(&mut before[to as usize], from);
            }
            from = to;
        }
        let follower = |x: usize| {
            let y = after[x]??;
            let only = before[y as usize] == Some(Some(x as u32));
            (only && links[x].is_analytic() && links[y as usize].is_analytic()).then_some(y)
        };
        Chains::from_followers(&(0..links.len()).map(follower).collect::<Vec<_>>())
    }

    fn from_followers(followers: &[Option<u32>]) -> Chains {
        let mut follows = vec![false; followers.len()];
        for &y in followers.iter().flatten() {
            follows[y as usize] = true;
        }
        let mut chains = Chains {
            members: vec![],
            spans: vec![(0, 0); followers.len()],
            last: (0..followers.len() as u32).collect(),
        };
        for first in (0..followers.len()).filter(|&x| !follows[x]) {
            let start = chains.members.len();
            let mut next = Some(first as u32);
            while let Some(link) = next {
                chains.members.push(link);
                next = followers[link as usize];
            }
            let last = chains.members[chains.members.len() - 1];
            chains.spans[last as usize] = (start as u32, chains.members.len() as u32);
            for &link in &chains.members[start..] {
                chains.last[link as usize] = last;
            }
        }
        chains
    }

    /// The last link of the chain of `link`.
    #[inline]
    pub fn last(&self, link: u32) -> u32 {
        self.last[link as usize]
    }

    /// The chain that ends with `last`, from its first link on.
    #[inline]
    pub fn ending_with(&self, last: u32) -> &[u32] {
        let (start, end) = self.spans[last as usize];
        &self.members[start as usize..end as usize]
    }
}

/// Moves packets from link to link of a chain: those that pass before `now`, and at `now` those out of links for which `tie`
/// says so. Returns whether a link has losses to report; what a link refused is added to `refused`.
#[inline]
pub fn settle<P: Packet + Routed>(
    links: &mut [Link<P>],
    chain: &[u32],
    now: Time,
    tie: impl Fn(u32) -> bool,
    refused: &mut Vec<Refused<P>>,
) -> bool {
    let mut lost = false;
    for pair in chain.windows(2) {
        let (x, y) = (pair[0], pair[1]);
        loop {
            let link = &mut links[x as usize];
            let time = link.poll_timeout();
            if time > now || time == Time::NEVER || (time == now && !tie(x)) {
                lost |= link.has_dropped();
                break;
            }
            let Some(mut packet) = link.poll_delivery(time) else { continue };
            packet.advance();
            if let Admission::Dropped(packet, reason) = links[y as usize].handle_packet(time, packet) {
                refused.push(Refused { time, link: y, packet, reason });
            }
        }
    }
    lost
}

/// When the next packet leaves the chain, or earlier: what comes before an event that turns out to be early is settled, and the
/// next is nearer to the truth.
#[inline]
pub fn due<P: Packet>(links: &[Link<P>], chain: &[u32]) -> Time {
    // Packets do not overtake: the next to leave is the oldest in the last link that has some (and is up).
    let mut rest = chain;
    let (mut time, mut at) = (Time::NEVER, None);
    let mut empty = 0;
    while let Some((&link, before)) = rest.split_last() {
        time = links[link as usize].poll_timeout();
        if time != Time::NEVER {
            at = Some(link);
            break;
        }
        empty += 1;
        rest = before;
    }
    let Some(at) = at else { return Time::NEVER };
    if empty == 0 {
        return time;
    }
    let Some(packet) = links[at as usize].oldest() else { return time };
    // Through idle links its way is known, as long as it is certain not to be lost: a packet behind it may be faster.
    let mut from = at;
    for &link in &chain[rest.len()..] {
        if !links[from as usize].spares(packet) {
            break;
        }
        let Some(span) = links[link as usize].idle_transit(packet.bytes()) else { break };
        time = Time(time.0.saturating_add(span.0));
        from = link;
    }
    time
}
