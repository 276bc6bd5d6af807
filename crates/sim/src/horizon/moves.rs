//! Moves in horizons: packets on their way to a router where paths part wait before its links for the time at which
//! they are there, and change to another link when the selected path does.

use super::state::{NOBODY, PLANNED};
use crate::network::Network;
use crate::routes::{Hop, Routed};
use link::Packet;

impl<P: Packet + Routed> Network<P> {
    /// A path was selected: packets on their way to links where paths part go to where they lead now. Their position on
    /// their own path stays, which decides about moves to come.
    pub(crate) fn redirect_arrivals(&mut self) {
        let Network { routes, horizons, .. } = self;
        let state = horizons.as_mut().expect(PLANNED);
        assert_eq!(state.running, NOBODY, "a process moves packets, which others may have sent");
        for link in (0..state.arrivals.len() as u32).filter(|&link| state.plan.is_selected[link as usize]) {
            let leads = |position: u32| matches!(routes.next(position + 1), Hop::Link(next) if next == link);
            let arrivals = &mut state.arrivals[link as usize];
            if arrivals.list.iter().all(|arrival| !arrival.is_from_link() || leads(arrival.packet.hop())) {
                continue;
            }
            for arrival in arrivals.take() {
                let next = if arrival.is_from_link() { routes.next(arrival.packet.hop() + 1) } else { Hop::Link(link) };
                let Hop::Link(next) = next else { unreachable!("a path parts from others at a link") };
                state.arrivals[next as usize].push(arrival);
            }
        }
    }
}
