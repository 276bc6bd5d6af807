//! State that the connections of a target share.

use crate::adaptive_poll::Spinners;
use crate::clock;
use crate::file::FileMedium;
use crate::io_threads::{IoThreads, Worker};
use crate::log::Log;
use crate::logins::LOGINS;
use crate::waker::Waker;
use admission::Pending;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use storage::iscsi::{ConnectionId, Target, Work};
use storage::scsi::Medium;

/// Connections that the last calls ready.
pub(crate) fn ready_connections(target: &mut Target) -> Vec<ConnectionId> {
    std::iter::from_fn(|| target.poll_ready()).collect()
}

/// State shared by all connections.
pub(crate) struct Shared {
    target: Mutex<Target>,
    media: Vec<FileMedium>,
    io_threads: Vec<Arc<IoThreads>>,
    /// Handed to the I/O threads.
    own: Weak<Shared>,
    wakers: Mutex<BTreeMap<ConnectionId, Arc<Waker>>>,
    pub stop: AtomicBool,
    pub(crate) spinners: Spinners,
    /// Those that have not logged in.
    pending_logins: Mutex<Pending<ConnectionId>>,
    log: Mutex<Log>,
    /// Connections accepted so far.
    pub(crate) accepted: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The state of a target that serves `media`, its units by number.
    pub(crate) fn new(target: Target, media: Vec<FileMedium>) -> Arc<Shared> {
        Arc::new_cyclic(|own| Shared {
            io_threads: media.iter().map(|_| Arc::default()).collect(),
            own: Weak::clone(own),
            target: Mutex::new(target),
            media,
            wakers: Mutex::default(),
            stop: AtomicBool::new(false),
            spinners: Spinners::new(),
            pending_logins: Mutex::new(Pending::new(LOGINS, u64::from_ne_bytes(clock::entropy()))),
            log: Mutex::default(),
            accepted: AtomicU64::new(0),
        })
    }

    pub(crate) fn target(&self) -> MutexGuard<'_, Target> {
        locked(&self.target)
    }

    fn wakers(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, Arc<Waker>>> {
        locked(&self.wakers)
    }

    pub(crate) fn add_waker(&self, id: ConnectionId, waker: &Arc<Waker>) {
        self.wakers().insert(id, Arc::clone(waker));
    }

    pub(crate) fn remove_waker(&self, id: ConnectionId) {
        self.wakers().remove(&id);
    }

    /// Connections with a thread.
    pub(crate) fn open_connections(&self) -> usize {
        self.wakers().len()
    }

    pub(crate) fn pending_logins(&self) -> MutexGuard<'_, Pending<ConnectionId>> {
        locked(&self.pending_logins)
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        locked(&self.log)
    }

    /// Performs an operation.
    pub(crate) fn perform(&self, lun: usize, op: &storage::scsi::Op) -> storage::scsi::Outcome {
        self.media[lun].perform(op)
    }

    /// Performs an operation that does not block; hands others to the I/O threads. None: the outcome comes later.
    pub(crate) fn begin(&self, work: Work) -> Option<(u64, storage::scsi::Outcome)> {
        let medium = &self.media[work.lun];
        if let Some(outcome) = medium.try_immediate(&work.op) {
            return Some((work.id, outcome));
        }
        let back = self.io_threads[work.lun].submit(&self.own, work)?;
        Some((back.id, self.perform(back.lun, &back.op)))
    }

    /// Wakes the connections `ids`, except the caller's own.
    pub(crate) fn wake(&self, ids: &[ConnectionId], except: Option<ConnectionId>) {
        if ids.iter().all(|&id| Some(id) == except) {
            return;
        }
        let wakers = self.wakers();
        ids.iter().filter(|&&id| Some(id) != except).filter_map(|id| wakers.get(id)).for_each(|waker| waker.wake());
    }

    /// Wakes every connection.
    pub(crate) fn wake_all(&self) {
        self.wakers().values().for_each(|waker| waker.wake());
    }

    /// Runs the core's timers, and logs notices of the files.
    pub(crate) fn handle_timeout(&self) {
        let ready = {
            let mut target = self.target();
            target.handle_timeout(clock::now());
            ready_connections(&mut target)
        };
        self.wake(&ready, None);
        for (number, medium) in self.media.iter().enumerate() {
            if let Some(notice) = medium.take_notice() {
                self.log().unlimited(format!("LUN {number}: {notice}"));
            }
        }
    }
    /// Ends the I/O threads after the submitted work.
    pub(crate) fn stop_io_threads(&self) {
        self.io_threads.iter().for_each(|threads| threads.stop());
    }
}

impl Worker for Shared {
    fn complete(&self, work: Work) {
        let outcome = self.perform(work.lun, &work.op);
        let ready = {
            let mut target = self.target();
            target.handle_work(work.id, outcome);
            ready_connections(&mut target)
        };
        self.wake(&ready, None);
    }
}
