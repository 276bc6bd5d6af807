//! The share of commands that the command window held up.

/// Counters of the commands that the command window held up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WindowUse {
    /// Commands submitted while the session was up.
    pub submitted: u64,
    /// Of them, those that had to wait until the window opened.
    pub waited: u64,
    /// The widest that the target has offered.
    pub width: u32,
}

impl WindowUse {
    /// Returns whether the window, and not the caller, was what limited the commands under way: more often than not.
    pub fn is_limit(&self) -> bool {
        2 * self.waited > self.submitted
    }

    /// The same since `before` was taken.
    #[must_use]
    pub fn since(&self, before: &WindowUse) -> WindowUse {
        let (submitted, waited) = (self.submitted - before.submitted, self.waited - before.waited);
        WindowUse { submitted, waited, ..*self }
    }
}
