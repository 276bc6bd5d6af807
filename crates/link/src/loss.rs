//! Loss models: which packets a link loses.
//!
//! Every model draws the distance to the next loss, so that a packet costs a subtraction.
//! Independent trials with probability p until the first success are a geometric distance; the result has the same
//! distribution as one drawing per packet.
//!
//! If packets are lost independently (of each other, or bit by bit), each flow has a stream of its own: another
//! flow on the line does not change what this one loses, and the sum of them is as independent as before. Bursts,
//! runs, periods and lists are properties of the line: they count packets whosever they are.

use crate::config::{LossModel, E12, E18};
use crate::framing::Framing;
use crate::per_flow_loss::PerFlowLoss;
use crate::random::{stream_seed, Geometric, Random};

/// A loss model with its state, what each packet needs first.
#[repr(C)]
pub(crate) struct Loss {
    /// Packets (or bits) that still pass before the line's next loss, or that of `flow`; `u64::MAX` is as good as
    /// never.
    gap: u64,
    /// The flow that `gap` is of, where losses are drawn by flow.
    flow: u64,
    by_flow: bool,
    by_bits: bool,
    per_flow: Option<Box<PerFlowLoss>>,
    source: Source,
    random: Random,
    seed: u64,
    framing: Framing,
}

enum Source {
    Never,
    Bursty(Box<Bursty>),
    Runs { begins: Geometric, length: u64, left: u64 },
    EveryNth { n: u64 },
    List { packets: Vec<u64>, next: usize },
}

impl Loss {
    pub fn new(model: &LossModel, framing: Framing, seed: u64) -> Loss {
        let per_flow = match *model {
            LossModel::Independent { probability_e12: p } if p > 0 => Some(Geometric::new(p, E12)),
            LossModel::BitErrorRate { probability_e18: p } if p > 0 => Some(Geometric::new(p, E18)),
            _ => None,
        };
        let source = match *model {
            LossModel::None | LossModel::Independent { .. } | LossModel::BitErrorRate { .. } => Source::Never,
            LossModel::GilbertElliott { good_to_bad_e12, bad_to_good_e12, loss_good_e12, loss_bad_e12 } => {
                if loss_good_e12 == 0 && (loss_bad_e12 == 0 || good_to_bad_e12 == 0) {
                    Source::Never
                } else {
                    Source::bursty([good_to_bad_e12, bad_to_good_e12], [loss_good_e12, loss_bad_e12], E12)
                }
            }
            LossModel::BitErrorBursts { good_to_bad_e18, bad_to_good_e18, error_bad_e18 } => {
                if good_to_bad_e18 == 0 || error_bad_e18 == 0 {
                    Source::Never
                } else {
                    Source::bursty([good_to_bad_e18, bad_to_good_e18], [0, error_bad_e18], E18)
                }
            }
            LossModel::Runs { begins_e12: 0, .. } => Source::Never,
            LossModel::Runs { begins_e12, length } => {
                Source::Runs { begins: Geometric::new(begins_e12, E12), length, left: 0 }
            }
            LossModel::EveryNth { n } => Source::EveryNth { n },
            LossModel::List { ref packets } => Source::List { packets: packets.clone(), next: 0 },
        };
        let by_bits = matches!(model, LossModel::BitErrorRate { .. } | LossModel::BitErrorBursts { .. });
        let per_flow = per_flow.map(|distance| Box::new(PerFlowLoss::new(distance, seed)));
        let (by_flow, random) = (per_flow.is_some(), Random::new(seed));
        let mut loss = Loss { gap: 0, flow: 0, by_flow, by_bits, per_flow, source, random, seed, framing };
        loss.gap = match &mut loss.per_flow {
            Some(per_flow) => per_flow.switch(0, 0),
            None => loss.draw(),
        };
        loss
    }

    /// Another model from here on, with per_flow of its own; it counts from the next packet.
    pub fn replace(&mut self, model: &LossModel) {
        *self = Loss::new(model, self.framing, stream_seed(self.seed, "next"));
    }

    /// Returns whether the next packet to enter the line is lost. `flow` is asked only where it matters.
    #[inline]
    pub fn loses(&mut self, bytes: u32, flow: impl FnOnce() -> u64) -> bool {
        let mut distance = 1;
        if self.by_flow {
            let flow = flow();
            if flow != self.flow {
                self.switch(flow);
            }
        }
        if self.by_bits {
            distance = u64::from(self.framing.frame_bytes(bytes)) * 8;
        }
        if self.gap >= distance {
            self.gap -= distance;
            return false;
        }
        if let Source::Bursty(bursty) = &mut self.source {
            bursty.pass(distance - self.gap - 1, &mut self.random);
        }
        self.gap = self.draw();
        true
    }

    /// Returns true if nothing is ever lost.
    pub fn is_never(&self) -> bool {
        matches!(self.source, Source::Never) && self.per_flow.is_none()
    }

    /// Packets of `bytes` that certainly pass next, if all are of [`Loss::flow`].
    #[inline]
    pub fn certain(&self, bytes: u32) -> u64 {
        if self.by_bits {
            // A line that has carried nothing yet asks for no bytes.
            self.gap.checked_div(self.distance(bytes)).unwrap_or(0)
        } else {
            self.gap
        }
    }

    /// The flow whose losses are drawn now; None: losses are not drawn by flow.
    #[inline]
    pub fn flow(&self) -> Option<u64> {
        self.by_flow.then_some(self.flow)
    }

    /// `count` packets of `bytes` pass, which were certain to.
    #[inline]
    pub fn pass_certain(&mut self, bytes: u32, count: u64) {
        self.gap -= if self.by_bits { self.distance(bytes) * count } else { count };
    }

    /// Distance that a packet of `bytes` takes: 1, or its bits.
    pub fn distance(&self, bytes: u32) -> u64 {
        if self.by_bits {
            u64::from(self.framing.frame_bytes(bytes)) * 8
        } else {
            1
        }
    }

    /// Distance to the next loss of `flow`, or of the line; `u64::MAX`: never.
    pub fn gap_of(&mut self, flow: u64) -> u64 {
        if self.by_flow && flow != self.flow {
            self.switch(flow);
        }
        self.gap
    }

    /// Passes packets of `flow` that take `distance` together, none of which is lost.
    pub fn pass(&mut self, flow: u64, distance: u64) {
        let gap = self.gap_of(flow);
        if gap != u64::MAX {
            self.gap = gap - distance;
        }
    }

    fn switch(&mut self, flow: u64) {
        if let Some(per_flow) = &mut self.per_flow {
            self.gap = per_flow.switch(flow, self.gap);
        }
        self.flow = flow;
    }

    /// Draws the distance to the loss after this one. A bit error ends its packet: what follows it there does not
    /// matter, and the bits of the next packet know nothing of it.
    #[cold]
    fn draw(&mut self) -> u64 {
        if let Some(per_flow) = &mut self.per_flow {
            return per_flow.draw();
        }
        match &mut self.source {
            Source::Never => u64::MAX,
            Source::Bursty(bursty) => bursty.draw(&mut self.random),
            Source::Runs { left, .. } if *left > 0 => {
                *left -= 1;
                0
            }
            Source::Runs { begins, length, left } => {
                *left = *length - 1;
                begins.sample(&mut self.random)
            }
            Source::EveryNth { n } => *n - 1,
            Source::List { packets, next } => {
                let before = next.checked_sub(1).map_or(0, |i| packets[i]);
                let gap = packets.get(*next).map_or(u64::MAX, |number| number - before - 1);
                *next += 1;
                gap
            }
        }
    }
}

impl Source {
    /// Probabilities of the changes from good and from bad, and of a loss in good and in bad, 1/`unit`.
    fn bursty(change: [u64; 2], loss: [u64; 2], unit: u64) -> Source {
        let [change, loss] = [change, loss].map(|of| of.map(|p| Geometric::new(p, unit)));
        Source::Bursty(Box::new(Bursty { change, loss, bad: false, stay: None }))
    }
}

/// Gilbert-Elliott: sojourns and distances within a sojourn are both geometric.
struct Bursty {
    /// Packets before the state changes: from good, from bad.
    change: [Geometric; 2],
    /// Packets that pass before a loss: in good, in bad.
    loss: [Geometric; 2],
    bad: bool,
    /// Packets left in this state; drawn on first use.
    stay: Option<u64>,
}

impl Bursty {
    /// Passes the rest of a lost packet: `trials` (bits) of which the losses do not matter.
    fn pass(&mut self, mut trials: u64, random: &mut Random) {
        while trials > 0 {
            let stay = match self.stay {
                Some(u64::MAX) => return,
                Some(stay) => stay,
                None => self.change[usize::from(self.bad)].sample(random),
            };
            if trials <= stay {
                self.stay = Some(stay - trials);
                return;
            }
            trials -= stay;
            self.bad = !self.bad;
            self.stay = Some(self.change[usize::from(self.bad)].sample(random).saturating_add(1));
        }
    }

    fn draw(&mut self, random: &mut Random) -> u64 {
        let mut passed = 0u64;
        loop {
            let state = usize::from(self.bad);
            let stay = match self.stay {
                Some(stay) => stay,
                // The chain may change before the first packet.
                None => self.change[state].sample(random),
            };
            let gap = self.loss[state].sample(random);
            if gap < stay {
                self.stay = Some(if stay == u64::MAX { stay } else { stay - gap - 1 });
                return passed.saturating_add(gap);
            }
            if stay == u64::MAX {
                self.stay = Some(stay);
                return u64::MAX;
            }
            passed = passed.saturating_add(stay);
            self.bad = !self.bad;
            // The packet that caused the change is in the new state; from the next on, it may change again.
            self.stay = Some(self.change[usize::from(self.bad)].sample(random).saturating_add(1));
        }
    }
}

#[cfg(test)]
#[path = "loss_tests.rs"]
mod tests;
