//! Group sync: one fdatasync(2) for all threads that wait for one.
//!
//! Linux reports a write-back error once per open file (errseq_t, lib/errseq.c): of several concurrent syncs one gets
//! it, and later ones get none, though their data may be lost. So the syncs of a file are serialized, all waiting
//! threads share the outcome, and after an error every further sync fails.

use rustix::io::Errno;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct State {
    /// Syncs begun and syncs done; one runs where they differ.
    begun: u64,
    done: u64,
    /// The kernel's number of the first error.
    failed: Option<i32>,
    /// The error has not been reported.
    unreported: bool,
}

/// The group_sync of a file.
#[derive(Debug, Default)]
pub(crate) struct GroupSync {
    state: Mutex<State>,
    ended: Condvar,
}

impl GroupSync {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when a sync that began after this call is done, by this thread or another. `sync` is fdatasync(2).
    pub fn sync(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.state();
        // A running sync may have begun before the caller's data was written.
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
            (state.failed, state.unreported) = (Some(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())), true);
        }
        drop(state);
        self.ended.notify_all();
        outcome
    }

    /// The report of a failed sync, once.
    pub fn take_notice(&self) -> Option<String> {
        let mut state = self.state();
        let error = io::Error::from_raw_os_error(state.failed?);
        std::mem::take(&mut state.unreported).then(|| {
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
    fn waiting_threads_share_one_later_sync() {
        let (group_sync, count) = (Arc::new(GroupSync::default()), Arc::new(AtomicUsize::new(0)));
        let (open, gate) = channel::<()>();
        let (began, has_begun) = channel();
        let first = {
            let (group_sync, count) = (Arc::clone(&group_sync), Arc::clone(&count));
            std::thread::spawn(move || {
                group_sync.sync(|| {
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
                let (group_sync, count) = (Arc::clone(&group_sync), Arc::clone(&count));
                std::thread::spawn(move || {
                    group_sync.sync(|| {
                        count.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    })
                })
            })
            .collect();
        // The running sync does not count for them: none returns before it ends.
        let _ = rustix::event::poll(&mut [], Some(&crate::waker::milliseconds(50)));
        assert!(others.iter().all(|other| !other.is_finished()));
        open.send(()).unwrap();
        first.join().unwrap().unwrap();
        others.into_iter().for_each(|other| other.join().unwrap().unwrap());
        assert_eq!(count.load(Ordering::SeqCst), 2, "one for the first, one for the eight");
    }

    #[test]
    fn after_an_error_every_sync_fails_and_one_report_is_given() {
        let group_sync = GroupSync::default();
        group_sync.sync(|| Ok(())).unwrap();
        assert_eq!(group_sync.take_notice(), None);
        group_sync.sync(|| Err(Errno::IO.into())).unwrap_err();
        // The kernel's next sync would succeed.
        assert_eq!(group_sync.sync(|| Ok(())).unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
        assert!(group_sync.take_notice().unwrap().contains("fdatasync"));
        assert_eq!(group_sync.take_notice(), None);
    }
}
