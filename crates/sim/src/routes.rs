//! Routes as one flat list of hops, so that forwarding a packet is one increment and one load.
//!
//! Packets may have several ways, and change from one to another while the network runs. Each way has hops of its own in the list;
//! where the way that holds parts from another one, the hop of that other one is a turn: a packet that comes to the router there
//! goes on along the way that holds, and one that is past it never looks at that hop again.

use std::collections::BTreeMap;

/// Set in a hop that is a host rather than a link.
const HOST: u32 = 1 << 31;
/// Set in a hop that is a turn into another way.
const TURN: u32 = 1 << 30;

/// Position of a route's first hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteId(pub u32);

/// A packet that knows where it is on its route.
pub trait Routed {
    /// Position of the hop that the packet is at or goes to next.
    fn hop(&self) -> u32;
    /// Moves on by one hop.
    fn advance(&mut self);
    /// Goes on from the hop at `position`, which is one of another way.
    fn turn(&mut self, position: u32);
}

/// What stands at a position of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// A link, by its number.
    Link(u32),
    /// The host at the route's end, by its number.
    Host(u32),
    /// The position at which another way goes on from here; a link or a host stands there.
    Turn(u32),
}

/// All routes of a network.
#[derive(Default)]
pub struct Routes {
    /// As packets follow them.
    hops: Vec<u32>,
    /// The same without turns.
    planned: Vec<u32>,
    /// By the position of a route: that of every way of its packets, its own first. Routes with one way are not here.
    ways: BTreeMap<u32, Vec<u32>>,
}

impl Routes {
    /// Adds the route over `links` to `host`. Panics when a number needs bit 30 or 31.
    pub fn add(&mut self, links: &[usize], host: u32) -> RouteId {
        let id = u32::try_from(self.hops.len()).ok().filter(|id| id & (HOST | TURN) == 0);
        let id = RouteId(id.expect("fewer than 2^30 hops"));
        for &link in links {
            let link = u32::try_from(link).ok().filter(|link| link & (HOST | TURN) == 0);
            self.planned.push(link.expect("fewer than 2^30 links"));
        }
        assert!(host & (HOST | TURN) == 0, "fewer than 2^30 hosts");
        self.planned.push(host | HOST);
        self.hops.extend(&self.planned[id.0 as usize..]);
        id
    }

    /// Adds `links` as a way that packets of `route` may come to take ([`crate::Network::set_way`]), to the same host; nothing when
    /// they have that way.
    ///
    /// Cost: a walk over the ways of `route`. Panics as [`Routes::add`].
    pub fn add_way(&mut self, route: RouteId, links: &[usize]) -> RouteId {
        if let Some(way) = self.way_over(route, links) {
            return way;
        }
        let Hop::Host(host) = decode(self.planned[self.end(route.0)]) else { unreachable!("a route ends at a host") };
        let way = self.add(links, host);
        self.ways.entry(route.0).or_insert_with(|| vec![route.0]).push(way.0);
        way
    }

    /// From here on packets of `route` take `way`, one of theirs: each from the router where its own way and this one part.
    pub(crate) fn switch(&mut self, route: RouteId, way: RouteId) {
        let Some(ways) = self.ways.get(&route.0) else { return };
        for &other in ways {
            let (from, to) = (other as usize, self.end(other));
            self.hops[from..=to].copy_from_slice(&self.planned[from..=to]);
            if let Some(common) = self.common(other, way.0) {
                self.hops[from + common as usize] = TURN | (way.0 + common);
            }
        }
    }

    /// Hops of all routes and ways.
    pub(crate) fn len(&self) -> usize {
        self.planned.len()
    }

    /// The way of `route` over `links`.
    fn way_over(&self, route: RouteId, links: &[usize]) -> Option<RouteId> {
        let is_it = |way: u32| {
            let hops = &self.planned[way as usize..self.end(way)];
            hops.len() == links.len() && hops.iter().zip(links).all(|(&hop, &link)| hop as usize == link)
        };
        let alone = [route.0];
        let ways = self.ways.get(&route.0).map_or(alone.as_slice(), Vec::as_slice);
        ways.iter().copied().find(|&way| is_it(way)).map(RouteId)
    }

    /// How many links two ways share before they part; None when they never do.
    fn common(&self, one: u32, other: u32) -> Option<u32> {
        let (one, other) = (&self.planned[one as usize..], &self.planned[other as usize..]);
        let same = one.iter().zip(other).take_while(|(a, b)| a == b && **a & HOST == 0).count();
        // Both at the host: the same way.
        (one[same] != other[same]).then_some(same as u32)
    }

    /// Position of the host at the end of the way that begins at `position`.
    fn end(&self, position: u32) -> usize {
        let hops = &self.planned[position as usize..];
        position as usize + hops.iter().position(|hop| hop & HOST != 0).expect("a route ends at a host")
    }

    /// What stands at `position`.
    #[inline]
    pub fn at(&self, position: u32) -> Hop {
        decode(self.hops[position as usize])
    }

    /// All routes without turns, one after the other; each ends with a host. With each hop whether packets may come to turn there.
    pub(crate) fn hops(&self) -> impl Iterator<Item = (Hop, bool)> + '_ {
        let mut forks = vec![false; self.planned.len()];
        for ways in self.ways.values() {
            for (index, &one) in ways.iter().enumerate() {
                for &other in &ways[..index] {
                    if let Some(common) = self.common(one, other) {
                        forks[(one + common) as usize] = true;
                        forks[(other + common) as usize] = true;
                    }
                }
            }
        }
        self.planned.iter().map(|&hop| decode(hop)).zip(forks)
    }
}

#[inline]
fn decode(hop: u32) -> Hop {
    if hop & (HOST | TURN) == 0 {
        Hop::Link(hop)
    } else if hop & HOST != 0 {
        Hop::Host(hop & !HOST)
    } else {
        Hop::Turn(hop & !TURN)
    }
}
