//! The part of a run that one worker of a team moves.

use super::shards::Shards;
use super::team::{Report, Team};
use crate::routes::Routed;
use std::sync::Arc;

/// The part of a worker, and what it has for the others.
pub(super) struct Part<P> {
    pub(super) worker: usize,
    pub(super) team: Arc<Team<P>>,
    pub(super) shards: Shards,
    /// Packets for hosts, by worker.
    pub(super) packets: Vec<Vec<(u64, P)>>,
    /// All workers together, as of the latest barrier.
    pub(super) all: Report,
    /// Nothing has happened since then that changes when something happens next.
    pub(super) is_fresh: bool,
}

impl<P> Part<P> {
    /// The worker moves `process`.
    pub(super) fn owns_process(&self, process: u32) -> bool {
        self.shards.of_process(process) == self.worker
    }

    /// A timer of all fires, which may set one of a process. Returns whether this worker counts it: one does.
    pub(super) fn fire_timer_of_all(&mut self) -> bool {
        self.is_fresh = false;
        self.worker == 0
    }

    /// The report of all, unless something has happened since that changes when something happens next.
    pub(super) fn all_now(&self) -> Option<&Report> {
        self.is_fresh.then_some(&self.all)
    }

    /// The other workers.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> {
        let worker = self.worker;
        (0..self.team.workers()).filter(move |&other| other != worker)
    }

    /// Keeps `packet`, which comes to a host or its last link at `at`, for the worker of that host; false: its own.
    #[inline]
    pub(super) fn keep_for_other(&mut self, at: u64, packet: P) -> bool
    where
        P: Routed,
    {
        let is_other = self.shards.of_position(packet.hop()) != self.worker;
        if is_other {
            self.keep(at, packet);
        }
        is_other
    }

    /// Keeps `packet`, which comes to a host or its last link at `at`, until all merged links have passed on all.
    #[inline]
    pub(super) fn keep(&mut self, at: u64, packet: P)
    where
        P: Routed,
    {
        self.packets[self.shards.of_position(packet.hop())].push((at, packet));
    }
}
