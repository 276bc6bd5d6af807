//! Workers of a team: what they hand each other, and when.

use super::part::Part;
use super::plan::{walks, NONE};
use super::processes::{Processes, TimerScope};
use super::shards::Shards;
use super::state::PLANNED;
use super::team::{Deliveries, Report, Team};
use crate::network::Network;
use crate::routes::{Hop, Routed, Train};
use link::Packet;
use std::sync::Arc;
use units::growth::reserve;
use units::Time;

impl<P: Packet + Routed + Train> Network<P> {
    /// The division of this network, whose horizons are planned for `processes`, among `workers`, or fewer.
    ///
    /// # Panics
    /// When they are not.
    pub fn shards(&self, processes: &Processes, workers: usize) -> Shards {
        let walks = walks(&self.routes, processes).expect(PLANNED);
        Shards::new(&self.ahead().plan, &walks, processes, workers)
    }

    /// Returns whether the team is dissolved: the others may be anywhere.
    pub(super) fn is_dissolved(&self) -> bool {
        self.part().is_some_and(|part| part.team.is_dissolved())
    }

    fn part(&self) -> Option<&Part<P>> {
        self.horizons.as_ref()?.part.as_deref()
    }

    /// Processes of all workers that had a turn in the latest horizon, and the number of workers.
    pub(super) fn turns_of_all(&self) -> (u64, u64) {
        match self.part() {
            Some(part) => (part.all.turns, part.team.workers() as u64),
            None => (self.ahead().turns, 1),
        }
    }

    /// Returns the number of events so far of all workers of the team, as far as this one knows.
    pub fn events_of_all(&self) -> u64 {
        self.part().map_or(self.events, |part| part.all.events)
    }

    /// From here on this network is that of `worker` in `team`: of all that it has, it moves the processes and links
    /// that are the worker's in `shards`. All workers build the same network, join, and then call the same of
    /// [`Network::run_horizons`] with the same bounds; none calls [`Network::run`].
    ///
    /// # Panics
    /// When horizons are not planned, or the division is one among another number of workers.
    pub fn join(&mut self, team: Arc<Team<P>>, worker: usize, shards: Shards) {
        assert_eq!(team.workers(), shards.workers(), "a team has the workers of its division");
        if team.workers() == 1 {
            return;
        }
        let packets = (0..team.workers()).map(|_| vec![]).collect();
        let part = Part { worker, team, shards, packets, all: Report::default(), is_fresh: false };
        for timer in 0..self.ahead().scopes.len() as u32 {
            if let TimerScope::Process(process) = self.ahead().scopes[timer as usize] {
                if !part.owns_process(process) {
                    let source = self.timer_source(timer);
                    self.queue.schedule(source, Time::NEVER);
                }
            }
        }
        self.ahead_mut().part = Some(Box::new(part));
    }

    /// Hands packets on their way to merged links to their owners, and takes those to its own.
    pub(super) fn exchange_arrivals(&mut self) {
        let state = self.ahead_mut();
        let Some(part) = &mut state.part else { return };
        // Each sorts what it has for a link; its owner merges.
        for &(link, _) in &state.plan.merged {
            state.arrivals[link as usize].sort(&mut state.buckets);
        }
        for to in part.others() {
            let mut parcels = part.team.arrivals(part.worker, to);
            let mut used = 0;
            for &(link, _) in &state.plan.merged {
                let list = &mut state.arrivals[link as usize];
                if part.shards.of_link(link as usize) != to || list.list.is_empty() {
                    continue;
                }
                if used == parcels.len() {
                    parcels.push((link, vec![]));
                }
                parcels[used].0 = link;
                list.hand_over(&mut parcels[used].1);
                used += 1;
            }
        }
        if !part.team.wait_for_all() {
            self.stopped = true;
            return;
        }
        for from in part.others() {
            for (link, list) in part.team.arrivals(from, part.worker).iter_mut() {
                if !list.is_empty() {
                    state.arrivals[*link as usize].merge(list, &mut state.buckets);
                }
            }
        }
    }

    /// Hands what merged links have passed on to the workers of its hosts, and takes its own.
    pub(super) fn exchange_deliveries(&mut self) {
        let events = self.events;
        let state = self.horizons.as_mut().expect(PLANNED);
        let Some(part) = &mut state.part else { return };
        let has_arrivals = |&(link, _): &(u32, u64)| !state.arrivals[link as usize].list.is_empty();
        let is_idle = state.active.is_empty()
            && part.packets.iter().all(Vec::is_empty)
            && !state.plan.merged.iter().any(has_arrivals);
        let wake = state.wake.peek().map_or(u64::MAX, |(due, _)| due.0);
        let report = Report { events, turns: state.turns, is_idle, wake };
        for to in part.others() {
            let mut theirs = part.team.deliveries(part.worker, to);
            let Deliveries { packets, drops, report: told } = &mut *theirs;
            std::mem::swap(packets, &mut part.packets[to]);
            let of_other = |drop: &(u64, u32, P, _)| part.shards.of_position(drop.2.hop()) == to;
            drops.extend(state.drops.extract_if(.., |drop| of_other(drop)));
            *told = report;
        }
        if !part.team.wait_for_all() {
            self.stopped = true;
            return;
        }
        let mut all = report;
        let others: Vec<usize> = part.others().collect();
        let mut own = std::mem::take(&mut part.packets[part.worker]);
        let (team, worker) = (Arc::clone(&part.team), part.worker);
        for from in others {
            let mut ours = team.deliveries(from, worker);
            all.add(&ours.report);
            let state = self.ahead_mut();
            state.drops.append(&mut ours.drops);
            self.receive_all(&mut ours.packets);
        }
        self.receive_all(&mut own);
        let state = self.ahead_mut();
        if let Some(part) = &mut state.part {
            (part.all, part.is_fresh) = (all, true);
            part.packets[worker] = own;
        }
    }

    fn receive_all(&mut self, packets: &mut Vec<(u64, P)>) {
        for index in 0..packets.len() {
            self.ahead().prefetch_soon(packets, index);
            let (at, packet) = packets[index];
            self.receive(at, packet);
        }
        packets.clear();
    }

    /// Keeps `packet`, which comes to its next link at `at`, for the worker of its host, if that link is a last one.
    #[inline]
    pub(super) fn keep(&mut self, at: u64, packet: P) -> bool {
        let end = self.horizon.0;
        let state = self.ahead_mut();
        let is_last = state.plan.lasts[packet.hop() as usize + 1] != NONE && at <= end;
        if let Some(part) = state.part.as_mut().filter(|_| is_last) {
            part.keep(at, packet);
        }
        is_last
    }

    /// `packet` comes to a host, or to its last link, at `at`.
    #[inline]
    fn receive(&mut self, at: u64, packet: P) {
        let end = self.horizon.0;
        if self.ahead_mut().leave_to_last(end, at, packet) {
            return;
        }
        let Hop::Host(host) = self.routes.at(packet.hop() + 1) else { unreachable!("a packet is for a host") };
        let Hop::Link(link) = self.routes.planned(packet.hop()) else { unreachable!("a packet is on a link") };
        let state = self.ahead_mut();
        let inbox = state.plan.inbox(host, link);
        reserve(&mut state.inboxes[inbox as usize].queue, 1);
        state.inboxes[inbox as usize].queue.push_back((at, packet));
        state.activate(state.of_inbox[inbox as usize]);
    }
}
