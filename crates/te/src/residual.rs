//! Effects of a move that remain with a mitigation.

use crate::link_view::load_of_others;
use crate::mitigation::{AllowedMitigations, HoldConfig, Mitigation};
use crate::view::Paths;
use units::{Rate, Span};

/// Effects of a move that remain with a mitigation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Residual {
    /// Time for which the old path still delivers while the new one does.
    pub overlap: Span,
    /// Time for which nothing arrives.
    pub pause: Span,
    /// Bytes dropped at the merging router.
    pub lost: u64,
}

/// Effects of a move with `overlap` that remain with `mitigation`; one that is not allowed has no effect.
pub(crate) fn residual(mitigation: Mitigation, rate: Rate, overlap: Span, paths: &Paths) -> Residual {
    let AllowedMitigations { delay_difference: difference, hold_buffer: hold, cwnd_reduction: reduction } =
        paths.allowed;
    let hold = hold.filter(|_| mitigation.holds());
    let reduction = reduction.filter(|_| mitigation.reduces_cwnd());
    let by = |delay: Option<Span>| {
        delay.map(|delay| (difference.0.saturating_sub(delay.0), delay.0.saturating_sub(difference.0)))
    };
    let (held, cut) = (by(hold.map(|hold| hold.delay)), by(reduction));
    let Some((uncovered, _)) = held.or(cut) else {
        return Residual { overlap, pause: Span::ZERO, lost: overflow(rate, overlap, paths) };
    };
    let lost = match (hold, cut) {
        (_, Some((surplus, _))) => overflow(rate, Span(surplus), paths),
        (Some(hold), None) => hold.overflow(rate, hold.delay, paths),
        (None, None) => 0,
    };
    // Packets queued before the sender's link reach the router after the move: only a hold delays them.
    let behind = paths.ingress.map_or(Span::ZERO, |link| link.wait()).min(difference);
    let uncovered = if held.is_some() { uncovered } else { uncovered.max(behind.0) };
    let pause = [held, cut].into_iter().flatten().map(|(_, longer)| longer).max().unwrap_or(0);
    Residual { overlap: Span(uncovered), pause: Span(pause), lost }
}

impl HoldConfig {
    /// Bytes dropped after the merge when a flow of `rate`, and the other held flows, were held for `hold`.
    fn overflow(&self, rate: Rate, hold: Span, paths: &Paths) -> u64 {
        let Some(egress) = paths.egress else { return 0 };
        let line = u128::from(self.line.0);
        let (leaves, come) = match self.share_ppm {
            Some(share) => {
                let faster = u128::from(rate.0) * (1_000_000 + u128::from(share)) / 1_000_000;
                (faster.min(line), rate)
            }
            None => (line, Rate(rate.0.saturating_add(self.pacing.held_rate.0))),
        };
        let others = u128::from(load_of_others(egress.load.0.saturating_sub(come.0), egress.capacity).0);
        let excess = (others + leaves).saturating_sub(u128::from(egress.capacity.0));
        let gains = leaves.saturating_sub(u128::from(come.0));
        // A drain rate no faster than the flow does not grow the queue behind.
        let grows = (u128::from(come.data_in(hold).0) * excess).checked_div(gains).unwrap_or(0);
        (grows as u64).saturating_sub(egress.free_queue())
    }
}

/// Bytes dropped at the merging router while both paths deliver.
fn overflow(rate: Rate, overlap: Span, paths: &Paths) -> u64 {
    let Some(egress) = paths.egress else { return 0 };
    // The load before still arrives over IP, and the flow's rate once more over the lightpath.
    let excess = Rate((rate.0.saturating_add(egress.load.0.max(rate.0))).saturating_sub(egress.capacity.0));
    excess.data_in(overlap).0.saturating_sub(egress.free_queue())
}
