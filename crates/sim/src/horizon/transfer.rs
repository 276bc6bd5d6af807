//! Packets and timers from the queue of events to horizons, and back.

use super::arrival::Arrival;
use super::late_state::Late;
use super::plan::Place;
use super::processes::TimerScope;
use super::state::PLANNED;
use crate::network::Network;
use crate::routes::{Hop, Routed, Train};
use link::{Link, Packet};
use units::Time;

impl<P: Packet + Routed + Train> Network<P> {
    /// Takes packets from the ends of links, and timers of processes from the queue.
    pub(super) fn load(&mut self) {
        let now = self.now.0;
        let Network { links, routes, horizons, queue, early, .. } = self;
        let state = horizons.as_mut().expect(PLANNED);
        state.late = Late::of_links(&state.plan);
        for (number, link) in (0..).zip(links.iter_mut()) {
            let Link::Precomputed(link) = link else {
                state.late[number as usize].due = queue.due(*early + number).0;
                queue.schedule(*early + number, Time::NEVER);
                continue;
            };
            let fused = |packet: &P| match routes.next(packet.hop() + 1) {
                Hop::Link(next) => !matches!(state.plan.places[next as usize], Place::Merged),
                _ => false,
            };
            // Behind a fused link wait only packets that the end of the run keeps there.
            if link.first_arriving().is_some_and(fused) {
                continue;
            }
            while let Some((at, packet)) = link.take_arriving() {
                match routes.next(packet.hop() + 1) {
                    Hop::Host(host) => {
                        let inbox = state.plan.inbox(host, number);
                        state.inboxes[inbox as usize].queue.push_back((at.0, packet));
                        state.note_tie(number, inbox, at.0);
                        state.activate(state.of_inbox[inbox as usize]);
                    }
                    Hop::Link(next) => {
                        let order = (*early + number, state.number_of(number, at.0));
                        let arrival = Arrival::delivered(at.0, order, packet);
                        state.arrivals[next as usize].push(arrival);
                    }
                    Hop::Redirect(_) => unreachable!("a redirect leads to a link or a host"),
                }
            }
            queue.schedule(*early + number, Time::NEVER);
        }
        for timer in 0..self.ahead().scopes.len() as u32 {
            let source = self.timer_source(timer);
            let Network { horizons, queue, .. } = self;
            let state = horizons.as_mut().expect(PLANNED);
            if let TimerScope::Process(process) = state.scopes[timer as usize] {
                let due = queue.due(source);
                queue.schedule(source, Time::NEVER);
                state.due[timer as usize] = due.0;
                let process = &mut state.processes[process as usize];
                process.note(timer, due.0, &state.due);
            }
        }
        let state = self.ahead_mut();
        for (number, process) in (0..).zip(&state.processes) {
            state.wake.schedule(number, Time(process.due));
        }
        self.load_samples();
        let state = self.ahead_mut();
        // An event at the present may still have to happen.
        let late = u64::from(!state.plan.has_late);
        (state.reached, state.ready) = (now, now.saturating_add(late));
        self.is_ahead = true;
    }

    /// Puts packets to the ends of links, and timers into the queue.
    pub(super) fn unload(&mut self) {
        let Network { links, horizons, queue, early, routes, .. } = self;
        let state = horizons.as_mut().expect(PLANNED);
        let mut left: Vec<(u64, u32, P)> = vec![];
        for inbox in &mut state.inboxes {
            debug_assert!(inbox.before == 0, "packets pass last links before");
            let ties = &mut inbox.ties;
            let mut nth = |at| ties.as_mut().filter(|ties| at >= ties.first()).map_or(0, |ties| ties.take(at));
            left.extend(inbox.queue.drain(..).map(|(at, packet)| (at, nth(at), packet)));
            inbox.queue.shrink_to_fit();
            inbox.ties = None;
        }
        for arrivals in &mut state.arrivals {
            left.extend(arrivals.take().map(|arrival| (arrival.at, arrival.nth(), arrival.packet)));
        }
        // Those of different links do not mix.
        left.sort_by_key(|&(at, nth, _)| (at, nth));
        for (at, _, packet) in left {
            let Hop::Link(number) = routes.planned(packet.hop()) else { unreachable!("a packet is on a link") };
            match &mut links[number as usize] {
                Link::Precomputed(link) => link.deliver_at(Time(at), packet),
                _ => unreachable!("nothing is on its way from a late link"),
            }
        }
        for (number, link) in (0..).zip(links.iter()) {
            let due = if link.is_precomputed() { link.poll_timeout() } else { Time(state.late[number as usize].due) };
            queue.schedule(*early + number, due);
        }
        for timer in 0..self.ahead().scopes.len() as u32 {
            let source = self.timer_source(timer);
            let Network { horizons, queue, .. } = self;
            let state = horizons.as_mut().expect(PLANNED);
            if let TimerScope::Process(_) = state.scopes[timer as usize] {
                queue.schedule(source, Time(state.due[timer as usize]));
                state.due[timer as usize] = u64::MAX;
            }
        }
        self.unload_samples();
        let state = self.ahead_mut();
        for process in &mut state.processes {
            process.due = u64::MAX;
        }
        state.active.clear();
        state.is_active.fill(false);
        for process in 0..state.processes.len() as u32 {
            state.wake.schedule(process, Time::NEVER);
        }
        debug_assert!(state.drops.is_empty() && state.later_events.is_empty(), "links were ahead of the end");
        self.is_ahead = false;
    }
}
