//! I/O threads for operations that may block on a drive: syncs, reads outside of the page cache. They pass a
//! connection's command queue on to the drive, while the connection's thread serves the network.

use crate::connection::ready_connections;
use crate::server::Shared;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use storage::iscsi::Work;

/// I/O threads per LUN: a drive gains little from more concurrent requests (tgtd has as many).
const MAX_THREADS: usize = 16;

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Work>,
    /// Threads that wait for work.
    idle: usize,
    threads: Vec<JoinHandle<()>>,
    stop: bool,
}

/// The I/O threads of one LUN, started on demand.
#[derive(Debug, Default)]
pub(crate) struct IoThreads {
    state: Mutex<State>,
    ready: Condvar,
}

impl IoThreads {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues work; the command windows of sessions bound the queue. Returns the work if there is no thread and none
    /// could be started.
    pub fn submit(self: &Arc<IoThreads>, shared: &Weak<Shared>, work: Work) -> Option<Work> {
        let mut state = self.state();
        if state.idle <= state.queue.len() && state.threads.len() < MAX_THREADS {
            let (pool, shared) = (Arc::clone(self), Weak::clone(shared));
            let made = std::thread::Builder::new().name("iscsi-io".to_owned()).spawn(move || pool.run(&shared));
            match made {
                Ok(thread) => state.threads.push(thread),
                Err(_) if state.threads.is_empty() => return Some(work),
                Err(_) => {}
            }
        }
        state.queue.push_back(work);
        drop(state);
        self.ready.notify_one();
        None
    }

    fn run(&self, shared: &Weak<Shared>) {
        loop {
            let work = {
                let mut state = self.state();
                loop {
                    if let Some(work) = state.queue.pop_front() {
                        break work;
                    }
                    if state.stop {
                        return;
                    }
                    state.idle += 1;
                    state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
                    state.idle -= 1;
                }
            };
            let Some(shared) = shared.upgrade() else { return };
            let outcome = shared.perform(work.lun, &work.op);
            let ready = {
                let mut target = shared.target();
                target.handle_work(work.id, outcome);
                ready_connections(&mut target)
            };
            shared.wake(&ready, None);
        }
    }

    /// Ends the threads after the queued work.
    pub fn stop(&self) {
        let threads = {
            let mut state = self.state();
            state.stop = true;
            std::mem::take(&mut state.threads)
        };
        self.ready.notify_all();
        for thread in threads {
            // A thread that panicked needs nothing more.
            let _ = thread.join();
        }
    }
}
