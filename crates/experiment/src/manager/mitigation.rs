//! Mitigation of the manager's moves: hold buffers at moving routers, commands to senders, and their effects. Both are
//! those of a move by an event ([`crate::events`]).

use super::observed::{Observed, PendingMove};
use crate::events::begin_hold;
use crate::sender_command::{AddressedCommand, MoveId, Preparation, SenderCommand};
use link::hold_buffer;
use link::Packet;
use sim::{Network, RouteId, Routed};
use std::collections::VecDeque;
use te::{HoldStats, Manager};
use units::{Size, Span, Time};

enum Pending {
    Move(PendingMove),
    Restore(PendingMove),
}

/// A hold buffer that holds packets for a move, or did.
struct Holding {
    entry: usize,
    hold_buffer: usize,
    hold: Span,
    dropped_before: u64,
}

/// Mitigations under way.
#[derive(Default)]
pub(super) struct Mitigations {
    pending: Vec<(Time, Pending)>,
    commands: VecDeque<AddressedCommand>,
    holding: Vec<Holding>,
    /// Statistics of hold buffers for moves before their latest.
    earlier: Vec<hold_buffer::Stats>,
}

impl Mitigations {
    /// Returns the time of the next call.
    pub fn poll_timeout(&self) -> Time {
        self.pending.iter().map(|&(at, _)| at).min().unwrap_or(Time::NEVER)
    }

    /// Returns the next command to a sender.
    pub fn poll_command(&mut self) -> Option<AddressedCommand> {
        self.commands.pop_front()
    }

    /// Returns the statistics of hold buffers for moves before their latest.
    pub fn earlier(&self) -> &[hold_buffer::Stats] {
        &self.earlier
    }

    /// The manager has decided to move: takes the mitigations that its plan needs before the move now, and makes the
    /// move when the sender's pause has reached the router.
    pub fn begin<P: Packet + Routed>(
        &mut self,
        now: Time,
        pending: PendingMove,
        of: &Observed,
        route: Option<RouteId>,
        net: &mut Network<P>,
    ) {
        match of.over(&pending).and_then(|over| over.cwnd_reduction(&pending.plan)) {
            Some(cwnd_reduction) => {
                let preparation =
                    Preparation { cwnd_reduction: Some(cwnd_reduction.clone()), reordering_tolerance: None };
                self.command_sender(pending.flow, pending.entry, SenderCommand::Prepare(preparation));
                self.pending.push((now + Span(cwnd_reduction.lead_ns), Pending::Move(pending)));
            }
            None => self.carry_out(now, pending, of, route, net),
        }
    }

    fn command_sender(&mut self, flow: usize, entry: usize, command: SenderCommand) {
        self.commands.push_back(AddressedCommand { flow, why: MoveId::Entry(entry), command });
    }

    /// The flow is moved back: cancels the rest of its move.
    pub fn forget(&mut self, flow: usize) {
        self.pending.retain(|(_, pending)| !matches!(pending, Pending::Move(of) if of.flow == flow));
    }

    /// Does the work that is due.
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
                Pending::Move(pending) => self.carry_out(now, pending, of, route(pending.flow), net),
                Pending::Restore(PendingMove { flow, entry, .. }) => {
                    self.command_sender(flow, entry, SenderCommand::Restore)
                }
            }
        }
    }

    fn carry_out<P: Packet + Routed>(
        &mut self,
        now: Time,
        pending: PendingMove,
        of: &Observed,
        route: Option<RouteId>,
        net: &mut Network<P>,
    ) {
        let (Some(route), Some(over)) = (route, of.over(&pending)) else { return };
        if let Some(hold_buffer) = over.link().filter(|_| pending.plan.mitigation.holds()) {
            let kept = net.hold_buffer_mut(hold_buffer).map(|(buffer, _)| buffer.take_stats());
            self.earlier.extend(kept.filter(|kept| kept.packets > 0));
            self.holding.retain(|holding| holding.hold_buffer != hold_buffer);
            let dropped_before = net.links()[hold_buffer].stats().dropped();
            if let Some((hold_buffer, hold)) = begin_hold(&over.elements, over.mitigation.as_ref(), now, net) {
                self.holding.push(Holding { entry: pending.entry, hold_buffer, hold, dropped_before });
            }
        }
        net.set_path(route, &over.elements);
        let restore = over.cwnd_reduction(&pending.plan).and_then(|cwnd_reduction| cwnd_reduction.restore_ns);
        self.pending.extend(restore.map(|after| (now + Span(after), Pending::Restore(pending))));
    }

    /// Reports the packets held so far to the manager.
    pub fn report<P: Packet + Routed>(&mut self, now: Time, manager: &mut Manager, net: &mut Network<P>) {
        self.holding.retain(|holding| {
            let dropped = net.links()[holding.hold_buffer].stats().dropped();
            let Some((buffer, pacers)) = net.hold_buffer_mut(holding.hold_buffer) else { return false };
            let (kept, is_holding) = (buffer.stats(), buffer.is_holding(now, pacers));
            let held = HoldStats {
                hold: holding.hold,
                packets: kept.packets,
                bytes: Size(kept.max_bytes),
                dropped_packets: dropped - holding.dropped_before,
                is_holding,
            };
            manager.handle_hold_stats(holding.entry, held);
            is_holding
        });
    }
}
