//! I/O threads for operations that may block on a drive: syncs, reads outside of the page cache. They pass a
//! connection's command queue on to the drive, while the connection's thread serves the network.

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

/// Performs work in a thread of its own.
pub(crate) trait Worker: Send + Sync + 'static {
    /// Performs `work` and reports its outcome.
    fn complete(&self, work: Work);
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
    pub fn submit<W: Worker>(self: &Arc<IoThreads>, worker: &Weak<W>, work: Work) -> Option<Work> {
        let mut state = self.state();
        if state.idle <= state.queue.len() && state.threads.len() < MAX_THREADS {
            let (pool, worker) = (Arc::clone(self), Weak::clone(worker));
            let made = std::thread::Builder::new().name("iscsi-io".to_owned()).spawn(move || pool.run(&worker));
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

    fn run<W: Worker>(&self, worker: &Weak<W>) {
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
            let Some(worker) = worker.upgrade() else { return };
            worker.complete(work);
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
