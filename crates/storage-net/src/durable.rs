//! Making what was written durable: one fdatasync(2) for all that wait for one.
//!
//! Linux tells of data that could not be written back once per open file (errseq_t, lib/errseq.c): of several that sync at the same
//! time one hears of it, and who syncs later hears nothing, though it may be their data that is gone. So the syncs of a file come one
//! after the other, all that waited for one share its outcome, and after an error none succeeds any more.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct State {
    /// Syncs that were begun, and how many of them are done; one runs where they differ.
    begun: u64,
    done: u64,
    /// The kernel's number of the first error.
    failed: Option<i32>,
    /// Nobody was told of the error.
    is_news: bool,
}

/// The syncs of a file.
#[derive(Debug, Default)]
pub(crate) struct Syncs {
    state: Mutex<State>,
    ended: Condvar,
}

impl Syncs {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when a sync that began after this call is done, by this thread or another. `sync` is fdatasync(2).
    pub fn sync(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.state();
        // One that runs may have begun before the caller's data was written.
        let wanted = state.begun + 1;
        loop {
            if let Some(number) = state.failed {
                return Err(io::Error::from_raw_os_error(number));
            }
            if state.done >= wanted {
                return Ok(());
            }
            if state.begun == state.done {
                break;
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.begun += 1;
        drop(state);
        let outcome = sync();
        let mut state = self.state();
        state.done += 1;
        if let Err(error) = &outcome {
            (state.failed, state.is_news) = (Some(error.raw_os_error().unwrap_or(libc::EIO)), true);
        }
        drop(state);
        self.ended.notify_all();
        outcome
    }

    /// What there is to say of a sync that failed, once.
    pub fn news(&self) -> Option<String> {
        let mut state = self.state();
        let error = io::Error::from_raw_os_error(state.failed?);
        std::mem::take(&mut state.is_news).then(|| {
            format!("fdatasync: {error}: nothing is acknowledged as durable any more until the target is started anew")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::sync::Arc;

    #[test]
    fn those_that_wait_share_one_sync_that_began_after_they_came() {
        let (syncs, count) = (Arc::new(Syncs::default()), Arc::new(AtomicUsize::new(0)));
        let (open, gate) = channel::<()>();
        let (began, has_begun) = channel();
        let first = {
            let (syncs, count) = (Arc::clone(&syncs), Arc::clone(&count));
            std::thread::spawn(move || {
                syncs.sync(|| {
                    began.send(()).unwrap();
                    gate.recv().unwrap();
                    count.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                })
            })
        };
        has_begun.recv().unwrap();
        let others: Vec<_> = (0..8)
            .map(|_| {
                let (syncs, count) = (Arc::clone(&syncs), Arc::clone(&count));
                std::thread::spawn(move || {
                    syncs.sync(|| {
                        count.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    })
                })
            })
            .collect();
        // The one that runs is no good to them: none returns before it is over.
        // SAFETY: no entries are read: it waits.
        unsafe { libc::poll(std::ptr::null_mut(), 0, 50) };
        assert!(others.iter().all(|other| !other.is_finished()));
        open.send(()).unwrap();
        first.join().unwrap().unwrap();
        others.into_iter().for_each(|other| other.join().unwrap().unwrap());
        assert_eq!(count.load(Ordering::SeqCst), 2, "one for the first, one for the eight");
    }

    #[test]
    fn after_an_error_nothing_counts_as_durable_and_that_is_said_once() {
        let syncs = Syncs::default();
        syncs.sync(|| Ok(())).unwrap();
        assert_eq!(syncs.news(), None);
        syncs.sync(|| Err(io::Error::from_raw_os_error(libc::EIO))).unwrap_err();
        // The kernel would say yes the next time.
        assert_eq!(syncs.sync(|| Ok(())).unwrap_err().raw_os_error(), Some(libc::EIO));
        assert!(syncs.news().unwrap().contains("fdatasync"));
        assert_eq!(syncs.news(), None);
    }
}
