//! State of a network with horizons.

use super::arrivals::{Arrivals, Inbox};
use super::buckets::Buckets;
use super::late_state::Late;
use super::part::Part;
use super::plan::Plan;
use super::process::Process;
use super::processes::TimerScope;
use super::samples_state::Samples;
use super::sent::Sent;
use super::work::Work;
use crate::events::EventQueue;
use crate::routes::Routed;
use link::DropReason;
use std::cmp::Reverse;
use units::Span;

/// State of a network with horizons. While packets are here, none waits at a link's end for its event.
pub(crate) struct Horizons<P> {
    pub(super) plan: Plan,
    pub(super) processes: Vec<Process>,
    /// By process: its inbox, if that is its only one, and a link into which it sends; else [`NOBODY`].
    pub(super) alone: Vec<(u32, u32)>,
    /// By inbox: the process of its host.
    pub(super) of_inbox: Vec<u32>,
    /// By timer: its scope.
    pub(super) scopes: Vec<TimerScope>,
    /// Timers of all that may read links at any time.
    pub(super) readers: Vec<u32>,
    /// Times to come of timers of processes that look at others, ascending.
    pub(super) looks: Vec<u64>,
    /// Timers that may end the run.
    pub(super) ends: Vec<u32>,
    /// By timer of a process: when it is due, ns.
    pub(super) due: Vec<u64>,
    /// As [`Plan::last_links`].
    pub(super) inboxes: Vec<Inbox<P>>,
    /// Work with which the run ends.
    pub(super) work: Work,
    /// Packets that the running process has sent.
    pub(super) sent: Sent<P>,
    /// Room for sorting.
    pub(super) buckets: Buckets<P>,
    /// By merged link: packets on their way to it.
    pub(super) arrivals: Vec<Arrivals<P>>,
    /// By link: state of those that decide late.
    pub(super) late: Vec<Late>,
    /// Samples that hosts take in their turns.
    pub(super) samples: Samples,
    /// By process: when its next timer is due, as far as it is not running.
    pub(super) wake: EventQueue,
    /// Processes with packets on their way to them.
    pub(super) active: Vec<u32>,
    /// By process: it is among these.
    pub(super) is_active: Vec<bool>,
    /// Losses to be reported at their times: (time, link, packet, reason).
    pub(super) drops: Vec<(u64, u32, P, DropReason)>,
    /// Times of events that are computed ahead of the horizon.
    pub(super) later_events: Vec<u64>,
    /// All events before it have happened.
    pub(super) reached: u64,
    /// Nobody reads a counter or a queue of a link before it.
    pub(super) quiet: u64,
    /// Everything that comes to a process before it is in its inboxes.
    pub(super) ready: u64,
    /// Processes that had a turn in the latest horizon.
    pub(super) turns: u64,
    /// Length of the next horizon, ns.
    pub(super) step: u64,
    /// Source of the event that happens, or of a later one of the same time that led to it.
    pub(super) cause: u32,
    /// Number of that event among those of its source at that time ([`super::ties`]).
    pub(super) nth: u32,
    /// Time of the latest timer of the process whose turn it is, and the largest source of those at that time.
    pub(super) fired: (u64, u32),
    /// Of that one: its number among those of that source and time.
    pub(super) fired_nth: u32,
    /// See [`Network::timers_until`](crate::Network::timers_until); none: 0.
    pub(super) timers_until: u64,
    /// The host has a packet behind which another one of its batch comes.
    pub(crate) is_followed: bool,
    /// Source of a timer of all that fires now.
    pub(super) floor: u32,
    /// The process whose turn it is.
    pub(super) running: u32,
    /// The part of it that this worker of a team moves; alone: None.
    pub(super) part: Option<Box<Part<P>>>,
}

/// No process.
pub(super) const NOBODY: u32 = u32::MAX;

/// The promise of the calls below.
pub(super) const PLANNED: &str = "horizons are planned before they are used";

/// Counts an event at `at` in `events`, or leaves it to `later`, where it is not before `horizon`.
#[inline]
pub(super) fn count_event(events: &mut u64, later: &mut Vec<u64>, at: u64, horizon: u64) {
    if at < horizon {
        *events += 1;
    } else {
        later.push(at);
    }
}

impl<P> Horizons<P> {
    /// Time, link, number among that link's packets at the time, and `inbox` for the first packet that comes to it
    /// before `horizon`.
    pub(super) fn head(&self, inbox: u32, horizon: u64) -> Option<Reverse<(u64, u32, u32, u32)>> {
        let of_it = &self.inboxes[inbox as usize];
        let &(at, _) = of_it.queue.front()?;
        let nth = of_it.ties.as_ref().map_or(0, |ties| if at < ties.first() { 0 } else { ties.peek(at) });
        (at < horizon).then(|| Reverse((at, self.plan.last_links[inbox as usize], nth, inbox)))
    }

    /// The packet of `inbox` that is handled now came at `at`: its number among its link's at that time.
    pub(super) fn take_tie(&mut self, inbox: u32, at: u64) -> u32 {
        match &mut self.inboxes[inbox as usize].ties {
            Some(ties) if at >= ties.first() => ties.take(at),
            _ => 0,
        }
    }

    /// Returns true if `delay` is one that `link` may be given.
    pub(crate) fn allows_delay(&self, link: u32, delay: Span) -> bool {
        delay.0 >= self.plan.delays[link as usize]
    }

    /// Keeps `packet`, which comes to a host or its last link at `at`, if that host is another worker's.
    #[inline]
    pub(super) fn keep_for_other(&mut self, at: u64, packet: P) -> bool
    where
        P: Routed,
    {
        self.part.as_mut().is_some_and(|part| part.keep_for_other(at, packet))
    }

    /// `process` begins its turn, perhaps behind the event after which it has paused.
    #[inline]
    pub(super) fn go_on(&mut self, process: u32) {
        let (at, order) = self.processes[process as usize].paused_at;
        (self.fired, self.fired_nth) = ((at, (order >> 32) as u32), (order as u32) >> 1);
    }

    /// Time of the next timer that looks at another process, at `reached` or later.
    pub(super) fn next_look(&mut self, reached: u64) -> u64 {
        let passed = self.looks.iter().take_while(|&&at| at < reached).count();
        self.looks.drain(..passed);
        self.looks.first().copied().unwrap_or(u64::MAX)
    }

    /// `process` has a packet on its way to it.
    #[inline]
    pub(super) fn activate(&mut self, process: u32) {
        let is_active = &mut self.is_active[process as usize];
        if !*is_active {
            *is_active = true;
            self.active.push(process);
        }
    }
}
