//! Links in horizons: packets pass those of one input as they are sent, and wait where several inputs meet.

use super::arrival::Arrival;
use super::plan::{Next, Place, NONE};
use super::sent::{Burst, Departures};
use super::state::{count_event, Horizons, PLANNED};
use crate::network::{Network, SendError};
use crate::routes::{Hop, Routed, Train};
use link::{prefetch, prefetch_behind, Link, Packet, PrecomputedLink};
use units::growth::{fit_list, reserve};
use units::Time;

/// Packets between one that is handed on and that whose inbox is fetched meanwhile.
const HANDED_ON_SOON: usize = 24;
/// Packets that pass a link of one process in one piece: more would be kept for no gain. Tests' bursts are short.
const PIECE: usize = if cfg!(test) { 3 } else { 2048 };
/// Inboxes that stay in the cache.
const NEAR_INBOXES: usize = 128;

impl<P: Packet + Routed> Network<P> {
    /// A host sends `count` packets from `first` on into `link`.
    #[inline]
    pub(crate) fn send_ahead(&mut self, link: u32, first: P, count: u32) {
        let at = self.now.0;
        let state = self.ahead_mut();
        state.sent.bursts.push(Burst { at, link, cause: state.cause, nth: state.nth, count, first });
    }

    /// The first hop of the selected path of the route that starts at `hop`.
    #[inline]
    pub fn first_hop(&self, hop: u32) -> u32 {
        match self.routes.at(hop) {
            Hop::Redirect(position) => position,
            _ => hop,
        }
    }

    /// Takes what a host sends over `hop`, the first of a route, while it handles packets in a row
    /// ([`crate::Hosts::handle_packets`]).
    ///
    /// # Panics
    /// When `hop` is a host, or that of a path that is not selected ([`Network::first_hop`]).
    #[inline]
    pub fn departures(&mut self, hop: u32) -> Departures<'_, P> {
        let Hop::Link(link) = self.routes.at(hop) else { unreachable!("a route begins with a link") };
        let state = self.ahead_mut();
        Departures { link, cause: state.cause, nth: state.nth, bursts: &mut state.sent.bursts }
    }
}

impl<P: Packet + Routed + Train> Network<P> {
    /// Passes on what the process whose turn it was has sent.
    pub(super) fn pass_sent(&mut self) {
        while let Some(&Burst { link, .. }) = self.ahead().sent.bursts.first() {
            let state = self.ahead_mut();
            let mut bursts = std::mem::take(&mut state.sent.bursts);
            let mut tokens = std::mem::take(&mut state.sent.tokens);
            fit_list(&mut bursts);
            let is_merged = state.plan.places[link as usize] == Place::Merged;
            let mut others = vec![];
            for burst in bursts.drain(..) {
                // A process nearly always sends into one link.
                if burst.link != link {
                    others.push(burst);
                } else if is_merged {
                    burst.arrive(&mut self.ahead_mut().arrivals[link as usize]);
                } else {
                    burst.expand(&mut tokens);
                    if tokens.len() >= PIECE {
                        self.carry_all(link, &mut tokens);
                    }
                }
            }
            if !others.is_empty() {
                bursts = others;
            }
            self.carry_all(link, &mut tokens);
            let sent = &mut self.ahead_mut().sent;
            (sent.bursts, sent.tokens) = (bursts, tokens);
        }
    }

    /// `tokens` come to `link` at their times: over it and those fused with it, to a host or a merged link.
    pub(super) fn carry_all(&mut self, link: u32, tokens: &mut Vec<(u64, P)>) {
        if !tokens.is_empty() {
            self.admit_sent(link, tokens);
            self.hand_on_all(link, tokens);
        }
    }

    /// `tokens` come to `link`. A loss counts from when the packet was sent, before the horizon.
    fn admit_sent(&mut self, link: u32, tokens: &mut Vec<(u64, P)>) {
        let Network { links, horizons, .. } = self;
        let state = horizons.as_mut().expect(PLANNED);
        let lost_at = state.reached.saturating_sub(1);
        precomputed(&mut links[link as usize]).admit_all(state.quiet, tokens, |_, packet, reason| {
            state.drops.push((lost_at, link, packet, reason));
        });
    }

    /// `tokens` are at the end of `link` at their times: on over links fused with it, to a host or a merged link.
    fn hand_on_all(&mut self, mut link: u32, tokens: &mut Vec<(u64, P)>) {
        let end = self.horizon.0;
        let mut steps = 0;
        loop {
            let Network { horizons, early, .. } = self;
            let state = horizons.as_mut().expect(PLANNED);
            let Some(&(last, _)) = tokens.last() else { return };
            match state.plan.nexts[link as usize] {
                Next::Inbox(inbox) => {
                    let count = tokens.len();
                    let queue = &mut state.inboxes[inbox as usize].queue;
                    reserve(queue, count);
                    queue.extend(tokens.drain(..).map(|(at, packet)| (at, after(packet, steps))));
                    state.note_ties(link, inbox, count);
                    state.activate(state.of_inbox[inbox as usize]);
                    return;
                }
                Next::Link(next) if state.plan.places[next as usize] == Place::Merged => {
                    let order = (*early + link, 0);
                    let arrivals = &mut state.arrivals[next as usize];
                    let arrival = |(at, packet)| Arrival::delivered(at, order, after(packet, steps));
                    arrivals.push_run(tokens.drain(..).map(arrival));
                    return;
                }
                Next::Link(next) if last <= end => {
                    steps += 1;
                    link = next;
                    self.admit_sent(link, tokens);
                }
                Next::Link(_) | Next::Mixed => {
                    for (at, packet) in tokens.drain(..) {
                        if let Err(refused) = self.hand_on(link, at, after(packet, steps)) {
                            let state = self.ahead_mut();
                            let at = state.reached.saturating_sub(1);
                            state.drops.push((at, refused.link, refused.packet, refused.reason));
                        }
                    }
                    return;
                }
            }
        }
    }

    /// Packets on their way to the last link before `inbox` pass it.
    #[inline]
    pub(super) fn pass_last(&mut self, of_inbox: u32) {
        let Network { links, horizons, .. } = self;
        let state = horizons.as_mut().expect(PLANNED);
        let inbox = &mut state.inboxes[of_inbox as usize];
        if inbox.before == 0 {
            return;
        }
        let (link, count) = (state.plan.last_links[of_inbox as usize], inbox.before);
        let last = precomputed(&mut links[link as usize]);
        for packets in inbox.take_before() {
            last.admit_each(state.quiet, packets);
        }
        state.note_ties(link, of_inbox, count);
    }

    /// The same for all inboxes, before anybody looks at links.
    pub(super) fn pass_all_last(&mut self) {
        for index in 0..self.ahead().active.len() {
            let process = self.ahead().active[index];
            self.pass_all_of(process);
        }
    }

    /// Passes on all that comes to merged links up to `horizon` and as far ahead of it as everything is known, but not
    /// beyond `ahead`.
    pub(super) fn pass_merged(&mut self, horizon: u64, ahead: u64) {
        if self.is_dissolved() {
            // Nobody meets any more: without arrivals of the others time stands still.
            self.stopped = true;
            return;
        }
        self.exchange_arrivals();
        for index in 0..self.ahead().plan.merged.len() {
            let (link, least) = self.ahead().plan.merged[index];
            let bound = horizon.saturating_add(least).min(ahead);
            if self.ahead().plan.is_late[link as usize] {
                let known = bound.saturating_add(self.ahead().plan.delays[link as usize]).min(ahead);
                self.pass_late(link, horizon, (bound, 0), known);
            } else {
                self.pass(link, horizon, (bound, 0));
            }
        }
        self.exchange_deliveries();
        let state = self.ahead_mut();
        let from_process = horizon.saturating_add(state.plan.lookahead);
        state.ready = from_process.min(ahead.saturating_add(state.plan.from_merged)).max(state.ready);
    }

    /// Passes on what comes to `link` before `bound`, a key of [`Arrival`].
    pub(super) fn pass(&mut self, link: u32, horizon: u64, bound: (u64, u64)) {
        let Network { links, routes, horizons, .. } = self;
        let state = horizons.as_mut().expect(PLANNED);
        let arrivals = &mut state.arrivals[link as usize];
        arrivals.sort(&mut state.buckets);
        let count = arrivals.list.partition_point(|arrival| arrival.key() < bound);
        if count == 0 {
            return;
        }
        let mut tokens = std::mem::take(&mut state.sent.tokens);
        let mut events = 0;
        let is_selected = state.plan.is_selected[link as usize];
        tokens.extend(arrivals.list.drain(..count).map(|arrival| {
            let Arrival { at, mut packet, .. } = arrival;
            if arrival.is_from_link() {
                packet.advance();
                if is_selected {
                    packet = routes.redirected(packet);
                }
                count_event(&mut events, &mut state.later_events, at, horizon);
            }
            (at, packet)
        }));
        self.events += events;
        if state.plan.is_careful[link as usize] {
            for (at, packet) in tokens.drain(..) {
                if let Err(refused) = self.carry(link, at, packet) {
                    self.ahead_mut().drops.push((at, refused.link, refused.packet, refused.reason));
                }
            }
        } else {
            precomputed(&mut links[link as usize]).admit_all(state.quiet, &mut tokens, |at, packet, reason| {
                state.drops.push((at, link, packet, reason));
            });
            if state.plan.nexts[link as usize] != Next::Mixed && state.part.is_none() {
                // All go to one link or host.
                self.hand_on_all(link, &mut tokens);
            }
            let is_shared = self.ahead().part.is_some();
            let mut index = 0;
            loop {
                if !is_shared {
                    index = self.leave_all_to_last(&tokens, index);
                }
                let Some(&(at, packet)) = tokens.get(index) else { break };
                index += 1;
                if !(is_shared && self.keep(at, packet)) && self.hand_on(link, at, packet).is_err() {
                    unreachable!("links behind link {link} drop nothing");
                }
            }
            tokens.clear();
        }
        self.ahead_mut().sent.tokens = tokens;
    }

    /// `packet` comes to `link` at `at`: over it and those fused with it, to a host or a merged link.
    fn carry(&mut self, link: u32, at: u64, packet: P) -> Result<(), SendError<P>> {
        let quiet = self.ahead().quiet;
        match precomputed(&mut self.links[link as usize]).admit(Time(quiet), Time(at), &packet) {
            Ok(at) => self.hand_on(link, at.0, packet),
            Err(reason) => Err(SendError { packet, link, reason }),
        }
    }

    /// Leaves those of `tokens` from `index` on to the turns of their hosts whose next link is a last one; returns the
    /// place of the first of another kind.
    fn leave_all_to_last(&mut self, tokens: &[(u64, P)], index: usize) -> usize {
        let end = self.horizon.0;
        let state = self.ahead_mut();
        let are_far = state.inboxes.len() > NEAR_INBOXES;
        let mut others = (index..tokens.len()).filter(|&index| {
            if are_far {
                state.prefetch_soon(tokens, index);
            }
            let (at, packet) = tokens[index];
            !state.leave_to_last(end, at, packet)
        });
        others.next().unwrap_or(tokens.len())
    }

    /// `packet` is at the end of `link` at `at`.
    #[inline]
    pub(super) fn hand_on(&mut self, mut link: u32, mut at: u64, mut packet: P) -> Result<(), SendError<P>> {
        let end = self.horizon.0;
        let Network { links, routes, horizons, early, .. } = self;
        let state = horizons.as_mut().expect(PLANNED);
        loop {
            match routes.next(packet.hop() + 1) {
                Hop::Host(host) => {
                    if state.keep_for_other(at, packet) {
                        return Ok(());
                    }
                    let inbox = state.plan.inbox(host, link);
                    reserve(&mut state.inboxes[inbox as usize].queue, 1);
                    state.inboxes[inbox as usize].queue.push_back((at, packet));
                    state.note_tie(link, inbox, at);
                    state.activate(state.of_inbox[inbox as usize]);
                    return Ok(());
                }
                Hop::Link(next) if state.plan.places[next as usize] == Place::Merged => {
                    let order = (*early + link, state.number_of(link, at));
                    state.arrivals[next as usize].push(Arrival::delivered(at, order, packet));
                    return Ok(());
                }
                Hop::Link(_) if at > end => {
                    // The run ends before.
                    precomputed(&mut links[link as usize]).deliver_at(Time(at), packet);
                    return Ok(());
                }
                Hop::Link(next) => {
                    packet.advance();
                    link = next;
                    at = match precomputed(&mut links[link as usize]).admit(Time(state.quiet), Time(at), &packet) {
                        Ok(at) => at.0,
                        Err(reason) => return Err(SendError { packet, link, reason }),
                    };
                }
                Hop::Redirect(_) => unreachable!("a redirect leads to a link or a host"),
            }
        }
    }
}

impl<P: Packet + Routed> Horizons<P> {
    /// Fetches the inboxes to which those of `tokens` go that are soon behind `index`.
    #[inline]
    pub(super) fn prefetch_soon(&self, tokens: &[(u64, P)], index: usize) {
        if let Some((_, soon)) = tokens.get(index + HANDED_ON_SOON) {
            self.prefetch_inbox(soon, false);
        }
        if let Some((_, soon)) = tokens.get(index + HANDED_ON_SOON / 2) {
            self.prefetch_inbox(soon, true);
        }
    }

    /// Fetches the inbox to which `packet` is handed on soon, or, with `next`, its place there.
    #[inline]
    fn prefetch_inbox(&self, packet: &P, next: bool) {
        let inbox = match self.plan.lasts[packet.hop() as usize + 1] {
            NONE => return,
            inbox => inbox,
        };
        let inbox = &self.inboxes[inbox as usize];
        if !next {
            prefetch(inbox, 1);
        } else if let Some(latest) = inbox.queue.back() {
            prefetch_behind(latest, 1);
        }
    }

    /// Leaves `packet`, which comes to its next link at `at`, to the turn of its host, if that link is a last one and
    /// the run does not `end` before.
    #[inline(always)]
    pub(super) fn leave_to_last(&mut self, end: u64, at: u64, mut packet: P) -> bool {
        let inbox = self.plan.lasts[packet.hop() as usize + 1];
        if inbox == NONE || at > end {
            return false;
        }
        packet.advance();
        let of_it = &mut self.inboxes[inbox as usize];
        reserve(&mut of_it.queue, 1);
        of_it.queue.push_back((at, packet));
        of_it.before += 1;
        if of_it.before == 1 {
            self.activate(self.of_inbox[inbox as usize]);
        }
        true
    }
}

/// `packet`, `steps` links further.
#[inline]
fn after<P: Routed>(mut packet: P, steps: u32) -> P {
    for _ in 0..steps {
        packet.advance();
    }
    packet
}

#[inline]
fn precomputed<P>(link: &mut Link<P>) -> &mut PrecomputedLink<P> {
    match link {
        Link::Precomputed(link) => link,
        _ => unreachable!("a plan is for precomputed links"),
    }
}
