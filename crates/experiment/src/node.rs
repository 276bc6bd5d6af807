//! Elements that end and begin flows: sessions at both ends of their connections, gateways and proxies in mid path.

use crate::capture::Capture;
use crate::fc_counters::FcCounters;
use crate::fcp_counters::FcpCounters;
use crate::flow::Flow;
use crate::request_counters::RequestCounters;
use crate::side::Side;
use crate::transport::Transport;
use bytes::BytesMut;
use std::ops::Range;
use units::Time;
use wire::fc::Frame;

/// The ends of a run's flows, as a node reaches them.
pub struct Ends<'a, T> {
    flows: &'a mut [Flow<T>],
    capture: Option<&'a mut Capture>,
}

impl<'a, T: Transport> Ends<'a, T> {
    /// Those of `flows`, of which `capture` has those at its node.
    pub(crate) fn new(flows: &'a mut [Flow<T>], capture: Option<&'a mut Capture>) -> Ends<'a, T> {
        Ends { flows, capture }
    }

    /// The end of `flow` at `side`.
    #[inline]
    pub fn end(&mut self, flow: usize, side: Side) -> &mut T {
        self.flows[flow].endpoint(side)
    }

    /// Hands a message that `side` writes to its end of `flow` to the capture, if there is one of it. `encode` appends
    /// its bytes and returns the place of zeros among them, which are not kept. A node does so for all messages of a
    /// flow, in their order, or for none.
    #[inline]
    pub fn capture(&mut self, flow: usize, side: Side, encode: impl FnOnce(&mut BytesMut) -> Range<usize>) {
        let Some(capture) = &mut self.capture else { return };
        let spec = &self.flows[flow].spec;
        if capture.sees(spec.source) || capture.sees(spec.destination) {
            capture.add_message(flow, side == Side::Sender, encode);
        }
    }

    /// Notes a frame on the Fibre Channel link of a port behind the gateway at `side` of `flow`, if it is captured.
    #[inline]
    pub fn capture_frame(&mut self, now: Time, flow: usize, side: Side, frame: &Frame) {
        let Some(capture) = &mut self.capture else { return };
        let spec = &self.flows[flow].spec;
        let node = if side == Side::Sender { spec.source } else { spec.destination };
        if capture.sees(node) {
            capture.record_frame(now, frame);
        }
    }
}

/// The work of a node over one of its flows.
pub enum NodeCounters {
    /// Requests of an iSCSI session.
    Requests(Box<RequestCounters>),
    /// Frames between Fibre Channel gateways.
    Fc(Box<FcCounters>),
    /// SCSI between Fibre Channel gateways.
    Fcp(Box<FcpCounters>),
}

/// The world around a node: what it does for one.
pub trait Surroundings<T> {
    /// Gives a flow fresh endpoints, and opens their connection.
    fn reconnect(&mut self, now: Time, flow: usize);
    /// Sends what an end of a flow has to send; returns the ends of all flows.
    fn pump(&mut self, now: Time, flow: usize, side: Side) -> Ends<'_, T>;
    /// Sets the timer of the node whose first flow is `first`.
    fn set_timer(&mut self, first: usize, due: Time);
    /// All that the node of `flows` had to do was done at a time.
    fn note_done(&mut self, flows: Range<usize>, at: Time);
}

/// Drives ends of flows in place of a workload: it receives their arrivals, writes to them, and names those with new
/// data to send.
pub trait Node<T: Transport> {
    /// The flows that it begins; the timer of the first is its own.
    fn flows(&self) -> Range<usize>;
    /// The run begins for this node.
    fn start(&mut self, now: Time, ends: &mut Ends<'_, T>);
    /// It begins nothing new.
    fn stop(&mut self, now: Time);
    /// Something came to an end that it drives: data, room to send, a connection. Returns true if `poll_*` or
    /// [`Node::done_at`] may have something new, which most arrivals do not bring.
    fn handle_arrival(&mut self, now: Time, flow: usize, side: Side, ends: &mut Ends<'_, T>) -> bool;
    /// An end that it drives has sent its data: there may be room.
    fn handle_sent(&mut self, now: Time, flow: usize, side: Side, ends: &mut Ends<'_, T>);
    /// The timer of a transport that it drives fired: a connection may have been given up.
    fn handle_transport_timeout(&mut self, _now: Time, _flow: usize, _ends: &mut Ends<'_, T>) {}
    /// The time that it asked for has come.
    fn handle_timeout(&mut self, _now: Time, _ends: &mut Ends<'_, T>) {}
    /// Returns the time to which its timer has to be set, if any.
    fn poll_timer(&mut self) -> Option<Time> {
        None
    }
    /// An end that has something new to send.
    fn poll_pump(&mut self) -> Option<(usize, Side)>;
    /// A flow that is to connect again, with fresh endpoints.
    fn poll_reconnect(&mut self) -> Option<usize> {
        None
    }
    /// Returns the time at which all was done and no more came.
    fn done_at(&self) -> Option<Time>;
    /// Has the world do all that `poll_*` say. A node of several kinds hands this on to the present one, which then
    /// does the whole of it.
    #[inline]
    fn settle(&mut self, now: Time, world: &mut impl Surroundings<T>) {
        while let Some(flow) = self.poll_reconnect() {
            world.reconnect(now, flow);
        }
        while let Some((flow, side)) = self.poll_pump() {
            // Sending makes room.
            self.handle_sent(now, flow, side, &mut world.pump(now, flow, side));
        }
        if let Some(due) = self.poll_timer() {
            world.set_timer(self.flows().start, due);
        }
        if let Some(at) = self.done_at() {
            world.note_done(self.flows(), at);
        }
    }
    /// The measured interval begins.
    fn begin_measuring(&mut self) {}
    /// The run proper is over. `name` is that of its first flow. Returns the counters of each of its flows,
    /// where it has any; remarks for a reader go to `notes`.
    fn finish(&mut self, _name: &str, _notes: &mut Vec<String>) -> Vec<NodeCounters> {
        vec![]
    }
}
