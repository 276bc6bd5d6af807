//! Which session a connection is of.

use std::num::NonZeroU32;

/// Number of a session in its run, from 0; absent in 4 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionNumber(NonZeroU32);

const _: () = assert!(std::mem::size_of::<Option<SessionNumber>>() == 4, "it lies among what packets need");

impl SessionNumber {
    /// The session at place `index`.
    ///
    /// # Panics
    /// From 2^32 - 1 sessions on.
    pub fn new(index: usize) -> SessionNumber {
        let number = u32::try_from(index).ok().and_then(|index| NonZeroU32::MIN.checked_add(index));
        SessionNumber(number.expect("a run has fewer than 2^32 - 1 sessions"))
    }

    /// Its place among the run's sessions.
    #[inline]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}
