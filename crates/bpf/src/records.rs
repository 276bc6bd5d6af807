//! Records that BPF programs write into a ring buffer.

use crate::error::{Error, Result};
use libbpf_rs::{Map, MapHandle, RingBuffer, RingBufferBuilder};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A ring buffer and what was taken out of it. It may be emptied in one thread and read in another.
pub struct Records {
    ring: Mutex<RingBuffer<'static>>,
    taken: Arc<Mutex<Vec<u8>>>,
}

impl Records {
    pub(crate) fn of(map: &Map<'_>) -> Result<Records> {
        let failed = |error| Error::call("read the ring buffer", &error);
        let map = MapHandle::try_from(map).map_err(failed)?;
        let taken = Arc::new(Mutex::new(vec![]));
        let into = Arc::clone(&taken);
        let mut builder = RingBufferBuilder::new();
        let take = move |record: &[u8]| {
            lock(&into).extend_from_slice(record);
            0
        };
        builder.add(&map, take).map_err(failed)?;
        // libbpf has mapped its memory, and needs the descriptor no longer.
        let ring = builder.build().map_err(failed)?;
        Ok(Records { ring: Mutex::new(ring), taken })
    }

    /// Empties the ring buffer, so that there is room for more.
    pub fn collect(&self) -> Result<()> {
        let read = lock(&self.ring).consume_raw();
        if read < 0 {
            return Err(Error::returned("read the ring buffer", read));
        }
        Ok(())
    }

    /// Returns the records since the last call, one behind the other.
    pub fn take(&self) -> Result<Vec<u8>> {
        self.collect()?;
        Ok(std::mem::take(&mut *lock(&self.taken)))
    }
}

/// A record is whole or not there, whoever panicked meanwhile.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
