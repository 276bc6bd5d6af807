//! Threads for what waits for a drive: syncs, reads that are not in the page cache. So a queue of commands of one connection is a
//! queue at the drive, and the connection's thread goes on with the network.

use crate::connection::touched;
use crate::server::Shared;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use storage::iscsi::Work;

/// Threads of a unit: a drive gains little from more requests at once (tgtd has as many).
const THREADS: usize = 16;

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Work>,
    /// Threads that wait for work.
    idle: usize,
    threads: Vec<JoinHandle<()>>,
    stop: bool,
}

/// The threads of one unit. They are made when there is work and none is idle.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
    ready: Condvar,
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has work done. What waits is bounded by the commands that sessions may have under way. Gives the work back if there is no
    /// thread and none could be made.
    pub fn put(self: &Arc<Pool>, shared: &Weak<Shared>, work: Work) -> Option<Work> {
        let mut state = self.state();
        if state.idle <= state.queue.len() && state.threads.len() < THREADS {
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
            let touched = {
                let mut target = shared.target();
                target.handle_work(work.id, outcome);
                touched(&mut target)
            };
            shared.wake(&touched, None);
        }
    }

    /// Ends the threads; what is queued is done before.
    pub fn stop(&self) {
        let threads = {
            let mut state = self.state();
            state.stop = true;
            std::mem::take(&mut state.threads)
        };
        self.ready.notify_all();
        for thread in threads {
            // One that panicked has nothing left to do.
            let _ = thread.join();
        }
    }
}
