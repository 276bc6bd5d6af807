//! Horizons: the same events in another order, many at a time.
//!
//! Within the least time that a packet takes from one logical process to another, the lookahead, nothing that a process
//! does can come back to it or reach another one (conservative synchronization: Chandy and Misra 1979; Fujimoto 1990).
//! So each process handles all its arrivals and timers up to the horizon in one loop, then each link where packets of
//! several meet sorts what has come to it and passes it on in another, and the next horizon begins. A packet costs no
//! operation of a queue of events.
//!
//! Results are those of [`Network::run`] to the last bit, the number of events among them: what one process or one link
//! sees comes in the same order, (time, source), and nobody else can tell. Between two calls the state is that of
//! [`Network::run`], so that a run may change between both.

mod arrival;
mod arrivals;
mod buckets;
mod ending;
mod exchange;
mod late;
mod late_state;
mod links;
mod moves;
mod part;
mod plan;
mod process;
mod processes;
mod samples;
mod samples_state;
mod sent;
mod shards;
pub(crate) mod state;
mod team;
mod ties;
mod transfer;
mod turns;
mod work;

pub use plan::Unfit;
pub use processes::{Processes, TimerScope};
pub use sent::Departures;
pub use shards::Shards;
pub use team::Team;

use crate::events::EventQueue;
use crate::network::{Hosts, Network, Progress};
use crate::routes::{Hop, Routed, Train};
use arrivals::{Arrivals, Inbox};
use buckets::Buckets;
use late_state::Late;
use link::Packet;
use plan::Plan;
use process::Process;
use samples_state::Samples;
use sent::Sent;
use state::{Horizons, NOBODY, PLANNED};
use units::{Span, Time};
use work::Work;

/// Longest horizon, ns: packets wait in memory for the end of it.
const LONGEST_NS: u64 = 100_000_000;
/// Events after which the next horizon is made shorter: what they leave stays in the cache.
const MANY_EVENTS: u64 = 6144;
/// Timers of a process that are looked through for the next one: those of 64 flows.
const MANY_TIMERS: usize = 256;
/// Samples of hosts that are written together: a link that is fetched for it gives several. With those of one more
/// horizon most links have room for them at hand (`link::sampling`).
const WRITTEN_SAMPLES: u64 = 5;
/// Events of a process in a horizon that are worth looking up its state.
const EVENTS_OF_A_TURN: u64 = 256;

impl<P: Packet + Routed + Train> Network<P> {
    /// Prepares [`Network::run_horizons`] for hosts that are divided into `processes`.
    ///
    /// # Errors
    /// Why this network has no horizons.
    pub fn plan_horizons(&mut self, processes: Processes) -> Result<(), Unfit> {
        let fused = |from, link: u32| self.is_only_upstream(from, link);
        let plan = Plan::new(&self.links, &self.routes, fused, &processes)?;
        let count = processes.count();
        let mut of_process = vec![Process::default(); count];
        let of_inbox: Vec<u32> =
            (0..plan.last_links.len() as u32).map(|inbox| processes.of_host[plan.host_of(inbox) as usize]).collect();
        for (inbox, &process) in (0..).zip(&of_inbox) {
            of_process[process as usize].inboxes.push(inbox);
        }
        for (timer, scope) in (0..).zip(&processes.of_timer) {
            if let TimerScope::Process(process) = *scope {
                of_process[process as usize].timers.push(timer);
            }
        }
        if let Some((process, _)) = (0..).zip(&of_process).find(|(_, of)| of.timers.len() > MANY_TIMERS) {
            return Err(Unfit::ManyTimers(process));
        }
        for &(hop, process) in &processes.senders {
            if let Hop::Link(link) = self.routes.at(hop) {
                of_process[process as usize].first_link = link;
            }
        }
        let mut looks: Vec<u64> =
            processes.looks.iter().map(|&timer| self.queue.due(self.timer_source(timer)).0).collect();
        looks.sort_unstable();
        self.horizons = Some(Box::new(Horizons {
            due: vec![Time::NEVER.0; processes.of_timer.len()],
            readers: (0..)
                .zip(&processes.of_timer)
                .filter(|(_, of)| matches!(of, TimerScope::All | TimerScope::AllAndEnds))
                .map(|(timer, _)| timer)
                .collect(),
            ends: (0..)
                .zip(&processes.of_timer)
                .filter(|(_, &of)| of == TimerScope::AllAndEnds)
                .map(|(t, _)| t)
                .collect(),
            inboxes: of_inbox.iter().map(|_| Inbox::default()).collect(),
            work: Work::new(processes.of_work, count),
            looks,
            samples: Samples::new(&processes.of_timer),
            scopes: processes.of_timer,
            of_inbox,
            arrivals: plan.places.iter().map(|_| Arrivals::default()).collect(),
            sent: Sent::default(),
            buckets: Buckets::default(),
            late: Late::of_links(&plan),
            plan,
            alone: of_process.iter().map(Process::alone).collect(),
            processes: of_process,
            wake: EventQueue::new(count),
            active: vec![],
            is_active: vec![false; count],
            drops: vec![],
            later_events: vec![],
            reached: 0,
            ready: 0,
            quiet: 0,
            turns: 0,
            step: LONGEST_NS,
            cause: 0,
            nth: 0,
            fired: (u64::MAX, 0),
            fired_nth: 0,
            timers_until: 0,
            is_followed: false,
            floor: 0,
            running: NOBODY,
            part: None,
        }));
        Ok(())
    }

    /// Least time from one process to another, once horizons are planned.
    pub fn lookahead(&self) -> Option<Span> {
        self.horizons.as_ref().map(|state| Span(state.plan.lookahead))
    }

    /// The same for [`Network::run_horizons_watching`].
    pub fn lookahead_watching(&self) -> Option<Span> {
        self.horizons.as_ref().map(|state| Span(state.plan.lookahead.min(state.plan.from_merged)))
    }

    /// As [`Network::run_until`], by horizons. Packets that pass between links are not shown to
    /// [`Hosts::handle_transit`].
    ///
    /// # Panics
    /// When [`Network::plan_horizons`] did not go before, when a process calls [`Network::stop`] (timers of
    /// [`TimerScope::AllAndEnds`] may), or when the last piece of work is done.
    pub fn run_horizons<H: Hosts<P>>(&mut self, hosts: &mut H, until: Time, end: Time, max_events: u64) -> Progress {
        self.run_ahead(hosts, (until, end), max_events, false)
    }

    /// The same while the last piece of work ([`Network::end_with_work`]) may be done before `until`. It takes somewhat
    /// longer.
    ///
    /// # Panics
    /// As [`Network::run_horizons`], but for the work; and when [`Network::lookahead_watching`] is 0.
    pub fn run_horizons_watching<H: Hosts<P>>(
        &mut self,
        hosts: &mut H,
        until: Time,
        end: Time,
        max_events: u64,
    ) -> Progress {
        assert_ne!(self.lookahead_watching(), Some(Span(0)), "a host has no delay behind links where packets meet");
        self.run_ahead(hosts, (until, end), max_events, true)
    }

    fn run_ahead<H: Hosts<P>>(
        &mut self,
        hosts: &mut H,
        (until, end): (Time, Time),
        max_events: u64,
        watches: bool,
    ) -> Progress {
        self.horizon = end;
        self.ahead_mut().work.watches = watches;
        let limit = self.events_of_all() + max_events;
        if !self.is_ahead {
            self.load();
        }
        let last = until.0.saturating_add(1);
        loop {
            if self.stopped {
                // Others may be anywhere.
                if !self.is_dissolved() {
                    self.finish(hosts);
                }
                return Progress::Stopped;
            }
            let reached = self.ahead().reached;
            if reached >= last {
                break;
            }
            if self.events_of_all() >= limit {
                return Progress::ReachedEvents;
            }
            self.step(hosts, last);
        }
        self.now = until;
        self.finish(hosts);
        if self.is_dissolved() {
            return Progress::Stopped;
        }
        Progress::ReachedTime
    }

    /// Nothing of what has happened stays in horizons.
    fn finish<H: Hosts<P>>(&mut self, hosts: &mut H) {
        // Packets that timers of all have just sent.
        let reached = self.ahead().reached;
        self.pass_merged(reached, reached);
        self.pass_all_last();
        self.count_later_events(reached);
        self.report_losses(hosts, reached);
        self.write_samples(hosts, 1);
        self.unload();
        self.settle_all();
    }

    /// One horizon, and the timers of all at its end. Nothing from `last` on happens.
    fn step<H: Hosts<P>>(&mut self, hosts: &mut H, last: u64) {
        let next = self.queue.peek();
        let early = self.early;
        self.skip_idle(next.map_or(u64::MAX, |(time, _)| time.0), last);
        let (reached, has_late) = (self.ahead().reached, self.ahead().plan.has_late);
        // Nothing at a late link is computed beyond the next timer of all.
        let cap = next.map_or(last, |(time, source)| last.min(time.0 + u64::from(source >= early))).max(reached);
        let state = self.ahead();
        // Links where packets meet may be ahead of the horizon, but not of the end, which counts what has come, nor of
        // moves, which decide where packets go.
        let reads = |&timer: &u32| self.queue.due(self.timer_source(timer)).0.saturating_add(u64::from(timer >= early));
        let mut quiet = state.readers.iter().map(reads).fold(last, u64::min);
        let ends = state.ends.iter().map(|&timer| self.queue.due(self.timer_source(timer)).0.saturating_add(1));
        let ahead = if has_late {
            cap
        } else {
            ends.fold(if state.plan.has_moves { quiet } else { last }, u64::min).max(reached)
        };
        let watches = state.work.watches;
        if watches {
            // The end, at any time, reads all counters.
            quiet = reached;
        }
        self.ahead_mut().quiet = quiet.saturating_sub(1);
        if self.ahead().ready <= reached && !watches {
            // Behind a link where packets meet a host may have no delay; that link had to wait for a timer.
            self.pass_merged(reached, ahead);
            self.count_later_events(reached);
            self.report_losses(hosts, reached);
        }
        let state = self.ahead();
        let mut horizon = state.ready.min(reached.saturating_add(state.step)).min(last);
        if let Some((time, source)) = next {
            horizon = horizon.min((time.0 + u64::from(source >= early)).max(reached));
        }
        let look = self.ahead_mut().next_look(reached);
        horizon = horizon.min(look.max(reached.saturating_add(1)));
        let events = self.events_of_all();
        let state = self.ahead_mut();
        debug_assert!(!watches || state.samples.first == u64::MAX, "a process that pauses takes no samples by itself");
        horizon = horizon.min(state.samples.latest_horizon());
        // At one time samples go behind timers of all that change what they see.
        state.samples.bound = next.map_or(horizon, |(time, _)| horizon.min(time.0));
        if horizon > reached {
            let last = if look == reached {
                self.run_in_order(hosts, reached)
            } else if watches {
                self.run_waiting(hosts, horizon)
            } else {
                None
            };
            if let Some(last) = last {
                return self.run_to_end(hosts, last);
            }
            self.run_processes(hosts, horizon);
            self.pass_merged(horizon, if watches { horizon } else { ahead });
            self.now = Time(horizon - 1);
            self.ahead_mut().reached = horizon;
            self.count_later_events(horizon);
            self.count_samples();
            self.report_losses(hosts, horizon);
        }
        if let Some((time, source)) = next {
            if time.0 < last && time.0 + u64::from(source >= early) <= horizon {
                self.fire_all(hosts, time, source < early);
            }
        }
        self.write_samples(hosts, WRITTEN_SAMPLES);
        let happened = self.events_of_all() - events;
        let (turns, workers) = self.turns_of_all();
        let many = (MANY_EVENTS * workers).max(turns * EVENTS_OF_A_TURN);
        let step = &mut self.ahead_mut().step;
        if happened > many {
            *step = (*step / 2).max(1);
        } else if happened < many / 4 {
            *step = (*step * 2).min(LONGEST_NS);
        }
    }

    /// With no packet on its way, nothing comes to a process before the first timer and a lookahead after it; that of
    /// all is `due_of_all`.
    fn skip_idle(&mut self, due_of_all: u64, last: u64) {
        let state = self.ahead_mut();
        if let Some(part) = &state.part {
            if let Some(all) = part.all_now().filter(|all| all.is_idle) {
                let first = all.wake.min(due_of_all);
                state.ready = state.ready.max(first.saturating_add(state.plan.lookahead));
            }
            return;
        }
        let late = self.late_due();
        let state = self.ahead_mut();
        let has_arrivals = |&(link, _): &(u32, u64)| !state.arrivals[link as usize].list.is_empty();
        if state.active.is_empty() && !state.plan.merged.iter().any(has_arrivals) {
            let first = state.wake.peek().map_or(u64::MAX, |(due, _)| due.0).min(due_of_all);
            match late {
                None => state.ready = state.ready.max(first.saturating_add(state.plan.lookahead)),
                // Something waits in a late link: nothing at all happens before.
                Some(due) => state.reached = state.reached.max(first.min(due).min(last)),
            }
        }
    }

    /// Timers of all that are due at `time`: the early ones, which go before packets, or the others.
    fn fire_all<H: Hosts<P>>(&mut self, hosts: &mut H, time: Time, early: bool) {
        self.now = time;
        self.pass_all_last();
        self.note_all_samples(hosts, time.0);
        while let Some((due, source)) = self.queue.peek() {
            if due != time || (source < self.early) != early || self.stopped {
                break;
            }
            if !early && self.ahead().floor > 0 {
                // Packets that the timer before has sent are on their links.
                self.pass_merged(time.0 + 1, time.0 + 1);
                self.pass_all_last();
                self.report_losses(hosts, time.0 + 1);
            }
            self.queue.reschedule_top(Time::NEVER);
            let timer = self.timer_of(source);
            let state = self.ahead_mut();
            let counts = state.part.as_mut().is_none_or(|part| part.fire_timer_of_all());
            self.events += u64::from(counts);
            let state = self.ahead_mut();
            (state.floor, state.cause) = (source, source);
            hosts.handle_timer(time, timer, self);
            self.pass_sent();
            if !early {
                self.run_woken(hosts, time);
            } else if self.ahead().plan.has_late {
                self.pass_early(time.0);
            }
        }
        self.ahead_mut().floor = 0;
    }

    fn report_losses<H: Hosts<P>>(&mut self, hosts: &mut H, horizon: u64) {
        let mut losses = std::mem::take(&mut self.ahead_mut().drops);
        if losses.is_empty() {
            return;
        }
        losses.retain(|&(at, link, packet, reason)| {
            let is_due = at < horizon;
            if is_due {
                hosts.handle_drop(Time(at), link, packet, reason, self);
            }
            !is_due
        });
        let drops = &mut self.ahead_mut().drops;
        losses.append(drops);
        *drops = losses;
    }

    fn count_later_events(&mut self, horizon: u64) {
        let later = &mut self.ahead_mut().later_events;
        let before = later.len();
        later.retain(|&at| at >= horizon);
        let happened = before - later.len();
        self.events += happened as u64;
    }
}

impl<P> Network<P> {
    /// Sets a timer of a process; returns false if `timer` is one of all.
    #[inline]
    pub(crate) fn set_timer_ahead(&mut self, timer: u32, time: Time) -> bool {
        let state = self.ahead_mut();
        let TimerScope::Process(number) = state.scopes[timer as usize] else { return false };
        state.due[timer as usize] = time.0;
        if state.running != number && state.part.as_ref().is_some_and(|part| !part.owns_process(number)) {
            state.due[timer as usize] = u64::MAX;
            return true;
        }
        let process = &mut state.processes[number as usize];
        process.note(timer, time.0, &state.due);
        if state.running != number {
            state.wake.schedule(number, Time(process.due));
        }
        true
    }

    #[inline]
    pub(crate) fn ahead(&self) -> &Horizons<P> {
        self.horizons.as_ref().expect(PLANNED)
    }

    #[inline]
    pub(crate) fn ahead_mut(&mut self) -> &mut Horizons<P> {
        self.horizons.as_mut().expect(PLANNED)
    }
}
