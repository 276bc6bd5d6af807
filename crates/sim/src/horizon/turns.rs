//! Turns of logical processes: each handles what comes to it up to a horizon.

use super::state::{Horizons, NOBODY};
use crate::network::{Hosts, Network};
use crate::routes::{Routed, Train};
use link::{prefetch, Link, Packet};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::growth::fit;
use units::Time;

/// Bytes of a process's packets and links that are fetched before its turn.
const PREFETCHED: usize = 320;
/// Behind all first packets of inboxes ([`Horizons::head`]).
const NO_HEAD: (u64, u32, u32, u32) = (u64::MAX, u32::MAX, u32::MAX, u32::MAX);
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
            let mut inboxes = state.processes[number as usize].inboxes.iter();
            let is_active = inboxes.any(|&inbox| !state.inboxes[inbox as usize].queue.is_empty());
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
                link.prefetch_sample();
            }
            if let Some(Link::Precomputed(link)) = self.links.get(first_link as usize) {
                link.prefetch_sample();
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
        state.go_on(process);
        let bound = state.samples.bound.min(horizon);
        let mut sample = state.processes[process as usize].next_sample;
        while sample < bound {
            self.run_up_to(hosts, process, sample + 1);
            sample = self.note_sample(hosts, process, sample);
        }
        self.run_up_to(hosts, process, horizon);
        self.end_turn(process);
    }

    #[inline]
    fn run_up_to<H: Hosts<P>>(&mut self, hosts: &mut H, process: u32, horizon: u64) {
        match *self.ahead().processes[process as usize].inboxes.as_slice() {
            [host] => self.run_host(hosts, process, host, horizon),
            [one, other] => self.run_two_inboxes(hosts, process, [one, other], horizon),
            _ => self.run_inboxes(hosts, process, horizon),
        }
    }

    /// A process with one inbox, that of its only host: its packets in a row.
    fn run_host<H: Hosts<P>>(&mut self, hosts: &mut H, process: u32, host: u32, horizon: u64) {
        self.pass_last(host);
        let state = self.ahead_mut();
        // Nothing that the host sends comes to itself.
        let mut inbox = std::mem::take(&mut state.inboxes[host as usize].queue);
        if !inbox.is_empty() {
            fit(&mut inbox);
        }
        let link = state.plan.last_links[host as usize];
        self.last_hop = link;
        let is_batched = self.is_batched(link);
        loop {
            let state = self.ahead_mut();
            let due = state.processes[process as usize].due;
            // At one time packets go before timers.
            let first = inbox.front().map_or(u64::MAX, |arrival| arrival.0);
            if first > due || first >= horizon {
                if due >= horizon || due > first {
                    break;
                }
                self.fire_next(hosts, process, first.min(horizon));
                if self.has_paused() {
                    break;
                }
                continue;
            }
            let count = state.count_first(host, &inbox, horizon.min(due.saturating_add(1)), is_batched);
            let cause = self.early + link;
            self.ahead_mut().cause = cause;
            let handled = hosts.handle_packets(host, &inbox.as_slices().0[..count], self);
            self.events += handled as u64;
            let state = self.ahead_mut();
            (state.nth, state.is_followed) = (0, false);
            inbox.drain(..handled);
            if self.has_paused() {
                break;
            }
        }
        let left = &mut self.ahead_mut().inboxes[host as usize].queue;
        debug_assert!(left.is_empty(), "a host alone in its process sends to itself");
        *left = inbox;
    }

    /// As [`Network::run_inboxes`] for the two ends of a flow that share state: a heap of two takes longer.
    fn run_two_inboxes<H: Hosts<P>>(&mut self, hosts: &mut H, process: u32, inboxes: [u32; 2], horizon: u64) {
        self.pass_all_of(process);
        let head = |state: &Horizons<P>, inbox| state.head(inbox, horizon).map_or(NO_HEAD, |Reverse(head)| head);
        let mut heads = inboxes.map(|inbox| head(self.ahead(), inbox));
        loop {
            let due = self.ahead().processes[process as usize].due;
            let which = usize::from(heads[1] < heads[0]);
            let ((first, link, _, inbox), (next, of, ..)) = (heads[which], heads[1 - which]);
            if due < first {
                if due >= horizon {
                    return;
                }
                self.fire_next(hosts, process, first.min(horizon));
            } else if first == NO_HEAD.0 {
                return;
            } else {
                // Up to the next packet of the other one; at one time the lower link goes first.
                let next = next.saturating_add(u64::from(link < of));
                let bound = horizon.min(due.saturating_add(1)).min(next);
                self.handle_first(hosts, link, inbox, bound);
                heads[which] = head(self.ahead(), inbox);
            }
            if self.has_paused() {
                return;
            }
        }
    }

    /// A process with several inboxes: their packets in the order (time, link).
    fn run_inboxes<H: Hosts<P>>(&mut self, hosts: &mut H, process: u32, horizon: u64) {
        self.pass_all_of(process);
        // The first packet of each; what is sent meanwhile comes behind the horizon.
        let state = self.ahead();
        let mut heads: BinaryHeap<Reverse<(u64, u32, u32, u32)>> = BinaryHeap::new();
        for &inbox in &state.processes[process as usize].inboxes {
            heads.extend(state.head(inbox, horizon));
        }
        loop {
            let due = self.ahead().processes[process as usize].due;
            let first = heads.peek().map_or(u64::MAX, |&Reverse((at, ..))| at);
            if due < first {
                if due >= horizon {
                    return;
                }
                self.fire_next(hosts, process, first.min(horizon));
                if self.has_paused() {
                    return;
                }
                continue;
            }
            let Some(Reverse((_, link, _, inbox))) = heads.pop() else { return };
            // Up to the next packet of another inbox; at one time the lower link goes first.
            let next = heads.peek().map_or(u64::MAX, |&Reverse((at, of, ..))| at.saturating_add(u64::from(link < of)));
            let bound = horizon.min(due.saturating_add(1)).min(next);
            self.handle_first(hosts, link, inbox, bound);
            if self.has_paused() {
                return;
            }
            heads.extend(self.ahead().head(inbox, horizon));
        }
    }

    fn is_batched(&self, link: u32) -> bool {
        matches!(self.links.get(link as usize), Some(Link::Batched(_)))
    }

    /// The first packets in `inbox`, which come over `link` before `bound`, as many as the host takes at once; at least
    /// one, whatever `bound` is.
    #[inline]
    pub(super) fn handle_first<H: Hosts<P>>(&mut self, hosts: &mut H, link: u32, inbox: u32, bound: u64) {
        let cause = self.early + link;
        self.last_hop = link;
        let state = self.ahead_mut();
        state.cause = cause;
        let host = state.plan.host_of(inbox);
        let mut queue = std::mem::take(&mut state.inboxes[inbox as usize].queue);
        let is_batched = self.is_batched(link);
        let count = self.ahead_mut().count_first(inbox, &queue, bound, is_batched);
        let handled = hosts.handle_packets(host, &queue.as_slices().0[..count], self);
        self.events += handled as u64;
        queue.drain(..handled);
        let state = self.ahead_mut();
        (state.nth, state.is_followed) = (0, false);
        state.inboxes[inbox as usize].queue = queue;
    }

    /// Timers of processes that are due at `time`, which is now, one by one in their order.
    pub(super) fn run_woken<H: Hosts<P>>(&mut self, hosts: &mut H, time: Time) {
        let mut woken: Vec<u32> = vec![];
        while !self.stopped {
            let state = self.ahead_mut();
            while let Some((due, process)) = state.wake.peek().filter(|&(due, _)| due <= time) {
                debug_assert_eq!(due, time, "everything before has happened");
                state.wake.schedule(process, Time::NEVER);
                woken.push(process);
            }
            let timer = |process: &u32| state.processes[*process as usize].timer;
            let Some(first) = (0..woken.len()).min_by_key(|&index| timer(&woken[index])) else { break };
            let process = woken.swap_remove(first);
            state.running = process;
            state.fired = (u64::MAX, 0);
            self.fire_next(hosts, process, 0);
            self.end_turn(process);
            self.stopped |= self.work == 0 && self.ahead().work.watches;
        }
        for process in woken {
            let state = self.ahead_mut();
            let due = state.processes[process as usize].due;
            state.wake.schedule(process, Time(due));
        }
    }

    /// Source that counts for the next timer of `process`: an event that another one of the same ns led to goes just
    /// behind that one, whatever its own.
    #[inline]
    pub(super) fn source_of_next(&self, process: u32) -> u32 {
        let state = self.ahead();
        let of_it = &state.processes[process as usize];
        let source = self.timer_source(of_it.timer).max(state.floor);
        if state.fired.0 == of_it.due {
            source.max(state.fired.1)
        } else {
            source
        }
    }

    /// Fires the next timer of `process`, and those that come behind it before `until` and anything else, if the host
    /// takes them in a row ([`Network::timers_until`]).
    pub(super) fn fire_next<H: Hosts<P>>(&mut self, hosts: &mut H, process: u32, until: u64) {
        let source = self.source_of_next(process);
        let own = self.timer_source(self.ahead().processes[process as usize].timer);
        let state = self.ahead_mut();
        let of_it = &mut state.processes[process as usize];
        let (due, timer) = (of_it.due, of_it.timer);
        state.due[timer as usize] = u64::MAX;
        of_it.find_next(&state.due);
        let next = of_it.due;
        state.nth = match (state.fired == (due, source), own == source) {
            (true, _) => state.fired_nth + 1,
            (false, is_first) => u32::from(!is_first),
        };
        (state.fired, state.fired_nth, state.cause) = ((due, source), state.nth, source);
        state.timers_until = if state.nth == 0 { until.min(next) } else { 0 };
        self.now = Time(due);
        self.events += 1;
        hosts.handle_timer(Time(due), timer, self);
        let state = self.ahead_mut();
        (state.nth, state.timers_until) = (0, 0);
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

impl<P> Horizons<P> {
    /// Number of packets in `queue`, that of `inbox`, that come before `bound` and may be handled in a row; at least
    /// one. Notes which of its link's packets at its time that is, where several come at one time, and whether another
    /// one of its batch comes behind it.
    #[inline]
    fn count_first(&mut self, inbox: u32, queue: &VecDeque<(u64, P)>, bound: u64, is_batched: bool) -> usize {
        let (first, of_it) = (queue[0].0, &mut self.inboxes[inbox as usize]);
        let tie = of_it.ties.as_mut().map_or(u64::MAX, |ties| ties.first());
        if first < tie && !is_batched {
            count_before(queue.as_slices().0, bound.min(tie)).max(1)
        } else {
            self.nth = self.take_tie(inbox, first);
            self.is_followed = is_batched && queue.get(1).is_some_and(|next| next.0 == first);
            1
        }
    }
}

impl<P> Network<P> {
    /// The next packet of [`Hosts::handle_packets`] comes at `at`.
    #[inline(always)]
    pub fn begin_arrival(&mut self, at: Time) {
        self.now = at;
    }

    /// Time up to which nothing happens but what the timer leads to that has just fired: a host may handle its next
    /// firings at once, and tells of them by [`Network::note_timers`]. None: it may not.
    #[inline]
    pub fn timers_until(&self) -> Option<Time> {
        if !self.is_ahead {
            return None;
        }
        let until = Time(self.ahead().timers_until);
        (until > self.now).then_some(until)
    }

    /// The timer that fired last did so `more` times again, each at a later time, and last at `at`.
    #[inline]
    pub fn note_timers(&mut self, at: Time, more: u64) {
        self.now = at;
        self.events += more;
        if more > 0 {
            let state = self.ahead_mut();
            (state.fired.0, state.fired_nth) = (at.0, 0);
        }
    }

    /// A number by which events of one time are in order; None where events happen in their order.
    pub fn cause(&self) -> Option<u64> {
        self.is_ahead.then(|| u64::from(self.ahead().cause) << 32 | u64::from(self.ahead().nth))
    }

    /// Returns true if something has to happen before `next`, the packet to come.
    #[inline(always)]
    pub fn is_interrupted(&self, next: Option<&(u64, P)>) -> bool {
        let state = self.ahead();
        next.is_some_and(|next| state.processes[state.running as usize].due < next.0) || state.work.has_paused
    }
}
