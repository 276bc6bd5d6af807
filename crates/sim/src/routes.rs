//! Routes as one flat list of hops, so that forwarding a packet is one increment and one load.

/// Set in a hop that is a host rather than a link.
const HOST: u32 = 1 << 31;

/// Position of a route's first hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteId(pub u32);

/// A packet that knows where it is on its route.
pub trait Routed {
    /// Position of the hop that the packet is at or goes to next.
    fn hop(&self) -> u32;
    /// Moves on by one hop.
    fn advance(&mut self);
}

/// What stands at a position of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// A link, by its number.
    Link(u32),
    /// The host at the route's end, by its number.
    Host(u32),
}

/// All routes of a network.
#[derive(Default)]
pub struct Routes {
    hops: Vec<u32>,
}

impl Routes {
    /// Adds the route over `links` to `host`. Panics when a number needs bit 31.
    pub fn add(&mut self, links: &[usize], host: u32) -> RouteId {
        let id = RouteId(u32::try_from(self.hops.len()).expect("fewer than 2^32 hops"));
        for &link in links {
            let link = u32::try_from(link).expect("fewer than 2^31 links");
            assert!(link & HOST == 0, "fewer than 2^31 links");
            self.hops.push(link);
        }
        assert!(host & HOST == 0, "fewer than 2^31 hosts");
        self.hops.push(host | HOST);
        id
    }

    /// What stands at `position`.
    #[inline]
    pub fn at(&self, position: u32) -> Hop {
        decode(self.hops[position as usize])
    }

    /// All routes, one after the other; each ends with a host.
    pub(crate) fn hops(&self) -> impl Iterator<Item = Hop> + '_ {
        self.hops.iter().map(|&hop| decode(hop))
    }
}

#[inline]
fn decode(hop: u32) -> Hop {
    if hop & HOST == 0 {
        Hop::Link(hop)
    } else {
        Hop::Host(hop & !HOST)
    }
}
