//! The limit of a flow's rate: scenarios A to D of Moura, Pras, Fioreze and de Boer (2013).

use crate::view::Paths;

/// The limit of a flow's rate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Limit {
    /// Scenario A: a window, or the application; no line is full.
    Window,
    /// Scenario B: the sender's line.
    Sender,
    /// Scenario C: the IP path's core.
    Core,
    /// Scenario D: the receiver's line, behind the merging router.
    Receiver,
}

/// The limit of a flow by its full links; of several the last on its path, which costs most.
pub(crate) fn limit_of(paths: &Paths) -> Limit {
    if paths.egress.is_some_and(|link| link.is_full()) {
        Limit::Receiver
    } else if paths.core.is_full() {
        Limit::Core
    } else if paths.ingress.is_some_and(|link| link.is_full()) {
        Limit::Sender
    } else {
        Limit::Window
    }
}
