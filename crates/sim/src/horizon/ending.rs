//! Runs that end with their last piece of work, in horizons.
//!
//! As long as one process has work left at the end of a horizon, the run does not end in it. So a process with work
//! left has its turn first, then the next one if it got done, and so on: nearly always one turn tells. Where all get
//! done, each has paused just behind its last piece of work, the latest of these events is the end of the run, and
//! everything goes up to that event.

use super::state::NOBODY;
use super::work::order;
use crate::network::{Hosts, Network};
use crate::routes::{Routed, Train};
use link::Packet;
use units::Time;

/// Source of an event, its number among those of that source, and link and inbox of a packet.
type NextEvent = (u32, u32, Option<(u32, u32)>);

impl<P> Network<P> {
    /// The run ends with the last of `count` pieces of work, if there are any: with the event that calls
    /// [`Network::finish_work`] for it.
    pub fn end_with_work(&mut self, count: u32) {
        self.work = count;
    }

    /// `piece` of the work was done by its process ([`Processes::of_work`](super::Processes::of_work)), not by a timer
    /// of all.
    ///
    /// # Panics
    /// When it is the last one and [`Network::run_horizons`] runs.
    pub fn finish_work(&mut self, piece: u32) {
        if self.work == 0 {
            return;
        }
        self.work -= 1;
        if let Some(state) = &mut self.horizons {
            state.work.finish(piece, order(state.cause, state.nth));
        }
        if self.work > 0 {
            return;
        }
        if self.is_ahead {
            assert!(self.ahead().work.watches, "a run ends before it was certain to go on");
        } else {
            self.stopped = true;
        }
    }

    /// Returns whether the process whose turn it is has done its work and pauses.
    #[inline]
    pub(super) fn has_paused(&self) -> bool {
        self.ahead().work.has_paused
    }
}

impl<P: Packet + Routed + Train> Network<P> {
    /// Turns up to `horizon` of processes with work left, until one of them has some left then. Returns None if there
    /// is one; else the last event of the run: its time, its order, its process.
    pub(super) fn run_waiting<H: Hosts<P>>(&mut self, hosts: &mut H, horizon: u64) -> Option<(u64, u64, u32)> {
        let mut last = None;
        while let Some(&process) = self.ahead().work.waiting.last() {
            let state = self.ahead_mut();
            if state.work.left[process as usize] > 0 {
                let is_due = state.wake.due(process).0 < horizon;
                if !is_due && !state.is_active[process as usize] {
                    return None;
                }
                state.work.pauses = true;
                self.run_process(hosts, process, horizon);
                let state = self.ahead_mut();
                state.work.pauses = false;
                if state.work.left[process as usize] > 0 {
                    return None;
                }
                let paused_at = state.processes[process as usize].paused_at;
                last = last.max(Some((paused_at.0, paused_at.1, process)));
            }
            self.ahead_mut().work.waiting.pop();
        }
        last.filter(|_| self.work == 0)
    }

    /// All events of processes at `at`, one by one in the order of their sources. Returns the last event of the run, if
    /// it is among them: its time, its order, its process.
    pub(super) fn run_in_order<H: Hosts<P>>(&mut self, hosts: &mut H, at: u64) -> Option<(u64, u64, u32)> {
        let processes = 0..self.ahead().processes.len() as u32;
        for process in processes.clone() {
            self.pass_all_of(process);
        }
        self.note_all_samples(hosts, at);
        let mut latest = (u64::MAX, 0);
        loop {
            let next = |process: u32| Some((self.next_at(process, at)?, process));
            let ((.., head), process) = processes.clone().filter_map(next).min()?;
            let state = self.ahead_mut();
            (state.running, state.fired) = (process, latest);
            match head {
                Some((link, inbox)) => self.handle_first(hosts, link, inbox, at + 1),
                None => self.fire_next(hosts, process, 0),
            }
            self.end_turn(process);
            if self.work == 0 && self.ahead().work.watches {
                return Some((at, self.ahead().work.finished_in, process));
            }
            if head.is_none() {
                latest = self.ahead().fired;
            }
        }
    }

    /// Source of the next event of `process` at `at`, its number among those of that source, and link and inbox where
    /// it is a packet; None if there is none.
    fn next_at(&self, process: u32, at: u64) -> Option<NextEvent> {
        let state = self.ahead();
        let of_it = &state.processes[process as usize];
        let heads = of_it.inboxes.iter().filter_map(|&inbox| state.head(inbox, at + 1));
        if let Some((_, link, nth, inbox)) = heads.map(|head| head.0).min() {
            return Some((self.early + link, nth, Some((link, inbox))));
        }
        (of_it.due == at).then(|| (self.timer_source(of_it.timer), 0, None))
    }

    /// Packets on their way to the last links of `process` pass them.
    pub(super) fn pass_all_of(&mut self, process: u32) {
        for index in 0..self.ahead().processes[process as usize].inboxes.len() {
            let inbox = self.ahead().processes[process as usize].inboxes[index];
            self.pass_last(inbox);
        }
    }

    /// The run ends with the event of order `last` at `at`, of process `ender`: everything before it happens.
    pub(super) fn run_to_end<H: Hosts<P>>(&mut self, hosts: &mut H, (at, last, ender): (u64, u64, u32)) {
        self.run_processes(hosts, at);
        for process in (0..self.ahead().processes.len() as u32).filter(|&process| process != ender) {
            self.run_before(hosts, process, at, last);
        }
        for index in 0..self.ahead().plan.merged.len() {
            let (link, _) = self.ahead().plan.merged[index];
            // With what that event sent.
            self.pass(link, at + 1, (at, last + 2));
        }
        self.now = Time(at);
        self.ahead_mut().reached = at;
        self.report_losses(hosts, at + 1);
        self.stopped = true;
    }

    /// Events of `process` at `at` before that of order `last`.
    fn run_before<H: Hosts<P>>(&mut self, hosts: &mut H, process: u32, at: u64, last: u64) {
        let state = self.ahead_mut();
        state.running = process;
        state.go_on(process);
        self.pass_all_of(process);
        while let Some((source, nth, head)) = self.next_at(process, at) {
            match head {
                Some((link, inbox)) if order(source, nth) < last => self.handle_first(hosts, link, inbox, at + 1),
                None if order(self.source_of_next(process), 0) < last => self.fire_next(hosts, process, 0),
                _ => break,
            }
        }
        self.end_turn(process);
    }

    /// `process` has had its turn.
    #[inline]
    pub(super) fn end_turn(&mut self, process: u32) {
        self.pass_sent();
        let now = self.now.0;
        let state = self.ahead_mut();
        state.running = NOBODY;
        if std::mem::take(&mut state.work.has_paused) {
            state.processes[process as usize].paused_at = (now, state.work.finished_in);
        }
        let due = state.processes[process as usize].due;
        state.wake.schedule(process, Time(due));
    }
}
