//! What is done about the manager's moves so that they hurt less: gates at moving routers, words to senders, and what came of it.
//!
//! Each flow has a gate of its own before each lightpath, where the operator lets moving routers keep packets back: those that are on the
//! lightpath already do not wait for the one that comes. Gates and words are those of a move by an event ([`crate::changes`]).

use super::Observed;
use crate::changes::{begin_hold, Notice};
use crate::spec::{GateSpec, ManagerSpec, RemedySpec, RunSpec, TrimSpec, WaitSpec};
use crate::ways;
use link::{Kept, Packet};
use manager::{Held, Keeping, Manager, Means, Plan};
use sim::{Network, RouteId, Routed};
use std::collections::VecDeque;
use units::{Rate, Size, Span, Time};

/// The way of a flow's data over a lightpath.
pub(super) struct Over {
    /// Its links.
    pub links: Vec<usize>,
    /// The same with the gate before the lightpath, where it has one.
    pub way: Vec<usize>,
    gate: Option<usize>,
    /// What may be done.
    pub remedy: Option<RemedySpec>,
}

/// Gives flows their ways over lightpaths and the gates in them.
pub(super) struct Gates<'a> {
    spec: &'a ManagerSpec,
    next: usize,
}

impl<'a> Gates<'a> {
    pub fn new(spec: &'a ManagerSpec, run: &RunSpec) -> Gates<'a> {
        Gates { spec, next: run.links.len() + ways::gates(run).count() }
    }

    /// The way of a flow of `route` over `lightpath`, which is `links` and leaves `route` at its link `parts`.
    pub fn over(&mut self, route: &[usize], lightpath: usize, links: Vec<usize>, parts: usize) -> Over {
        let is_its = |of: &&crate::spec::WayRemedySpec| of.lightpath == lightpath && of.route == route;
        let remedy = self.spec.remedies.iter().find(is_its).map(|of| of.remedy.clone());
        let mut way = links.clone();
        let gate = remedy.as_ref().and_then(|remedy| remedy.gate.as_ref()).map(|_| self.next);
        if let Some(gate) = gate {
            way.insert(parts, gate);
            self.next += 1;
        }
        Over { links, way, gate, remedy }
    }
}

impl Over {
    /// Its gate, as the network has to make it.
    pub fn gate(&self) -> Option<&GateSpec> {
        self.remedy.as_ref()?.gate.as_ref()
    }

    /// What its sender is told, where `plan` says so.
    fn trim(&self, plan: &Plan) -> Option<&TrimSpec> {
        self.remedy.as_ref()?.trim.as_ref().filter(|_| plan.remedy.trims())
    }

    /// What may be done, where the ways differ by `difference` and `wait` tells the time that a packet waits before a link.
    pub fn means(&self, difference: Span, wait: impl Fn(&WaitSpec) -> Span) -> Means {
        let keeping = |gate: &GateSpec| Keeping {
            delay: gate.queues.iter().map(wait).fold(Span(gate.delay_ns), |sum, wait| sum + wait),
            line: Rate(gate.rate_bps),
            share_ppm: gate.share_ppm,
            buffer: Size(gate.limit_bytes.unwrap_or(u64::MAX)),
        };
        let trim = self.remedy.as_ref().and_then(|remedy| remedy.trim.as_ref());
        Means { difference, hold: self.gate().map(keeping), trim: trim.map(|trim| Span(trim.delay_ns)) }
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
    over_at: Time,
    dropped_before: u64,
}

/// Remedies under way.
#[derive(Default)]
pub(super) struct Remedies {
    pending: Vec<(Time, Pending)>,
    words: VecDeque<Word>,
    holding: Vec<Holding>,
    /// What gates kept back for moves before their latest.
    earlier: Vec<Kept>,
}

impl Remedies {
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
        if let Some(gate) = over.gate.filter(|_| going.plan.remedy.holds()) {
            self.earlier.extend(net.links_mut()[gate].take_kept().filter(|kept| kept.packets > 0));
            self.holding.retain(|holding| holding.gate != gate);
            let dropped_before = net.links()[gate].stats().dropped();
            if let Some((gate, hold)) = begin_hold(&over.way, over.remedy.as_ref(), now, net) {
                let over_at = now + hold;
                self.holding.push(Holding { entry: going.entry, gate, hold, over_at, dropped_before });
            }
        }
        net.set_way(route, &over.way);
        let restore = over.trim(&going.plan).and_then(|trim| trim.restore_ns);
        self.pending.extend(restore.map(|after| (now + Span(after), Pending::Restore(going))));
    }

    /// Tells the manager what has been kept back so far.
    pub fn tell<P: Packet + Routed>(&mut self, now: Time, manager: &mut Manager, net: &mut Network<P>) {
        self.holding.retain(|holding| {
            let link = &mut net.links_mut()[holding.gate];
            let kept = link.kept().unwrap_or_default();
            let held = Held {
                hold: holding.hold,
                packets: kept.packets,
                bytes: Size(kept.most_bytes),
                dropped_packets: link.stats().dropped() - holding.dropped_before,
            };
            manager.handle_held(holding.entry, held);
            now < holding.over_at || link.queue(now).0 > 0
        });
    }
}
