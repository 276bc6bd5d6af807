//! Links joined by routes, timers, and the loop that runs them.

use crate::chains::{self, Chains, Refused};
use crate::events::EventQueue;
use crate::routes::{Hop, Routed, Routes};
use link::{Admission, DropReason, Link, Packet};
use units::Time;

/// The caller's side: what happens when a packet arrives, is lost, or a timer fires.
pub trait Hosts<P> {
    /// `packet` reached the host at the end of its route.
    fn handle_packet(&mut self, now: Time, host: u32, packet: P, net: &mut Network<P>);
    /// Timer `timer` is due. It is idle now; set it again where wanted.
    fn handle_timer(&mut self, now: Time, timer: u32, net: &mut Network<P>);
    /// `packet` was lost at `link`. `now` is when this is known: for a link whose queue was full, when the packet came there,
    /// which may be before [`Network::now`].
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
    pub(crate) chains: Chains,
    queue: EventQueue,
    /// Timers that go before links at the same time.
    early: u32,
    now: Time,
    /// Source of the latest event: at `now`, those of lower number have had their turn.
    source: u32,
    events: u64,
    stopped: bool,
    /// Packets refused inside chains, not yet reported.
    refused: Vec<Refused<P>>,
}

impl<P: Packet + Routed> Network<P> {
    /// A network of `links` along `routes` with `timers` timers, the first `early` of which fire before any packet moves at
    /// the same ns (changes of the path are such timers: a rate that changes at t holds for the packet that arrives at t).
    pub fn new(links: Vec<Link<P>>, routes: Routes, timers: usize, early: usize) -> Network<P> {
        assert!(early <= timers, "early timers are some of all timers");
        let queue = EventQueue::new(links.len() + timers);
        let chains = Chains::new(&links, &routes);
        let early = early as u32;
        let (now, source, refused) = (Time::ZERO, 0, vec![]);
        Network { links, routes, chains, queue, early, now, source, events: 0, stopped: false, refused }
    }

    /// The time of the latest event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Events processed so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// All links, as [`Network::run`] left them: while it runs, packets inside chains may lag behind.
    pub fn links(&self) -> &[Link<P>] {
        &self.links
    }

    /// All links, for reading what advances with time (queue lengths). Changes go through [`Network::with_link`].
    pub fn links_mut(&mut self) -> &mut [Link<P>] {
        self.settle_all();
        &mut self.links
    }

    /// Ends the run after the current event.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Changes a link through `change` and schedules what follows from it.
    pub fn with_link(&mut self, link: u32, change: impl FnOnce(&mut Link<P>)) {
        let last = self.chains.last(link);
        self.settle(last);
        change(&mut self.links[link as usize]);
        let due = chains::due(&self.links, self.chains.ending_with(last));
        // What a change made overdue happens now, not in the past.
        self.queue.schedule(self.early + last, due.max(self.now));
    }

    /// Sets timer `timer` to `time`, replacing what was set; [`Time::NEVER`] clears it. A time in the past fires at once.
    #[inline]
    pub fn set_timer(&mut self, timer: u32, time: Time) {
        let time = time.max(self.now);
        self.queue.schedule(self.timer_source(timer), time);
    }

    /// Hands `packet` to the hop it stands at, which must be a link.
    #[inline]
    pub fn send(&mut self, packet: P) -> Result<(), SendError<P>> {
        match self.routes.at(packet.hop()) {
            Hop::Link(link) => self.enqueue(link, packet),
            Hop::Host(host) => unreachable!("a route has at least one link before host {host}"),
        }
    }

    /// Runs until `end` inclusive, or `max_events` events, or [`Network::stop`].
    pub fn run<H: Hosts<P>>(&mut self, hosts: &mut H, end: Time, max_events: u64) -> Progress {
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
            self.source = source;
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
        (self.now, self.source) = (end, u32::MAX);
        Progress::ReachedTime
    }

    /// Reports losses that no event has reported yet; for the end of a run.
    pub fn flush_drops<H: Hosts<P>>(&mut self, hosts: &mut H) {
        for link in 0..self.links.len() as u32 {
            self.report_drops(hosts, link);
        }
        self.report_refused(hosts);
    }

    /// The chain that ends with `link` has an event.
    #[inline]
    fn step_link<H: Hosts<P>>(&mut self, hosts: &mut H, link: u32) {
        let now = self.now;
        let chain = self.chains.ending_with(link);
        let mut drops = false;
        if chain.len() > 1 {
            drops =
                chains::settle(&mut self.links, chain, now, |_| true, &mut self.refused) || !self.refused.is_empty();
        }
        let lnk = &mut self.links[link as usize];
        lnk.handle_timeout(now);
        let delivered = lnk.poll_delivery(now);
        let mut due = lnk.poll_timeout();
        drops |= lnk.has_dropped();
        if chain.len() > 1 {
            due = chains::due(&self.links, chain);
        }
        self.queue.reschedule_top(due);
        if drops {
            self.report_chain(hosts, link);
        }
        let Some(mut packet) = delivered else { return };
        packet.advance();
        match self.routes.at(packet.hop()) {
            Hop::Host(host) => hosts.handle_packet(now, host, packet, self),
            Hop::Link(next) => {
                if let Err(refused) = self.enqueue(next, packet) {
                    hosts.handle_drop(now, refused.link, refused.packet, refused.reason, self);
                }
                if self.links[next as usize].has_dropped() {
                    self.report_drops(hosts, next);
                }
            }
        }
    }

    #[cold]
    fn report_chain<H: Hosts<P>>(&mut self, hosts: &mut H, last: u32) {
        for at in 0..self.chains.ending_with(last).len() {
            self.report_drops(hosts, self.chains.ending_with(last)[at]);
        }
        self.report_refused(hosts);
    }

    fn report_refused<H: Hosts<P>>(&mut self, hosts: &mut H) {
        for Refused { time, link, packet, reason } in std::mem::take(&mut self.refused) {
            hosts.handle_drop(time, link, packet, reason, self);
        }
    }

    fn report_drops<H: Hosts<P>>(&mut self, hosts: &mut H, link: u32) {
        while let Some((packet, reason)) = self.links[link as usize].poll_dropped() {
            hosts.handle_drop(self.now, link, packet, reason, self);
        }
    }

    #[inline]
    fn enqueue(&mut self, link: u32, packet: P) -> Result<(), SendError<P>> {
        let last = self.chains.last(link);
        let lnk = &mut self.links[link as usize];
        let before = lnk.poll_timeout();
        match lnk.handle_packet(self.now, packet) {
            Admission::Queued => {
                let due = lnk.poll_timeout();
                // A FIFO link's next event is its head's: most packets join behind it and change nothing.
                if due != before {
                    if last == link {
                        self.queue.schedule(self.early + link, due);
                    } else if self.queue.due(self.early + last) == Time::NEVER {
                        // Likewise for a chain: with packets inside, the event that is set is not too late for this one.
                        let due = chains::due(&self.links, self.chains.ending_with(last));
                        self.queue.schedule(self.early + last, due);
                    }
                }
                Ok(())
            }
            Admission::Dropped(packet, reason) => Err(SendError { packet, link, reason }),
        }
    }

    /// Moves packets inside the chain that ends with `last` to where they are after the latest event.
    fn settle(&mut self, last: u32) {
        let (early, source) = (self.early, self.source);
        let chain = self.chains.ending_with(last);
        chains::settle(&mut self.links, chain, self.now, |link| early + link < source, &mut self.refused);
    }

    fn settle_all(&mut self) {
        for link in 0..self.links.len() as u32 {
            self.settle(link);
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
