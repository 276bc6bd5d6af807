//! What is done about the manager's moves so that they hurt less: gates at moving routers, words to senders, and what came of it.
//!
//! Each flow has a gate of its own before each lightpath, where the operator lets moving routers keep packets back: those that are on the
//! lightpath already do not wait for the one that comes. What gates let go for one line they let go in turn ([`crate::gates`]).
//! Gates and words are those of a move by an event ([`crate::changes`]).

use super::Observed;
use crate::changes::{begin_hold, Notice};
use crate::gates::Lines;
use crate::spec::{CwndReductionSpec, HoldBufferSpec, ManagerSpec, MitigationSpec, QueueDelaySpec, RunSpec};
use crate::ways;
use link::hold_buffer::Stats as Kept;
use link::Packet;
use sim::{Network, RouteId, Routed};
use std::collections::VecDeque;
use te::{AllowedMitigations as Means, HoldConfig as Keeping, HoldStats as Held, Manager, Pacing, Plan};
use units::{Rate, Size, Span, Time};

/// The way of a flow's data over a lightpath.
pub(super) struct Over {
    /// Its links.
    pub links: Vec<usize>,
    /// The same with the gate before the lightpath, where it has one.
    pub way: Vec<usize>,
    gate: Option<usize>,
    /// The number of the line for which that lets go.
    pub line: Option<usize>,
    /// What may be done.
    pub mitigation: Option<MitigationSpec>,
}

/// Gives flows their ways over lightpaths and the gates in them.
pub(super) struct Gates<'a> {
    spec: &'a ManagerSpec,
    next: usize,
    lines: Lines,
}

impl<'a> Gates<'a> {
    pub fn new(spec: &'a ManagerSpec, run: &RunSpec) -> Gates<'a> {
        Gates { spec, next: run.links.len() + ways::gates(run).count(), lines: Lines::default() }
    }

    /// The way of a flow of `route` over `lightpath`, which is `links` and leaves `route` at its link `parts`.
    pub fn over(&mut self, route: &[usize], lightpath: usize, links: Vec<usize>, parts: usize) -> Over {
        let is_its = |of: &&crate::spec::PathMitigationSpec| of.lightpath == lightpath && of.route == route;
        let mitigation = self.spec.mitigations.iter().find(is_its).map(|of| of.mitigation.clone());
        let mut way = links.clone();
        let spec = mitigation.as_ref().and_then(|mitigation: &MitigationSpec| mitigation.hold_buffer.as_ref());
        let (gate, line) = (spec.map(|_| self.next), spec.map(|gate| self.lines.number(gate)));
        if let Some(gate) = gate {
            way.insert(parts, gate);
            self.next += 1;
        }
        Over { links, way, gate, line, mitigation }
    }
}

impl Over {
    /// Its gate, as the network has to make it.
    pub fn gate(&self) -> Option<&HoldBufferSpec> {
        self.mitigation.as_ref()?.hold_buffer.as_ref()
    }

    /// Its gate, as the network has it.
    pub fn link(&self) -> Option<usize> {
        self.gate
    }

    /// How fast its gate lets go at most.
    pub fn pace(&self) -> Option<Rate> {
        Some(Rate(self.gate()?.rate_bps))
    }

    /// What its sender is told, where `plan` says so.
    fn trim(&self, plan: &Plan) -> Option<&CwndReductionSpec> {
        self.mitigation.as_ref()?.cwnd_reduction.as_ref().filter(|_| plan.mitigation.reduces_cwnd())
    }

    /// What may be done, where the ways differ by `difference`, `wait` tells the time that a packet waits before a link and `load` what a
    /// line carries of which others take their part.
    pub fn means(
        &self,
        difference: Span,
        wait: impl Fn(&QueueDelaySpec) -> Span,
        load: impl Fn(usize) -> Option<Rate>,
    ) -> Means {
        let keeping = |gate: &HoldBufferSpec| Keeping {
            delay: gate.queues.iter().map(wait).fold(Span(gate.delay_ns), |sum, wait| sum + wait),
            line: Rate(gate.rate_bps),
            pacing: Pacing { pacer: self.line.unwrap_or(0), load: gate.line.and_then(&load), held_rate: Rate(0) },
            share_ppm: gate.share_ppm,
            buffer: Size(gate.limit_bytes.unwrap_or(u64::MAX)),
        };
        let trim = self.mitigation.as_ref().and_then(|mitigation| mitigation.cwnd_reduction.as_ref());
        Means {
            delay_difference: difference,
            hold_buffer: self.gate().map(keeping),
            cwnd_reduction: trim.map(|trim| Span(trim.delay_ns)),
        }
    }
}

/// What senders are told of the manager's moves.
#[derive(Clone, Debug)]
pub enum Word {
    /// A move comes.
    Trim {
        /// What senders are told.
        notice: Notice,
        /// The move's place in the ledger.
        entry: usize,
    },
    /// A sender is given its window back.
    Restore {
        /// Its flow.
        flow: usize,
        /// The place of the move in the ledger for which it was trimmed.
        entry: usize,
    },
}

/// A decision to move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Going {
    pub flow: usize,
    pub lightpath: usize,
    pub plan: Plan,
    pub entry: usize,
}

enum Pending {
    Move(Going),
    Restore(Going),
}

/// A gate that keeps packets back for a move, or has.
struct Holding {
    entry: usize,
    gate: usize,
    hold: Span,
    dropped_before: u64,
}

/// Mitigations under way.
#[derive(Default)]
pub(super) struct Mitigations {
    pending: Vec<(Time, Pending)>,
    words: VecDeque<Word>,
    holding: Vec<Holding>,
    /// What gates kept back for moves before their latest.
    earlier: Vec<Kept>,
}

impl Mitigations {
    /// When it wants to be called.
    pub fn poll_timeout(&self) -> Time {
        self.pending.iter().map(|&(at, _)| at).min().unwrap_or(Time::NEVER)
    }

    /// What senders have to be told.
    pub fn poll_word(&mut self) -> Option<Word> {
        self.words.pop_front()
    }

    /// What gates have kept back for moves before their latest.
    pub fn earlier(&self) -> &[Kept] {
        &self.earlier
    }

    /// The manager has decided: what its plan needs before the move is done now, the move when the pause that this makes has come to the router.
    pub fn begin<P: Packet + Routed>(
        &mut self,
        now: Time,
        going: Going,
        of: &Observed,
        route: Option<RouteId>,
        net: &mut Network<P>,
    ) {
        match of.over(&going).and_then(|over| over.trim(&going.plan)) {
            Some(trim) => {
                let notice = Notice { flows: vec![going.flow], trim: Some(trim.clone()), tolerate: None };
                self.words.push_back(Word::Trim { notice, entry: going.entry });
                self.pending.push((now + Span(trim.lead_ns), Pending::Move(going)));
            }
            None => self.carry_out(now, going, of, route, net),
        }
    }

    /// The flow is moved back: what is still to come of its move is not.
    pub fn forget(&mut self, flow: usize) {
        self.pending.retain(|(_, pending)| !matches!(pending, Pending::Move(going) if going.flow == flow));
    }

    /// Does what is due.
    pub fn handle_timer<P: Packet + Routed>(
        &mut self,
        now: Time,
        of: &Observed,
        route: impl Fn(usize) -> Option<RouteId>,
        net: &mut Network<P>,
    ) {
        let (due, later) = std::mem::take(&mut self.pending).into_iter().partition(|&(at, _)| at <= now);
        self.pending = later;
        for (_, pending) in due {
            match pending {
                Pending::Move(going) => self.carry_out(now, going, of, route(going.flow), net),
                Pending::Restore(Going { flow, entry, .. }) => self.words.push_back(Word::Restore { flow, entry }),
            }
        }
    }

    fn carry_out<P: Packet + Routed>(
        &mut self,
        now: Time,
        going: Going,
        of: &Observed,
        route: Option<RouteId>,
        net: &mut Network<P>,
    ) {
        let (Some(route), Some(over)) = (route, of.over(&going)) else { return };
        if let Some(gate) = over.gate.filter(|_| going.plan.mitigation.holds()) {
            let kept = net.hold_buffer_mut(gate).map(|(buffer, _)| buffer.take_stats());
            self.earlier.extend(kept.filter(|kept| kept.packets > 0));
            self.holding.retain(|holding| holding.gate != gate);
            let dropped_before = net.links()[gate].stats().dropped();
            if let Some((gate, hold)) = begin_hold(&over.way, over.mitigation.as_ref(), now, net) {
                self.holding.push(Holding { entry: going.entry, gate, hold, dropped_before });
            }
        }
        net.set_path(route, &over.way);
        let restore = over.trim(&going.plan).and_then(|trim| trim.restore_ns);
        self.pending.extend(restore.map(|after| (now + Span(after), Pending::Restore(going))));
    }

    /// Tells the manager what has been kept back so far.
    pub fn tell<P: Packet + Routed>(&mut self, now: Time, manager: &mut Manager, net: &mut Network<P>) {
        self.holding.retain(|holding| {
            let dropped = net.links()[holding.gate].stats().dropped();
            let Some((buffer, pacers)) = net.hold_buffer_mut(holding.gate) else { return false };
            let (kept, goes_on) = (buffer.stats(), buffer.is_holding(now, pacers));
            let held = Held {
                hold: holding.hold,
                packets: kept.packets,
                bytes: Size(kept.max_bytes),
                dropped_packets: dropped - holding.dropped_before,
                is_holding: goes_on,
            };
            manager.handle_hold_stats(holding.entry, held);
            goes_on
        });
    }
}
