//! Links that decide at the time of a packet, or may change: each is a loop over its own events.
//!
//! All that comes to such a link before a bound is known, and so all that it does before it. Packets that have left its
//! queue by then are handed over ahead of their delivery, so that the link's delay is a part of the lookahead; copies
//! are, and the link itself stays as single events would leave it. No such link gets past a timer of all, which may
//! look at it or change it: then nothing is on its way ahead of time.

use super::arrival::Arrival;
use super::plan::{Next, Place};
use super::state::{count_event, Horizons, PLANNED};
use crate::network::Network;
use crate::routes::{Hop, Routed, Train};
use link::{Admission, Link, LinkEvent, Packet};
use units::growth::reserve;
use units::Time;

impl<P: Packet + Routed + Train> Network<P> {
    /// All that happens at `link` before `bound`, a time and a source, and what it delivers before `known`.
    pub(super) fn pass_late(&mut self, link: u32, horizon: u64, bound: (u64, u32), known: u64) {
        let Network { links, routes, pacers, horizons, early, events, .. } = self;
        let state = horizons.as_mut().expect(PLANNED);
        let (late, source) = (&mut state.late[link as usize], *early + link);
        let arrivals = &mut state.arrivals[link as usize];
        arrivals.sort(&mut state.buckets);
        let count = arrivals.list.partition_point(|arrival| (arrival.at, arrival.cause()) < bound);
        let mut coming = arrivals.list.drain(..count).peekable();
        let (drops, element) = (&mut state.drops, &mut links[link as usize]);
        let mut tokens = std::mem::take(&mut state.sent.tokens);
        let mut happen = |at: u64| count_event(events, &mut state.later_events, at, horizon);
        // A host's packets of one event come together, before anything that they lead to.
        let mut burst = (0, 0);
        loop {
            let due = late.due;
            let is_next = |next: &Arrival<P>| next.key() == burst || late.is_before_event(next, source);
            if let Some(arrival) = coming.next_if(is_next) {
                burst = if arrival.is_from_link() { (0, 0) } else { arrival.key() };
                let (at, from_link, mut packet) = (arrival.at, arrival.is_from_link(), arrival.packet);
                if from_link {
                    packet.advance();
                    packet = routes.redirected(packet);
                    happen(at);
                }
                match element.handle_packet(Time(at), packet, pacers) {
                    Admission::Queued { next_event: Some(time) } => late.due = time.0,
                    Admission::Queued { next_event: None } => {}
                    Admission::Dropped(packet, reason) => drops.push((at, link, packet, reason)),
                }
                if from_link && element.has_dropped() {
                    take_dropped(element, |packet, reason| drops.push((at, link, packet, reason)));
                }
            } else if (due, source) < bound {
                let LinkEvent { delivered, next_event, has_dropped } = element.handle_event(Time(due), pacers);
                late.due = next_event.0;
                if has_dropped {
                    take_dropped(element, |packet, reason| drops.push((due, link, packet, reason)));
                }
                if delivered.is_some() {
                    late.delivered = (due, if due == late.delivered.0 { late.delivered.1 + 1 } else { 1 });
                }
                match delivered {
                    None => happen(due),
                    Some(_) if late.foreseen > 0 => late.foreseen -= 1,
                    Some(packet) => tokens.push((due, packet)),
                }
            } else {
                break;
            }
        }
        drop(coming);
        if late.due < known {
            let delivered = tokens.len();
            element.foresee(known, |at, packet| tokens.push((at, *packet)));
            late.foreseen += (tokens.len() - delivered) as u64;
        }
        self.hand_over(link, horizon, &mut tokens);
        tokens.clear();
        self.ahead_mut().sent.tokens = tokens;
    }

    /// Late links get the packets that early timers have sent at `time`, before the next of these timers fires.
    pub(super) fn pass_early(&mut self, time: u64) {
        for index in 0..self.ahead().plan.merged.len() {
            let (link, _) = self.ahead().plan.merged[index];
            if self.ahead().plan.is_late[link as usize] {
                self.pass_late(link, time, (time, self.early), time);
            }
        }
    }

    /// `link` delivers `tokens` at their times.
    fn hand_over(&mut self, link: u32, horizon: u64, tokens: &mut Vec<(u64, P)>) {
        if tokens.is_empty() {
            return;
        }
        let state = self.ahead_mut();
        match state.plan.nexts[link as usize] {
            _ if state.plan.counts_ties[link as usize] => {
                for (at, packet) in tokens.drain(..) {
                    self.hand_to(link, horizon, (at, packet));
                }
            }
            Next::Inbox(inbox) => {
                let queue = &mut state.inboxes[inbox as usize].queue;
                reserve(queue, tokens.len());
                tokens.drain(..).for_each(|token| queue.push_back(token));
                state.activate(state.of_inbox[inbox as usize]);
            }
            Next::Link(next) if state.plan.places[next as usize] == Place::Merged => {
                let cause = self.early + link;
                let arrivals = &mut self.ahead_mut().arrivals[next as usize];
                arrivals.push_run(tokens.drain(..).map(|(at, packet)| Arrival::delivered(at, (cause, 0), packet)));
            }
            Next::Link(next) => {
                for (at, packet) in tokens.iter_mut() {
                    packet.advance();
                    self.happen_at(*at, horizon);
                }
                self.carry_all(next, tokens);
            }
            Next::Mixed => unreachable!("a link to several places counts ties"),
        }
    }

    /// `link`, which leads to several places or back to itself, delivers `packet` at `at`.
    fn hand_to(&mut self, link: u32, horizon: u64, (at, packet): (u64, P)) {
        match self.routes.next(packet.hop() + 1) {
            Hop::Link(next) if self.ahead().plan.places[next as usize] != Place::Merged => self.happen_at(at, horizon),
            _ => {}
        }
        if let Err(refused) = self.hand_on(link, at, packet) {
            self.ahead_mut().drops.push((at, refused.link, refused.packet, refused.reason));
        }
    }

    /// Time of the next event of a late link; None: nothing is inside of any.
    pub(super) fn late_due(&self) -> Option<u64> {
        let state = self.ahead();
        if !state.plan.has_late {
            return None;
        }
        let due_of = |&(link, _): &(u32, u64)| {
            let due = state.late[link as usize].due;
            let is_used = due != u64::MAX || self.links[link as usize].packets_inside() > 0;
            (state.plan.is_late[link as usize] && is_used).then_some(due)
        };
        state.plan.merged.iter().filter_map(due_of).min()
    }

    /// An event happens at `at`, which the record counts then.
    fn happen_at(&mut self, at: u64, horizon: u64) {
        let Network { events, horizons, .. } = self;
        count_event(events, &mut horizons.as_mut().expect(PLANNED).later_events, at, horizon);
    }
}

#[cold]
fn take_dropped<P: Packet>(link: &mut Link<P>, mut report: impl FnMut(P, link::DropReason)) {
    while let Some((packet, reason)) = link.poll_dropped() {
        report(packet, reason);
    }
}

impl<P> Horizons<P> {
    /// `link` hands over a packet at `at`: the packet's number among the link's at that time, where that matters.
    #[inline]
    pub(super) fn number_of(&mut self, link: u32, at: u64) -> u32 {
        if !self.plan.counts_ties[link as usize] {
            return 0;
        }
        let latest = &mut self.late[link as usize].latest;
        *latest = (at, if at == latest.0 { latest.1 + 1 } else { 0 });
        latest.1
    }

    /// The latest `count` packets of `inbox` have come over `link`.
    #[inline]
    pub(super) fn note_ties(&mut self, link: u32, inbox: u32, count: usize) {
        if self.plan.counts_ties[link as usize] {
            let first = self.inboxes[inbox as usize].queue.len() - count;
            for index in first..first + count {
                self.note_tie(link, inbox, self.inboxes[inbox as usize].queue[index].0);
            }
        }
    }

    /// As [`Horizons::number_of`], of a packet that goes to `inbox`.
    #[inline]
    pub(super) fn note_tie(&mut self, link: u32, inbox: u32, at: u64) {
        if self.plan.counts_ties[link as usize] {
            let nth = self.number_of(link, at);
            self.inboxes[inbox as usize].ties.get_or_insert_with(Box::default).note(at, nth);
        }
    }
}

impl<P> Network<P> {
    /// `link` has changed: its next event is due at `due`.
    pub(crate) fn set_due_ahead(&mut self, link: u32, due: Time) {
        self.ahead_mut().late[link as usize].due = due.0;
    }
}
