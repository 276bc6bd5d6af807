//! Workloads over several connections in the world: what packets and timers mean to them.

use crate::flow::{Flow, Side};
use crate::packet::Packet;
use crate::workload::{Lanes, Share, Stripe, Workload};
use crate::world::World;
use sim::Network;
use tcp::Endpoint;
use units::Time;

/// The flows of a stripe.
struct Ends<'a> {
    flows: &'a mut [Flow],
    opened: &'a [bool],
}

impl Lanes for Ends<'_> {
    type End = Endpoint;

    fn is_open(&self, lane: usize) -> bool {
        self.opened[lane] && !self.flows[lane].sender.is_closed()
    }

    fn lane(&mut self, lane: usize) -> (&mut Workload, &mut Endpoint) {
        let flow = &mut self.flows[lane];
        (&mut flow.workload, &mut flow.sender)
    }
}

impl World {
    /// A stripe and its flows.
    fn stripe(&mut self, index: usize) -> (&mut Stripe, Ends<'_>) {
        let stripe = &mut self.stripes[index];
        let flows = stripe.first..stripe.first + stripe.lanes();
        let ends = Ends { flows: &mut self.flows[flows.clone()], opened: &self.opened[flows] };
        (stripe, ends)
    }

    pub(crate) fn open_lane(&mut self, now: Time, index: usize, share: Share, net: &mut Network<Packet>) {
        // All was written before this connection was wanted.
        if self.flows[index].workload.done_at.is_some() {
            return;
        }
        self.opened[index] = true;
        self.flows[index].sender.connect(now);
        let (stripe, mut ends) = self.stripe(share.stripe);
        if let Some(due) = stripe.open(now, share.lane, &mut ends) {
            net.set_timer(self.timers.application(index), due);
        }
        self.pump(now, index, Side::Sender, net);
        self.settle_stripe(now, share.stripe, net);
    }

    pub(crate) fn handle_stripe_timer(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let (stripe, mut ends) = self.stripe(index);
        let due = stripe.handle_timer(now, &mut ends);
        let first = stripe.first;
        net.set_timer(self.timers.application(first), due);
        self.settle_stripe(now, index, net);
    }

    pub(crate) fn handle_lane_delivered(&mut self, now: Time, index: usize, share: Share, net: &mut Network<Packet>) {
        let received = self.flows[index].received(Side::Receiver);
        let (stripe, mut ends) = self.stripe(share.stripe);
        let first = stripe.first;
        if let Some(due) = stripe.handle_delivered(now, share.lane, received, &mut ends) {
            net.set_timer(self.timers.application(first), due);
        }
        self.settle_stripe(now, share.stripe, net);
        self.note_lane_done(now, index, net);
    }

    /// Gives a connection of a copy as much more as it can send now.
    pub(crate) fn fill_lane(&mut self, now: Time, index: usize, share: Share, net: &mut Network<Packet>) {
        loop {
            let (stripe, mut ends) = self.stripe(share.stripe);
            let more = stripe.fill(now, share.lane, &mut ends);
            self.pump(now, index, Side::Sender, net);
            if !more {
                break;
            }
        }
        self.settle_stripe(now, share.stripe, net);
    }

    pub(crate) fn stop_stripe(&mut self, now: Time, index: usize) {
        let (stripe, mut ends) = self.stripe(index);
        stripe.stop(now, &mut ends);
    }

    /// Sends what was written to connections, and looks whether they are done.
    fn settle_stripe(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let first = self.stripes[index].first;
        while let Some(lane) = self.stripes[index].poll_touched() {
            if self.opened[first + lane] {
                self.pump(now, first + lane, Side::Sender, net);
            }
            self.note_lane_done(now, first + lane, net);
        }
    }

    fn note_lane_done(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let flow = &mut self.flows[index];
        let received = flow.received(Side::Receiver);
        if flow.workload.note_done(now, received, &flow.sender) {
            self.finish_one(net);
        }
    }
}
