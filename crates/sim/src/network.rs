//! Links joined by routes, timers, and the loop that runs them.

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
    /// `packet` was lost at `link`.
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
    queue: EventQueue,
    /// Timers that go before links at the same time.
    early: u32,
    now: Time,
    events: u64,
    stopped: bool,
}

impl<P: Packet + Routed> Network<P> {
    /// A network of `links` along `routes` with `timers` timers, the first `early` of which fire before any packet moves at
    /// the same ns (changes of the path are such timers: a rate that changes at t holds for the packet that arrives at t).
    pub fn new(links: Vec<Link<P>>, routes: Routes, timers: usize, early: usize) -> Network<P> {
        assert!(early <= timers, "early timers are some of all timers");
        let queue = EventQueue::new(links.len() + timers);
        Network { links, routes, queue, early: early as u32, now: Time::ZERO, events: 0, stopped: false }
    }

    /// The time of the latest event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Events processed so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// All links.
    pub fn links(&self) -> &[Link<P>] {
        &self.links
    }

    /// All links, for reading what advances with time (queue lengths). Changes go through [`Network::with_link`].
    pub fn links_mut(&mut self) -> &mut [Link<P>] {
        &mut self.links
    }

    /// Ends the run after the current event.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Changes a link through `change` and schedules what follows from it.
    pub fn with_link(&mut self, link: u32, change: impl FnOnce(&mut Link<P>)) {
        change(&mut self.links[link as usize]);
        self.reschedule_link(link);
    }

    /// When timer `timer` is due; [`Time::NEVER`] when idle.
    #[inline]
    pub fn timer(&self, timer: u32) -> Time {
        self.queue.due(self.timer_source(timer))
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

    #[inline]
    fn step_link<H: Hosts<P>>(&mut self, hosts: &mut H, link: u32) {
        let now = self.now;
        let lnk = &mut self.links[link as usize];
        lnk.handle_timeout(now);
        let delivered = lnk.poll_delivery(now);
        let due = lnk.poll_timeout();
        let drops = lnk.has_dropped();
        self.queue.reschedule_top(due);
        if drops {
            self.report_drops(hosts, link);
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

    fn report_drops<H: Hosts<P>>(&mut self, hosts: &mut H, link: u32) {
        while let Some((packet, reason)) = self.links[link as usize].poll_dropped() {
            hosts.handle_drop(self.now, link, packet, reason, self);
        }
    }

    #[inline]
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

    fn reschedule_link(&mut self, link: u32) {
        let due = self.links[link as usize].poll_timeout();
        // What a change made overdue happens now, not in the past.
        let due = if due == Time::NEVER { due } else { due.max(self.now) };
        self.queue.schedule(self.early + link, due);
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
