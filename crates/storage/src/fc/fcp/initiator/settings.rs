//! Settings of an initiator.

/// Settings of an initiator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Commands under way at one target.
    pub queue_depth: usize,
    /// Times that a command is sent before it fails. COMPARE AND WRITE and PERSISTENT RESERVE OUT are sent once: done
    /// twice, they may fail or do something else.
    pub attempts: u32,
    /// Time for an answer, ns; then the exchange is aborted.
    pub command_timeout_ns: u64,
    /// Silence of an exchange, ns, after which its target is asked for its state (REC); FCP-3's REC_TOV, E_D_TOV and a
    /// second.
    pub rec_timeout_ns: u64,
    /// Time for the answer to an abort, ns.
    pub abort_timeout_ns: u64,
    /// Aborts without an answer after which the login with the target is made anew.
    pub aborts: u32,
    /// Time that commands wait for a target that is not logged in, ns. Linux's dev_loss_tmo.
    pub target_loss_ns: u64,
    /// Exchange numbers of commands, from 0: fewer than [`crate::fc::nport::LINK_SERVICE_EXCHANGES`].
    pub exchanges: u16,
}

impl Default for Settings {
    fn default() -> Settings {
        const SECOND: u64 = 1_000_000_000;
        Settings {
            queue_depth: 32,
            attempts: 6,
            command_timeout_ns: 30 * SECOND,
            rec_timeout_ns: 3 * SECOND,
            abort_timeout_ns: 4 * SECOND,
            aborts: 3,
            target_loss_ns: 60 * SECOND,
            exchanges: crate::fc::nport::LINK_SERVICE_EXCHANGES,
        }
    }
}
