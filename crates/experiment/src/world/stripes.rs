//! Workloads over several connections in the world: what packets and timers mean to them.

use super::connections::Connections;
use crate::flow::Flow;
use crate::packet::Packet;
use crate::side::Side;
use crate::transport::Transport;
use crate::workload::{Lanes, Share, Stripe, Workload};
use sim::Network;
use units::Time;

/// The flows of a stripe.
struct Ends<'a, T> {
    flows: &'a mut [Flow<T>],
    opened: &'a [bool],
}

impl<T: Transport> Lanes for Ends<'_, T> {
    type End = T;

    fn is_open(&self, lane: usize) -> bool {
        self.opened[lane] && !self.flows[lane].sender.is_closed()
    }

    fn lane(&mut self, lane: usize) -> (&mut Workload, &mut T) {
        let flow = &mut self.flows[lane];
        (&mut flow.workload, &mut flow.sender)
    }
}

/// Workloads that several flows share, while they run.
pub struct Stripes(pub Vec<Stripe>);

impl Stripes {
    /// A stripe and its flows.
    fn stripe<'a, T: Transport>(
        &'a mut self,
        index: usize,
        of: &'a mut Connections<T>,
    ) -> (&'a mut Stripe, Ends<'a, T>) {
        let stripe = &mut self.0[index];
        let flows = stripe.first..stripe.first + stripe.lanes();
        let ends = Ends { flows: &mut of.flows[flows.clone()], opened: &of.opened[flows] };
        (stripe, ends)
    }

    /// Connects flow `index`, whose part is `share`: its time has come.
    pub fn open_lane<T: Transport>(
        &mut self,
        now: Time,
        index: usize,
        share: Share,
        of: &mut Connections<T>,
        net: &mut Network<Packet>,
    ) {
        // All data was written before this connection was needed.
        if of.flows[index].workload.done_at.is_some() {
            return;
        }
        of.opened[index] = true;
        of.flows[index].sender.connect(now);
        let (stripe, mut ends) = self.stripe(share.stripe, of);
        if let Some(due) = stripe.open(now, share.lane, &mut ends) {
            net.set_timer(of.timers.application(index), due);
        }
        of.pump(now, index, Side::Sender, net);
        self.settle(now, share.stripe, of, net);
    }

    /// The timer of stripe `index` fired.
    pub fn handle_timer<T: Transport>(
        &mut self,
        now: Time,
        index: usize,
        of: &mut Connections<T>,
        net: &mut Network<Packet>,
    ) {
        let (stripe, mut ends) = self.stripe(index, of);
        let due = stripe.handle_timer(now, &mut ends);
        let first = stripe.first;
        net.set_timer(of.timers.application(first), due);
        self.settle(now, index, of, net);
    }

    /// More of flow `index`'s data has arrived.
    pub fn handle_delivered<T: Transport>(
        &mut self,
        now: Time,
        index: usize,
        share: Share,
        of: &mut Connections<T>,
        net: &mut Network<Packet>,
    ) {
        let received = of.flows[index].received(Side::Receiver);
        let (stripe, mut ends) = self.stripe(share.stripe, of);
        let first = stripe.first;
        if let Some(due) = stripe.handle_delivered(now, share.lane, received, &mut ends) {
            net.set_timer(of.timers.application(first), due);
        }
        self.settle(now, share.stripe, of, net);
        note_done(now, index, of, net);
    }

    /// Gives a connection of a copy as much more as it can send now.
    pub fn fill_lane<T: Transport>(
        &mut self,
        now: Time,
        index: usize,
        share: Share,
        of: &mut Connections<T>,
        net: &mut Network<Packet>,
    ) {
        loop {
            let (stripe, mut ends) = self.stripe(share.stripe, of);
            let more = stripe.fill(now, share.lane, &mut ends);
            of.pump(now, index, Side::Sender, net);
            if !more {
                break;
            }
        }
        self.settle(now, share.stripe, of, net);
    }

    /// The application of stripe `index` writes no more.
    pub fn stop<T: Transport>(&mut self, now: Time, index: usize, of: &mut Connections<T>) {
        let (stripe, mut ends) = self.stripe(index, of);
        stripe.stop(now, &mut ends);
    }

    /// Sends the data that was written to connections, and notes those that are done.
    fn settle<T: Transport>(&mut self, now: Time, index: usize, of: &mut Connections<T>, net: &mut Network<Packet>) {
        let first = self.0[index].first;
        if let Some(due) = self.0[index].poll_due() {
            net.set_timer(of.timers.application(first), due);
        }
        while let Some(lane) = self.0[index].poll_ready() {
            if of.opened[first + lane] {
                of.pump(now, first + lane, Side::Sender, net);
            }
            note_done(now, first + lane, of, net);
        }
    }
}

fn note_done<T: Transport>(now: Time, index: usize, of: &mut Connections<T>, net: &mut Network<Packet>) {
    let flow = &mut of.flows[index];
    let received = flow.received(Side::Receiver);
    if flow.workload.note_done(now, received, &flow.sender) {
        net.finish_work(index as u32);
    }
}
