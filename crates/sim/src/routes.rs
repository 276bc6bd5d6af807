//! Routes as one flat list of hops, so that forwarding a packet is one increment and one load.
//!
//! Packets of a route may have several paths, and change from one to another while the network runs. Each path has its
//! own hops in the list. Where the selected path diverges from another one, the hop of that other path is a redirect:
//! a packet that arrives at the router there continues along the selected path, and a packet past it never reads that
//! hop.

use std::collections::BTreeMap;

/// Set in a hop that is a host rather than a link.
const HOST: u32 = 1 << 31;
/// Set in a hop that redirects to another path.
const REDIRECT: u32 = 1 << 30;

/// Position of a route's first hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteId(pub u32);

/// A packet that knows its position on its route.
pub trait Routed {
    /// Position of the hop that the packet is at or goes to next.
    fn hop(&self) -> u32;
    /// Moves on by one hop.
    fn advance(&mut self);
    /// Continues from the hop at `position`, which belongs to another path.
    fn redirect(&mut self, position: u32);
}

/// A packet of which several are sent together.
pub trait Train: Copy {
    /// The packet that follows this one.
    fn following(self) -> Self;
}

/// An entry of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// A link, by its number.
    Link(u32),
    /// The host at the route's end, by its number.
    Host(u32),
    /// The position at which another path continues; a link or a host is there.
    Redirect(u32),
}

/// All routes of a network.
#[derive(Default)]
pub struct Routes {
    /// The hops that packets follow.
    hops: Vec<u32>,
    /// The same hops without redirects.
    planned: Vec<u32>,
    /// By the position of a route: the positions of its paths, its own first. A route with one path has no entry.
    paths: BTreeMap<u32, Vec<u32>>,
}

impl Routes {
    /// Adds the route over `links` to `host`. Panics when a number needs bit 30 or 31.
    pub fn add(&mut self, links: &[usize], host: u32) -> RouteId {
        let id = u32::try_from(self.hops.len()).ok().filter(|id| id & (HOST | REDIRECT) == 0);
        let id = RouteId(id.expect("fewer than 2^30 hops"));
        for &link in links {
            let link = u32::try_from(link).ok().filter(|link| link & (HOST | REDIRECT) == 0);
            self.planned.push(link.expect("fewer than 2^30 links"));
        }
        assert!(host & (HOST | REDIRECT) == 0, "fewer than 2^30 hosts");
        self.planned.push(host | HOST);
        self.hops.extend(&self.planned[id.0 as usize..]);
        id
    }

    /// Adds `links` as a path of `route` to the same host, for [`crate::Network::set_path`], unless the route has that
    /// path.
    ///
    /// Cost: a walk over the paths of `route`. Panics as [`Routes::add`].
    pub fn add_path(&mut self, route: RouteId, links: &[usize]) -> RouteId {
        if let Some(path) = self.path_over(route, links) {
            return path;
        }
        let Hop::Host(host) = decode(self.planned[self.end(route.0)]) else { unreachable!("a route ends at a host") };
        let path = self.add(links, host);
        self.paths.entry(route.0).or_insert_with(|| vec![route.0]).push(path.0);
        path
    }

    /// From now on packets of `route` take `path`: each from the router where its own path diverges from it.
    pub(crate) fn select(&mut self, route: RouteId, path: RouteId) {
        let Some(paths) = self.paths.get(&route.0) else { return };
        for &other in paths {
            let (from, to) = (other as usize, self.end(other));
            self.hops[from..=to].copy_from_slice(&self.planned[from..=to]);
            if let Some(common) = self.common(other, path.0) {
                self.hops[from + common as usize] = REDIRECT | (path.0 + common);
            }
        }
    }

    /// Hops of all routes and paths.
    pub(crate) fn len(&self) -> usize {
        self.planned.len()
    }

    /// The path of `route` over `links`.
    fn path_over(&self, route: RouteId, links: &[usize]) -> Option<RouteId> {
        let matches = |path: u32| {
            let hops = &self.planned[path as usize..self.end(path)];
            hops.len() == links.len() && hops.iter().zip(links).all(|(&hop, &link)| hop as usize == link)
        };
        let alone = [route.0];
        let paths = self.paths.get(&route.0).map_or(alone.as_slice(), Vec::as_slice);
        paths.iter().copied().find(|&path| matches(path)).map(RouteId)
    }

    /// Returns the number of links that two paths share before they diverge; None if they are equal.
    fn common(&self, one: u32, other: u32) -> Option<u32> {
        let (one, other) = (&self.planned[one as usize..], &self.planned[other as usize..]);
        let same = one.iter().zip(other).take_while(|(a, b)| a == b && **a & HOST == 0).count();
        // Both at the host: the same path.
        (one[same] != other[same]).then_some(same as u32)
    }

    /// Position of the host at the end of the path that begins at `position`.
    fn end(&self, position: u32) -> usize {
        let hops = &self.planned[position as usize..];
        position as usize + hops.iter().position(|hop| hop & HOST != 0).expect("a route ends at a host")
    }

    /// Returns true if packets of a route may have several paths.
    pub(crate) fn has_alternates(&self) -> bool {
        !self.paths.is_empty()
    }

    /// The hop at `position`.
    #[inline]
    pub fn at(&self, position: u32) -> Hop {
        decode(self.hops[position as usize])
    }

    /// The hop that a packet goes to from `position`, of another path when it is redirected there.
    #[inline]
    pub(crate) fn next(&self, position: u32) -> Hop {
        match self.at(position) {
            Hop::Redirect(other) => self.at(other),
            hop => hop,
        }
    }

    /// `packet`, which has come to the router before its hop, on the path that it takes from there.
    #[inline]
    pub(crate) fn redirected<P: Routed>(&self, mut packet: P) -> P {
        if let Hop::Redirect(position) = self.at(packet.hop()) {
            packet.redirect(position);
        }
        packet
    }

    /// The hop at `position` of its own path: a link or a host.
    pub(crate) fn planned(&self, position: u32) -> Hop {
        decode(self.planned[position as usize])
    }

    /// By the position of each path but the first of its route: the position of that first.
    pub(crate) fn alternates(&self) -> BTreeMap<u32, u32> {
        self.paths.iter().flat_map(|(&route, paths)| paths.iter().map(move |&path| (path, route))).collect()
    }

    /// All routes without redirects, one after the other; each ends with a host. With each hop whether it may become a
    /// redirect.
    pub(crate) fn hops(&self) -> impl Iterator<Item = (Hop, bool)> + '_ {
        let mut diverging = vec![false; self.planned.len()];
        for paths in self.paths.values() {
            for (index, &one) in paths.iter().enumerate() {
                for &other in &paths[..index] {
                    if let Some(common) = self.common(one, other) {
                        diverging[(one + common) as usize] = true;
                        diverging[(other + common) as usize] = true;
                    }
                }
            }
        }
        self.planned.iter().map(|&hop| decode(hop)).zip(diverging)
    }
}

#[inline]
fn decode(hop: u32) -> Hop {
    if hop & (HOST | REDIRECT) == 0 {
        Hop::Link(hop)
    } else if hop & HOST != 0 {
        Hop::Host(hop & !HOST)
    } else {
        Hop::Redirect(hop & !REDIRECT)
    }
}
