//! Links joined by routes, timers, and the loop that runs them.

use crate::events::EventQueue;
use crate::horizon::state::Horizons;
use crate::routes::{Hop, RouteId, Routed, Routes, Train};
use link::{Admission, DropReason, HoldBuffer, Link, LinkEvent, Pacers, Packet, PolicerConfig, VariableLink};
use std::num::NonZeroU32;
use units::{Span, Time};

/// The caller's side: handles arrivals, losses and timers.
pub trait Hosts<P> {
    /// `packet` reached the host at the end of its route.
    fn handle_packet(&mut self, now: Time, host: u32, packet: P, net: &mut Network<P>);
    /// The same for `packets` in a row, with their times, as many as the host takes; returns how many, at least one of
    /// some. [`Network::begin_arrival`] goes before each, and [`Network::is_interrupted`] tells after each if another
    /// call is to come first. Used by [`Network::run_horizons`] alone.
    fn handle_packets(&mut self, host: u32, packets: &[(u64, P)], net: &mut Network<P>) -> usize
    where
        P: Copy + Routed,
    {
        self.handle_each(host, packets, net)
    }
    /// [`Hosts::handle_packets`] as [`Hosts::handle_packet`] for each.
    fn handle_each(&mut self, host: u32, packets: &[(u64, P)], net: &mut Network<P>) -> usize
    where
        P: Copy + Routed,
    {
        let mut count = 0;
        for &(at, mut packet) in packets {
            net.begin_arrival(Time(at));
            packet.advance();
            self.handle_packet(Time(at), host, packet, net);
            count += 1;
            if net.is_interrupted(packets.get(count)) {
                break;
            }
        }
        count
    }
    /// `host` has its turn soon: a call of [`link::prefetch`] for its state is of use, or, with `next`, for what that
    /// state leads to.
    #[inline]
    fn prefetch(&self, host: u32, next: bool) {
        let _ = (host, next);
    }
    /// Everything has happened to `host` that a sample at `at` sees: the `nth` of those that [`Hosts::write_samples`]
    /// writes next. Used for timers of [`TimerScope::HostSamples`](crate::TimerScope::HostSamples) alone.
    fn note_sample(&mut self, host: u32, at: Time, nth: usize) {
        let _ = (host, at, nth);
    }
    /// All hosts have noted `count` samples, the first of which is at `first`: writes them with those of links, which
    /// are asked in the order of times.
    fn write_samples(&mut self, first: Time, count: usize, net: &mut Network<P>) {
        let _ = (first, count, net);
    }
    /// Timer `timer` is due. It is idle now; set it again where wanted.
    fn handle_timer(&mut self, now: Time, timer: u32, net: &mut Network<P>);
    /// `packet` was lost at `link`. `now` is when it came there where this is known at once, which may be later than
    /// [`Network::now`], though not than the end of the run.
    fn handle_drop(&mut self, now: Time, link: u32, packet: P, reason: DropReason, net: &mut Network<P>);
    /// `packet` has come over `link` to a router, which is to forward it over `next`. Returns false if it is not to be:
    /// the host has it then. Not called between precomputed links, which hand packets on ahead of time.
    #[inline]
    fn handle_transit(&mut self, now: Time, link: u32, next: u32, packet: &mut P, net: &mut Network<P>) -> bool {
        let _ = (now, link, next, packet, net);
        true
    }
}

/// Reason for which a call of [`Network::run`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Everything up to the given time has happened.
    ReachedTime,
    /// The given number of events has happened; more are due before the given time.
    ReachedEvents,
    /// [`Network::stop`] was called.
    Stopped,
}

/// A packet that the first link of its route did not take.
pub struct SendError<P> {
    /// The packet.
    pub packet: P,
    /// The link that refused it.
    pub link: u32,
    /// The reason.
    pub reason: DropReason,
}

/// Links, routes, timers and the time of day.
///
/// Sources of events are numbered: the first `early` timers, then links, then the other timers. That number breaks
/// ties.
pub struct Network<P> {
    pub(crate) links: Vec<Link<P>>,
    pub(crate) routes: Routes,
    /// By link: the only link upstream of it, when both are precomputed.
    upstream: Vec<Option<LinkId>>,
    pub(crate) pacers: Pacers,
    pub(crate) queue: EventQueue,
    /// Timers that go before links at the same time.
    pub(crate) early: u32,
    pub(crate) now: Time,
    pub(crate) events: u64,
    pub(crate) stopped: bool,
    /// Pieces of work with the last of which the run ends; none: it does not so.
    pub(crate) work: u32,
    /// Nothing is computed beyond it: the end of the present call of [`Network::run`].
    pub(crate) horizon: Time,
    /// A link has batches.
    has_batches: bool,
    /// The link that the packet passed last which a host has now.
    pub(crate) last_hop: u32,
    /// Packets are in horizons, not in the queue of events.
    pub(crate) is_ahead: bool,
    pub(crate) horizons: Option<Box<Horizons<P>>>,
}

/// The number of a link, stored as its complement so that `Option<LinkId>` has the same size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LinkId(NonZeroU32);

impl LinkId {
    /// None beyond the largest number of a link, 2^32 - 2.
    #[inline]
    fn new(number: u32) -> Option<LinkId> {
        NonZeroU32::new(!number).map(LinkId)
    }
}

/// A link that was built to stay as it is cannot change; see [`Network::change_link`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixedLink {
    /// The link.
    pub link: u32,
}

impl std::fmt::Display for FixedLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "link {} is fixed: build it as a variable link to change it", self.link)
    }
}

impl std::error::Error for FixedLink {}

impl<P: Packet + Routed> Network<P> {
    /// A network of `links`, whose hold buffers use `pacers`, along `routes` with `timers` timers, the first `early`
    /// of which fire before any packet moves at the same ns (changes of the path are such timers: a rate that changes
    /// at t holds for the packet that arrives at t).
    pub fn new(links: Vec<Link<P>>, pacers: Pacers, routes: Routes, timers: usize, early: usize) -> Network<P> {
        assert!(early <= timers, "early timers are some of all timers");
        let queue = EventQueue::new(links.len() + timers);
        let upstream = upstream(&links, &routes);
        let (early, now) = (early as u32, Time::ZERO);
        let has_batches = links.iter().any(|link| matches!(link, Link::Batched(_)));
        Network {
            links,
            pacers,
            routes,
            upstream,
            queue,
            early,
            now,
            events: 0,
            stopped: false,
            work: 0,
            horizon: now,
            has_batches,
            last_hop: 0,
            is_ahead: false,
            horizons: None,
        }
    }

    /// Returns true while [`Hosts::handle_packet`] has a packet behind which another one of its batch is handed over,
    /// of its flow and at the same time.
    #[inline]
    pub fn is_followed(&self) -> bool {
        let of_link = || self.links.get(self.last_hop as usize).is_some_and(Link::is_followed);
        self.has_batches && if self.is_ahead { self.ahead().is_followed } else { of_link() }
    }

    /// The time of the latest event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Events processed so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// All links, as [`Network::run`] left them.
    pub fn links(&self) -> &[Link<P>] {
        &self.links
    }

    /// All links, for reading what advances with time (queue lengths). Changes go through [`Network::change_link`].
    pub fn links_mut(&mut self) -> &mut [Link<P>] {
        self.settle_all();
        &mut self.links
    }

    /// All links, for [`Link::sample`] alone: as [`Network::links_mut`], without a walk over them.
    pub fn links_to_sample(&mut self) -> &mut [Link<P>] {
        &mut self.links
    }

    /// Tells all links when they are sampled ([`Link::take_samples`]).
    pub fn take_samples(&mut self, first: Time, interval: Span) {
        for link in &mut self.links {
            link.take_samples(first, interval);
        }
    }

    /// Time at which the next event happens; [`Time::NEVER`] when none is pending.
    #[inline]
    pub fn next_event(&mut self) -> Time {
        self.queue.peek().map_or(Time::NEVER, |(time, _)| time)
    }

    /// Adds the route over `links` to `host` while the network runs. Cost: a walk over all routes.
    ///
    /// # Panics
    /// When it makes a second path to a precomputed link that has been handed packets ahead of time: a link to which
    /// new paths may lead is made by [`Link::variable`]. When a number does not exist.
    pub fn add_route(&mut self, links: &[usize], host: u32) -> RouteId {
        assert!(links.iter().all(|&link| link < self.links.len()), "a route leads over links that exist");
        let id = self.routes.add(links, host);
        self.update_upstream();
        id
    }

    fn update_upstream(&mut self) {
        let upstream = upstream(&self.links, &self.routes);
        let unchanged = |(before, after): (&Option<LinkId>, &Option<LinkId>)| before.is_none() || before == after;
        assert!(self.upstream.iter().zip(&upstream).all(unchanged), "a precomputed link gets a second path to it");
        // A link without an upstream link has been handed nothing ahead of time.
        self.upstream = upstream;
    }

    /// From now on packets of `route` go over `links`: each from the router where its path diverges from this one. A
    /// packet past that router, or in its queue for the old path, stays on the old path.
    ///
    /// Cost: a walk over the hops of all paths of `route`; over all routes where `links` are new.
    ///
    /// # Panics
    /// When the path is new ([`Routes::add_path`] before the run adds it) and [`Network::add_route`] would, or horizons
    /// are planned. When the timer of a process calls it in horizons.
    pub fn set_path(&mut self, route: RouteId, links: &[usize]) {
        assert!(links.iter().all(|&link| link < self.links.len()), "a path leads over links that exist");
        let known = self.routes.len();
        let path = self.routes.add_path(route, links);
        if self.routes.len() != known {
            assert!(self.horizons.is_none(), "horizons are planned for the paths that are known before");
            self.update_upstream();
        }
        self.routes.select(route, path);
        if self.is_ahead {
            self.redirect_arrivals();
        }
    }

    /// Ends the run after the current event.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Changes a link through `change` and schedules what follows from it.
    ///
    /// # Errors
    /// When the link is not a [`VariableLink`].
    pub fn change_link(&mut self, link: u32, change: impl FnOnce(&mut VariableLink<P>)) -> Result<(), FixedLink> {
        let changed = &mut self.links[link as usize];
        change(changed.as_variable_mut().ok_or(FixedLink { link })?);
        debug_assert!(
            self.horizons.as_ref().is_none_or(|state| state.allows_delay(link, changed.delay())),
            "horizons were planned for this delay"
        );
        // An event that the change made overdue happens now, not in the past.
        let due = changed.poll_timeout().max(self.now);
        if self.is_ahead {
            self.set_due_ahead(link, due);
        } else {
            self.queue.schedule(self.early + link, due);
        }
        Ok(())
    }

    /// Gives `link`, one of [`Link::live`], another policer, or none.
    ///
    /// # Errors
    /// The link's policer does not change.
    pub fn change_policer(&mut self, link: u32, policer: Option<&PolicerConfig>) -> Result<(), FixedLink> {
        // It decides on arrivals alone, so nothing is due at another time.
        self.links[link as usize].set_policer(policer).then_some(()).ok_or(FixedLink { link })
    }

    /// The hold buffer `link`, with the network's pacers; None when `link` is of another kind.
    pub fn hold_buffer_mut(&mut self, link: usize) -> Option<(&mut HoldBuffer<P>, &mut Pacers)> {
        Some((self.links[link].as_hold_buffer_mut()?, &mut self.pacers))
    }

    /// Sets timer `timer` to `time`, replacing what was set; [`Time::NEVER`] clears it. A time in the past fires at
    /// once.
    #[inline]
    pub fn set_timer(&mut self, timer: u32, time: Time) {
        let time = time.max(self.now);
        if self.is_ahead && self.set_timer_ahead(timer, time) {
            return;
        }
        self.queue.schedule(self.timer_source(timer), time);
    }

    /// Hands `packet` to the hop it stands at, which must be a link.
    #[inline]
    pub fn send(&mut self, mut packet: P) -> Result<(), SendError<P>> {
        match self.next_hop(&mut packet) {
            Hop::Link(link) if self.is_ahead => {
                self.send_ahead(link, packet, 1);
                Ok(())
            }
            Hop::Link(link) => self.forward(link, packet),
            other => unreachable!("a route has at least one link before its end: {other:?}"),
        }
    }

    /// Hands over `packet` and those that follow it, `count` in all; calls `refused` for each that the first links of
    /// its route do not take. By horizons none is refused: those are reported as lost.
    #[inline]
    pub fn send_train(&mut self, mut packet: P, count: u32, mut refused: impl FnMut(SendError<P>))
    where
        P: Train,
    {
        if self.is_ahead {
            let Hop::Link(link) = self.next_hop(&mut packet) else { unreachable!("a route begins with a link") };
            return self.send_ahead(link, packet, count);
        }
        for _ in 0..count {
            if let Err(error) = self.send(packet) {
                refused(error);
            }
            packet = packet.following();
        }
    }

    /// The next hop of `packet`: a link or a host, of another path when it is redirected here.
    #[inline]
    pub(crate) fn next_hop(&self, packet: &mut P) -> Hop {
        match self.routes.at(packet.hop()) {
            Hop::Redirect(position) => {
                packet.redirect(position);
                self.routes.at(position)
            }
            hop => hop,
        }
    }

    /// Runs until `end` inclusive, or `max_events` events, or [`Network::stop`].
    pub fn run<H: Hosts<P>>(&mut self, hosts: &mut H, end: Time, max_events: u64) -> Progress {
        self.run_until(hosts, end, end, max_events)
    }

    /// Returns true after [`Network::run_horizons`] as long as that has not reached its time: it is to be called again.
    pub fn is_ahead(&self) -> bool {
        self.is_ahead
    }

    /// As [`Network::run`] to `end`, with a pause after all that happens until `until`.
    ///
    /// # Panics
    /// When [`Network::is_ahead`].
    pub fn run_until<H: Hosts<P>>(&mut self, hosts: &mut H, until: Time, end: Time, max_events: u64) -> Progress {
        assert!(!self.is_ahead, "horizons have not reached their time");
        self.horizon = end;
        let progress = self.run_events(hosts, until, max_events);
        self.settle_all();
        progress
    }

    fn run_events<H: Hosts<P>>(&mut self, hosts: &mut H, end: Time, max_events: u64) -> Progress {
        let limit = self.events + max_events;
        while let Some((time, source)) = self.queue.peek() {
            if time > end {
                break;
            }
            if self.stopped {
                return Progress::Stopped;
            }
            if self.events == limit {
                return Progress::ReachedEvents;
            }
            debug_assert!(time >= self.now, "time goes back");
            self.now = time;
            self.events += 1;
            match self.link_of(source) {
                Some(link) => self.step_link(hosts, link),
                None => {
                    self.queue.reschedule_top(Time::NEVER);
                    hosts.handle_timer(time, self.timer_of(source), self);
                }
            }
        }
        if self.stopped {
            return Progress::Stopped;
        }
        self.now = end;
        Progress::ReachedTime
    }

    /// Reports losses that no event has reported yet; for the end of a run.
    pub fn flush_drops<H: Hosts<P>>(&mut self, hosts: &mut H) {
        for link in 0..self.links.len() as u32 {
            self.report_drops(hosts, link);
        }
    }

    /// `link` has an event.
    #[inline]
    fn step_link<H: Hosts<P>>(&mut self, hosts: &mut H, link: u32) {
        let now = self.now;
        let event = self.links[link as usize].handle_event(now, &mut self.pacers);
        let LinkEvent { delivered, next_event, has_dropped } = event;
        self.queue.reschedule_top(next_event);
        if has_dropped {
            self.report_drops(hosts, link);
        }
        let Some(mut packet) = delivered else { return };
        packet.advance();
        match self.next_hop(&mut packet) {
            Hop::Redirect(_) => unreachable!("a redirect leads to a link or a host"),
            Hop::Host(host) => {
                self.last_hop = link;
                hosts.handle_packet(now, host, packet, self);
            }
            Hop::Link(next) => {
                if !hosts.handle_transit(now, link, next, &mut packet, self) {
                    return;
                }
                if let Err(refused) = self.forward(next, packet) {
                    hosts.handle_drop(now, refused.link, refused.packet, refused.reason, self);
                }
                if self.links[next as usize].has_dropped() {
                    self.report_drops(hosts, next);
                }
            }
        }
    }

    #[cold]
    fn report_drops<H: Hosts<P>>(&mut self, hosts: &mut H, link: u32) {
        while let Some((packet, reason)) = self.links[link as usize].poll_dropped() {
            hosts.handle_drop(self.now, link, packet, reason, self);
        }
    }

    /// `packet` arrives at `link` now. Precomputed links hand it on at once, up to the last one whose far end it may
    /// not pass ahead of time.
    #[inline]
    fn forward(&mut self, mut link: u32, mut packet: P) -> Result<(), SendError<P>> {
        let mut at = self.now;
        while let Link::Precomputed(precomputed) = &mut self.links[link as usize] {
            at = match precomputed.admit(self.now, at, &packet) {
                Ok(at) => at,
                Err(reason) => return Err(SendError { packet, link, reason }),
            };
            // A packet that waits for its time at this link's far end goes first.
            let only = !precomputed.has_arriving();
            if let Hop::Link(next) = self.routes.at(packet.hop() + 1) {
                if only && at <= self.horizon && self.upstream[next as usize] == LinkId::new(link) {
                    packet.advance();
                    link = next;
                    continue;
                }
            }
            precomputed.deliver_at(at, packet);
            if only {
                self.queue.schedule(self.early + link, at);
            }
            return Ok(());
        }
        self.enqueue(link, packet)
    }

    fn enqueue(&mut self, link: u32, packet: P) -> Result<(), SendError<P>> {
        match self.links[link as usize].handle_packet(self.now, packet, &mut self.pacers) {
            Admission::Queued { next_event: Some(time) } => {
                self.queue.schedule(self.early + link, time);
                Ok(())
            }
            // A FIFO link's next event is its head's: most packets join behind it and change nothing.
            Admission::Queued { next_event: None } => Ok(()),
            Admission::Dropped(packet, reason) => Err(SendError { packet, link, reason }),
        }
    }

    /// Brings the counters of all links to the present.
    pub(crate) fn settle_all(&mut self) {
        for link in &mut self.links {
            link.settle(self.now);
        }
    }

    #[inline]
    fn link_of(&self, source: u32) -> Option<u32> {
        let link = source.wrapping_sub(self.early);
        (link < self.links.len() as u32).then_some(link)
    }

    /// Returns whether `from` hands packets on to `link` ahead of time, and no other link does.
    pub(crate) fn is_only_upstream(&self, from: u32, link: u32) -> bool {
        self.upstream[link as usize] == LinkId::new(from)
    }

    #[inline]
    pub(crate) fn timer_of(&self, source: u32) -> u32 {
        if source < self.early {
            source
        } else {
            source - self.links.len() as u32
        }
    }

    #[inline]
    pub(crate) fn timer_source(&self, timer: u32) -> u32 {
        if timer < self.early {
            timer
        } else {
            timer + self.links.len() as u32
        }
    }
}

/// The hop before a link, over all routes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Previous {
    /// Always this link.
    Link(u32),
    /// A host, several links, or a link behind which packets may be redirected.
    Other,
}

/// By link: the only link upstream of it, when both are precomputed and no packet may be redirected between the two:
/// the network knows where a redirected packet goes only when the packet is there.
fn upstream<P: Packet + Routed>(links: &[Link<P>], routes: &Routes) -> Vec<Option<LinkId>> {
    // None = on no route so far.
    let mut previous: Vec<Option<Previous>> = vec![None; links.len()];
    let mut from = Previous::Other;
    for (hop, diverging) in routes.hops() {
        from = match hop {
            Hop::Host(_) | Hop::Redirect(_) => Previous::Other,
            Hop::Link(link) => {
                let from = if diverging { Previous::Other } else { from };
                let known = &mut previous[link as usize];
                *known = Some(if known.is_none_or(|other| other == from) { from } else { Previous::Other });
                Previous::Link(link)
            }
        };
    }
    let only = |(link, previous): (&Link<P>, Option<Previous>)| match previous {
        Some(Previous::Link(from)) if link.is_precomputed() && links[from as usize].is_precomputed() => {
            LinkId::new(from)
        }
        _ => None,
    };
    links.iter().zip(previous).map(only).collect()
}
