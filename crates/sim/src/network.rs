//! Links joined by routes, timers, and the loop that runs them.

use crate::events::EventQueue;
use crate::routes::{Hop, RouteId, Routed, Routes};
use link::{Admission, DropReason, Link, Packet};
use units::Time;

/// The caller's side: what happens when a packet arrives, is lost, or a timer fires.
pub trait Hosts<P> {
    /// `packet` reached the host at the end of its route.
    fn handle_packet(&mut self, now: Time, host: u32, packet: P, net: &mut Network<P>);
    /// Timer `timer` is due. It is idle now; set it again where wanted.
    fn handle_timer(&mut self, now: Time, timer: u32, net: &mut Network<P>);
    /// `packet` was lost at `link`. `now` is when it came there where this is known at once, which may be later than
    /// [`Network::now`], though not than the end of the run.
    fn handle_drop(&mut self, now: Time, link: u32, packet: P, reason: DropReason, net: &mut Network<P>);
}

/// How far a call of [`Network::run`] came.
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
    /// Why.
    pub reason: DropReason,
}

/// Links, routes, timers and the time of day.
///
/// Sources of events are numbered: the first `early` timers, then links, then the other timers. That number breaks ties.
pub struct Network<P> {
    links: Vec<Link<P>>,
    routes: Routes,
    /// By link: the link that alone leads to it, when both are passages; else [`NONE`].
    feeders: Vec<u32>,
    queue: EventQueue,
    /// Timers that go before links at the same time.
    early: u32,
    now: Time,
    events: u64,
    stopped: bool,
    /// Nothing is computed beyond it: the end of the present call of [`Network::run`].
    horizon: Time,
}

/// No link.
const NONE: u32 = u32::MAX;

impl<P: Packet + Routed> Network<P> {
    /// A network of `links` along `routes` with `timers` timers, the first `early` of which fire before any packet moves at
    /// the same ns (changes of the path are such timers: a rate that changes at t holds for the packet that arrives at t).
    pub fn new(links: Vec<Link<P>>, routes: Routes, timers: usize, early: usize) -> Network<P> {
        assert!(early <= timers, "early timers are some of all timers");
        let queue = EventQueue::new(links.len() + timers);
        let feeders = feeders(&links, &routes);
        let (early, now) = (early as u32, Time::ZERO);
        Network { links, routes, feeders, queue, early, now, events: 0, stopped: false, horizon: now }
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

    /// All links, for reading what advances with time (queue lengths). Changes go through [`Network::with_link`].
    pub fn links_mut(&mut self) -> &mut [Link<P>] {
        self.settle_all();
        &mut self.links
    }

    /// When the next event happens; [`Time::NEVER`] when none is pending.
    #[inline]
    pub fn next_event(&mut self) -> Time {
        self.queue.peek().map_or(Time::NEVER, |(time, _)| time)
    }

    /// Adds the route over `links` to `host` while the network runs. Cost: a walk over all routes.
    ///
    /// # Panics
    /// When it makes a second way to a passage that has been handed packets before their time: a link to which new ways may
    /// lead is made by [`Link::new`]. When a number does not exist.
    pub fn add_route(&mut self, links: &[usize], host: u32) -> RouteId {
        assert!(links.iter().all(|&link| link < self.links.len()), "a route leads over links that exist");
        let id = self.routes.add(links, host);
        self.find_feeders();
        id
    }

    fn find_feeders(&mut self) {
        let feeders = feeders(&self.links, &self.routes);
        let fed_by_one = |(before, after): (&u32, &u32)| *before == NONE || before == after;
        assert!(self.feeders.iter().zip(&feeders).all(fed_by_one), "a passage gets a second way to it");
        // One that had no way to it has been handed nothing.
        self.feeders = feeders;
    }

    /// From here on packets of `route` go over `links`: each from the router on where its way and this one part. A packet that
    /// is past that router, or waits in its queue for the old way, stays on the old way to its end.
    ///
    /// Cost: a walk over the hops of all ways of `route`; over all routes where `links` are new.
    ///
    /// # Panics
    /// When the way is new ([`Routes::add_way`] before the run makes it known) and [`Network::add_route`] would.
    pub fn set_way(&mut self, route: RouteId, links: &[usize]) {
        assert!(links.iter().all(|&link| link < self.links.len()), "a way leads over links that exist");
        let known = self.routes.len();
        let way = self.routes.add_way(route, links);
        if self.routes.len() != known {
            self.find_feeders();
        }
        self.routes.switch(route, way);
    }

    /// Ends the run after the current event.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Changes a link through `change` and schedules what follows from it.
    pub fn with_link(&mut self, link: u32, change: impl FnOnce(&mut Link<P>)) {
        let lnk = &mut self.links[link as usize];
        change(lnk);
        // What a change made overdue happens now, not in the past.
        self.queue.schedule(self.early + link, lnk.poll_timeout().max(self.now));
    }

    /// Sets timer `timer` to `time`, replacing what was set; [`Time::NEVER`] clears it. A time in the past fires at once.
    #[inline]
    pub fn set_timer(&mut self, timer: u32, time: Time) {
        let time = time.max(self.now);
        self.queue.schedule(self.timer_source(timer), time);
    }

    /// Hands `packet` to the hop it stands at, which must be a link.
    #[inline]
    pub fn send(&mut self, mut packet: P) -> Result<(), SendError<P>> {
        match self.next_hop(&mut packet) {
            Hop::Link(link) => self.forward(link, packet),
            other => unreachable!("a route has at least one link before its end: {other:?}"),
        }
    }

    /// What `packet` comes to: a link or a host, of another way when it has to turn here.
    #[inline]
    fn next_hop(&self, packet: &mut P) -> Hop {
        match self.routes.at(packet.hop()) {
            Hop::Turn(position) => {
                packet.turn(position);
                self.routes.at(position)
            }
            hop => hop,
        }
    }

    /// Runs until `end` inclusive, or `max_events` events, or [`Network::stop`].
    pub fn run<H: Hosts<P>>(&mut self, hosts: &mut H, end: Time, max_events: u64) -> Progress {
        self.horizon = end;
        let progress = self.run_events(hosts, end, max_events);
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
                    let timer = if source < self.early { source } else { source - self.links.len() as u32 };
                    hosts.handle_timer(time, timer, self);
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
        let lnk = &mut self.links[link as usize];
        lnk.handle_timeout(now);
        let delivered = lnk.poll_delivery(now);
        let (due, drops) = (lnk.poll_timeout(), lnk.has_dropped());
        self.queue.reschedule_top(due);
        if drops {
            self.report_drops(hosts, link);
        }
        let Some(mut packet) = delivered else { return };
        packet.advance();
        match self.next_hop(&mut packet) {
            Hop::Turn(_) => unreachable!("a turn leads to a link or a host"),
            Hop::Host(host) => hosts.handle_packet(now, host, packet, self),
            Hop::Link(next) => {
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

    /// `packet` comes to `link` now. Through passages it goes on at once, to the last of them whose end only time can reach.
    #[inline]
    fn forward(&mut self, mut link: u32, mut packet: P) -> Result<(), SendError<P>> {
        if !self.links[link as usize].is_passage() {
            return self.enqueue(link, packet);
        }
        let mut at = self.now;
        loop {
            let lnk = &mut self.links[link as usize];
            at = match lnk.pass(self.now, at, &packet) {
                Ok(at) => at,
                Err(reason) => return Err(SendError { packet, link, reason }),
            };
            // A packet that waits for its time at this link's end goes first.
            let last = lnk.poll_timeout() == Time::NEVER;
            if let Hop::Link(next) = self.routes.at(packet.hop() + 1) {
                if last && at <= self.horizon && self.feeders[next as usize] == link {
                    packet.advance();
                    link = next;
                    continue;
                }
            }
            lnk.hold(at, packet);
            if last {
                self.queue.schedule(self.early + link, at);
            }
            return Ok(());
        }
    }

    fn enqueue(&mut self, link: u32, packet: P) -> Result<(), SendError<P>> {
        let lnk = &mut self.links[link as usize];
        let before = lnk.poll_timeout();
        match lnk.handle_packet(self.now, packet) {
            Admission::Queued => {
                let due = lnk.poll_timeout();
                // A FIFO link's next event is its head's: most packets join behind it and change nothing.
                if due != before {
                    self.queue.schedule(self.early + link, due);
                }
                Ok(())
            }
            Admission::Dropped(packet, reason) => Err(SendError { packet, link, reason }),
        }
    }

    /// Brings the counters of all links to the present.
    fn settle_all(&mut self) {
        for link in &mut self.links {
            link.settle(self.now);
        }
    }

    #[inline]
    fn link_of(&self, source: u32) -> Option<u32> {
        let link = source.wrapping_sub(self.early);
        (link < self.links.len() as u32).then_some(link)
    }

    #[inline]
    fn timer_source(&self, timer: u32) -> u32 {
        if timer < self.early {
            timer
        } else {
            timer + self.links.len() as u32
        }
    }
}

/// By link: the passage that alone leads to it, when it is one itself and no packet may come to turn between the two: where it
/// turns is known when it is there and not before.
fn feeders<P: Packet + Routed>(links: &[Link<P>], routes: &Routes) -> Vec<u32> {
    // None = nothing seen yet; NONE = a host, or more than one link.
    let mut before: Vec<Option<u32>> = vec![None; links.len()];
    let mut from = NONE;
    for (hop, fork) in routes.hops() {
        from = match hop {
            Hop::Host(_) | Hop::Turn(_) => NONE,
            Hop::Link(link) => {
                let from = if fork { NONE } else { from };
                let seen = &mut before[link as usize];
                *seen = Some(if seen.is_none_or(|other| other == from) { from } else { NONE });
                link
            }
        };
    }
    let passage = |link: u32| link != NONE && links[link as usize].is_passage();
    let only = |(link, from): (usize, Option<u32>)| {
        let from = from.unwrap_or(NONE);
        if passage(link as u32) && passage(from) {
            from
        } else {
            NONE
        }
    };
    before.into_iter().enumerate().map(only).collect()
}
