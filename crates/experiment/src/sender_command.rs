//! Commands to senders about moves of their packets, by events and by the manager alike.

use spec::{CwndReductionSpec, ReorderingToleranceSpec};
use tcp::{CwndReduction, Endpoint};
use units::{Span, Time};

/// The move that a command is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoveId {
    /// Index of the event in the spec.
    Event(usize),
    /// Index of the move in the manager's log of moves.
    Entry(usize),
}

/// A sender's preparation for a move.
#[derive(Clone, Debug)]
pub struct Preparation {
    /// It reduces its window.
    pub cwnd_reduction: Option<CwndReductionSpec>,
    /// It waits longer before it takes a late packet for lost.
    pub reordering_tolerance: Option<ReorderingToleranceSpec>,
}

/// A command to the sender of a flow.
#[derive(Clone, Debug)]
pub enum SenderCommand {
    /// A move comes.
    Prepare(Preparation),
    /// The window that it gave up is its own again.
    Restore,
}

/// A command to a sender.
#[derive(Clone, Debug)]
pub struct AddressedCommand {
    /// Index of the flow.
    pub flow: usize,
    /// For which move.
    pub why: MoveId,
    /// The command.
    pub command: SenderCommand,
}

impl Preparation {
    /// Gives `sender` the command; returns the window that it gave up.
    pub fn apply(&self, now: Time, sender: &mut Endpoint) -> Option<CwndReduction> {
        let cwnd_reduction = self.cwnd_reduction.as_ref();
        let reduced = cwnd_reduction.and_then(|cwnd_reduction| {
            sender.reduce_cwnd(now, Span(cwnd_reduction.delay_ns), cwnd_reduction.cwnd_fraction_ppm)
        });
        if let Some(ReorderingToleranceSpec { delay_ns, duration_ns }) = self.reordering_tolerance {
            // Nothing is on its way before the first sample.
            let default = Span(sender.srtt().map_or(0, |srtt| 2 * srtt.0) + delay_ns);
            sender.tolerate_reordering(now, Span(delay_ns), duration_ns.map_or(default, Span));
        }
        reduced
    }
}
