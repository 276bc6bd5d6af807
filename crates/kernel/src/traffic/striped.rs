//! Workloads over several connections: what sockets and timers mean to them.

use super::connection::Connection;
use super::poll::End;
use super::sender::{ConnectionState, Sender};
use super::Traffic;
use crate::error::KernelError;
use experiment::{Lanes, Share, Stripe, Workload};
use units::Time;

/// The connections of a stripe.
struct Ends<'a>(&'a mut [Connection]);

impl Lanes for Ends<'_> {
    type End = Sender;

    fn is_open(&self, lane: usize) -> bool {
        self.0[lane].opened && self.0[lane].sender.standing != ConnectionState::Lost
    }

    fn lane(&mut self, lane: usize) -> (&mut Workload, &mut Sender) {
        let connection = &mut self.0[lane];
        (&mut connection.workload, &mut connection.sender)
    }
}

impl Traffic<'_> {
    /// Place of the first connection of a stripe; the others follow, since a stripe's flows are all of one's own
    /// sockets.
    fn first(&self, stripe: usize) -> usize {
        let flow = self.stripes[stripe].first;
        self.connections.partition_point(|connection| connection.flow < flow)
    }

    fn stripe(&mut self, index: usize) -> (&mut Stripe, Ends<'_>) {
        let first = self.first(index);
        let stripe = &mut self.stripes[index];
        let ends = Ends(&mut self.connections[first..first + stripe.lanes()]);
        (stripe, ends)
    }

    pub(super) fn open_lane(&mut self, due: Time, place: usize, share: Share) -> Result<(), KernelError> {
        // All data was written before this connection was needed.
        if self.connections[place].workload.done_at.is_some() {
            return Ok(());
        }
        self.begin(due, place)?;
        let (stripe, mut ends) = self.stripe(share.stripe);
        if let Some(next) = stripe.open(due, share.lane, &mut ends) {
            self.set_due(place, next);
        }
        self.settle_stripe(due, share.stripe)?;
        self.after_write(place)
    }

    pub(super) fn handle_stripe_timer(&mut self, now: Time, index: usize) -> Result<(), KernelError> {
        let (stripe, mut ends) = self.stripe(index);
        let next = stripe.handle_timer(now, &mut ends);
        let first = self.first(index);
        self.set_due(first, next);
        self.settle_stripe(now, index)
    }

    /// The socket of a connection may have room again.
    pub(super) fn fill_lane(&mut self, now: Time, place: usize, share: Share) -> Result<(), KernelError> {
        let (stripe, mut ends) = self.stripe(share.stripe);
        if stripe.fill(now, share.lane, &mut ends) {
            // It may take more, after the others' turn.
            self.turns.push((place, End::Sender));
        }
        self.settle_stripe(now, share.stripe)
    }

    pub(super) fn note_lane_delivered(&mut self, now: Time, place: usize, share: Share) -> Result<(), KernelError> {
        let received = self.connections[place].received;
        let (stripe, mut ends) = self.stripe(share.stripe);
        let wake = stripe.handle_delivered(now, share.lane, received, &mut ends);
        if let Some(due) = wake {
            let first = self.first(share.stripe);
            self.set_due(first, due);
        }
        self.settle_stripe(now, share.stripe)?;
        self.note_lane_done(now, place);
        Ok(())
    }

    pub(super) fn stop_stripe(&mut self, now: Time, index: usize) -> Result<(), KernelError> {
        let (stripe, mut ends) = self.stripe(index);
        stripe.stop(now, &mut ends);
        self.settle_stripe(now, index)
    }

    /// Handles the results of writes to connections, and those that are done.
    fn settle_stripe(&mut self, now: Time, index: usize) -> Result<(), KernelError> {
        let first = self.first(index);
        if let Some(due) = self.stripes[index].poll_due() {
            self.set_due(first, due);
        }
        while let Some(lane) = self.stripes[index].poll_ready() {
            self.after_write(first + lane)?;
            self.note_lane_done(now, first + lane);
        }
        Ok(())
    }

    fn note_lane_done(&mut self, now: Time, place: usize) {
        let connection = &mut self.connections[place];
        if connection.workload.note_done(now, connection.received, &connection.sender) {
            self.unfinished -= 1;
        }
    }
}
