//! Turns of logical processes: each handles what comes to it up to a horizon.

use super::state::NOBODY;
use crate::network::{Hosts, Network};
use crate::routes::{Routed, Train};
use link::{prefetch, Link, Packet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Time;

/// Bytes of a process's packets and links that are fetched before its turn.
const PREFETCHED: usize = 320;
/// Turns between one and that for which memory is fetched meanwhile.
const SOON: usize = 3;

impl<P: Packet + Routed + Train> Network<P> {
    /// All processes that have something to do before `horizon`.
    pub(super) fn run_processes<H: Hosts<P>>(&mut self, hosts: &mut H, horizon: u64) {
        let state = self.ahead_mut();
        while let Some((due, process)) = state.wake.peek() {
            if due.0 >= horizon {
                break;
            }
            state.wake.schedule(process, Time::NEVER);
            state.activate(process);
        }
        let mut turns = std::mem::take(&mut state.active);
        // Neighbours in memory have their turns one after the other.
        turns.sort_unstable();
        state.turns = turns.len() as u64;
        for (index, &process) in turns.iter().enumerate() {
            if let Some(&later) = turns.get(index + 2 * SOON) {
                self.prefetch_process(hosts, later, false);
            }
            if let Some(&next) = turns.get(index + SOON) {
                self.prefetch_process(hosts, next, true);
            }
            self.run_process(hosts, process, horizon);
        }
        let state = self.ahead_mut();
        turns.retain(|&number| {
            let mut hosts = state.processes[number as usize].hosts.iter();
            let is_active = hosts.any(|&host| !state.inboxes[host as usize].queue.is_empty());
            state.is_active[number as usize] = is_active;
            is_active
        });
        turns.append(&mut state.active);
        state.active = turns;
    }

    /// Fetches the state of `process`, which has its turn soon, or, with `next`, what it leads to.
    #[inline]
    fn prefetch_process<H: Hosts<P>>(&self, hosts: &H, process: u32, next: bool) {
        let state = self.ahead();
        let (host, first_link) = state.alone[process as usize];
        if host == NOBODY {
            return;
        }
        let inbox = &state.inboxes[host as usize];
        let last = state.plan.last_links[host as usize];
        if next {
            prefetch(inbox.queue.as_slices().0, 2 * PREFETCHED);
            if let Link::Precomputed(link) = &self.links[last as usize] {
                link.prefetch();
            }
        } else {
            prefetch(inbox, PREFETCHED);
            prefetch(&self.links[last as usize], PREFETCHED);
            if let Some(first) = self.links.get(first_link as usize) {
                prefetch(first, PREFETCHED);
            }
            prefetch(&state.processes[process as usize], PREFETCHED);
        }
        hosts.prefetch(host, next);
    }

    /// The turn of `process` up to `horizon`.
    pub(super) fn run_process<H: Hosts<P>>(&mut self, hosts: &mut H, process: u32, horizon: u64) {
        let state = self.ahead_mut();
        state.running = process;
        state.fired = (u64::MAX, 0);
        match *state.processes[process as usize].hosts.as_slice() {
            [host] => self.run_host(hosts, process, host, horizon),
            _ => self.run_hosts(hosts, process, horizon),
        }
        self.pass_sent();
        let state = self.ahead_mut();
        state.running = NOBODY;
        let due = state.processes[process as usize].due;
        state.wake.schedule(process, Time(due));
    }

    /// A process with one host: its packets in a row.
    fn run_host<H: Hosts<P>>(&mut self, hosts: &mut H, process: u32, host: u32, horizon: u64) {
        self.pass_last(host);
        let state = self.ahead_mut();
        // Nothing that the host sends comes to itself.
        let mut inbox = std::mem::take(&mut state.inboxes[host as usize].queue);
        let link = state.plan.last_links[host as usize];
        self.last_hop = link;
        let is_batched = self.is_batched(link);
        loop {
            let state = self.ahead_mut();
            let due = state.processes[process as usize].due;
            let piece = inbox.as_slices().0;
            // At one time packets go before timers.
            let first = piece.first().map_or(u64::MAX, |arrival| arrival.0);
            if first > due || first >= horizon {
                if due >= horizon || due > first {
                    break;
                }
                self.fire_next(hosts, process);
                continue;
            }
            let mut bound = horizon.min(due.saturating_add(1));
            let tie = state.inboxes[host as usize].ties.as_mut().map_or(u64::MAX, |ties| ties.first());
            let count = if first < tie && !is_batched {
                bound = bound.min(tie);
                count_before(piece, bound)
            } else {
                state.nth = state.take_tie(host, first);
                state.is_followed = is_batched && inbox.get(1).is_some_and(|next| next.0 == first);
                1
            };
            let cause = self.early + link;
            self.ahead_mut().cause = cause;
            let handled = hosts.handle_packets(host, &piece[..count], self);
            self.events += handled as u64;
            let state = self.ahead_mut();
            (state.nth, state.is_followed) = (0, false);
            inbox.drain(..handled);
        }
        let left = &mut self.ahead_mut().inboxes[host as usize].queue;
        debug_assert!(left.is_empty(), "a host alone in its process sends to itself");
        *left = inbox;
    }

    /// A process with several hosts: their packets in the order (time, link).
    fn run_hosts<H: Hosts<P>>(&mut self, hosts: &mut H, process: u32, horizon: u64) {
        for index in 0..self.ahead().processes[process as usize].hosts.len() {
            let host = self.ahead().processes[process as usize].hosts[index];
            self.pass_last(host);
        }
        // The first packet of each host; what is sent meanwhile comes behind the horizon.
        let state = self.ahead();
        let mut heads: BinaryHeap<Reverse<(u64, u32, u32, u32)>> = BinaryHeap::new();
        for &host in &state.processes[process as usize].hosts {
            heads.extend(state.head(host, horizon));
        }
        loop {
            let state = self.ahead_mut();
            let due = state.processes[process as usize].due;
            let first = heads.peek().map_or(u64::MAX, |&Reverse((at, ..))| at);
            if due < first {
                if due >= horizon {
                    return;
                }
                self.fire_next(hosts, process);
                continue;
            }
            let Some(Reverse((at, link, nth, host))) = heads.pop() else { return };
            let Some((_, packet)) = state.inboxes[host as usize].queue.pop_front() else { return };
            state.take_tie(host, at);
            heads.extend(state.head(host, horizon));
            state.nth = nth;
            let is_followed = state.inboxes[host as usize].queue.front().is_some_and(|next| next.0 == at);
            let is_followed = is_followed && self.is_batched(link);
            self.ahead_mut().is_followed = is_followed;
            self.events += 1;
            self.arrive(hosts, (at, link), host, packet);
            let state = self.ahead_mut();
            (state.nth, state.is_followed) = (0, false);
        }
    }

    fn is_batched(&self, link: u32) -> bool {
        matches!(self.links.get(link as usize), Some(Link::Batched(_)))
    }

    #[inline]
    fn arrive<H: Hosts<P>>(&mut self, hosts: &mut H, of: (u64, u32), host: u32, mut packet: P) {
        let (at, link) = of;
        self.now = Time(at);
        let cause = self.early + link;
        self.ahead_mut().cause = cause;
        self.last_hop = link;
        packet.advance();
        hosts.handle_packet(Time(at), host, packet, self);
    }

    fn fire_next<H: Hosts<P>>(&mut self, hosts: &mut H, process: u32) {
        let state = self.ahead_mut();
        let of_it = &mut state.processes[process as usize];
        let (due, timer) = (of_it.due, of_it.timer);
        state.due[timer as usize] = u64::MAX;
        of_it.find_next(&state.due);
        let own = self.timer_source(timer);
        let mut source = own;
        let state = self.ahead_mut();
        // An event that another one of the same ns led to goes just behind that one, whatever its source.
        source = source.max(state.floor);
        if state.fired.0 == due {
            source = source.max(state.fired.1);
        }
        state.nth = match (state.fired == (due, source), own == source) {
            (true, _) => state.fired_nth + 1,
            (false, is_first) => u32::from(!is_first),
        };
        (state.fired, state.fired_nth, state.cause) = ((due, source), state.nth, source);
        self.now = Time(due);
        self.events += 1;
        hosts.handle_timer(Time(due), timer, self);
        self.ahead_mut().nth = 0;
    }
}

/// Packets of `piece` that come before `bound`; looks at those first that come first.
fn count_before<P>(piece: &[(u64, P)], bound: u64) -> usize {
    let mut reach = 1;
    while piece.get(reach).is_some_and(|arrival| arrival.0 < bound) {
        reach *= 2;
    }
    let (from, to) = (reach / 2, reach.min(piece.len()));
    from + piece[from..to].partition_point(|arrival| arrival.0 < bound)
}

impl<P> Network<P> {
    /// The next packet of [`Hosts::handle_packets`] comes at `at`.
    #[inline(always)]
    pub fn begin_arrival(&mut self, at: Time) {
        self.now = at;
    }

    /// Returns true if something has to happen before `next`, the packet to come.
    #[inline(always)]
    pub fn is_interrupted(&self, next: Option<&(u64, P)>) -> bool {
        let state = self.ahead();
        next.is_some_and(|next| state.processes[state.running as usize].due < next.0)
    }
}
