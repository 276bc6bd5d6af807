//! Nodes in the world: what packets and timers mean to them.
//!
//! Nothing here is inlined into the loop that runs packets: a node holds a whole protocol, and its code in that loop
//! displaces the packets' own from the instruction cache.

use super::connections::Connections;
use crate::node::{Ends, Node, NodeCounters, Surroundings};
use crate::node_number::NodeNumber;
use crate::packet::Packet;
use crate::side::Side;
use crate::transport::TransportMaker;
use crate::workload::Source;
use sim::Network;
use std::ops::Range;
use units::Time;

/// The nodes of a run.
pub struct Nodes<M, N> {
    all: Vec<N>,
    /// For connections in place of lost ones.
    maker: M,
}

impl<M: TransportMaker, N: Node<M::Transport>> Nodes<M, N> {
    /// `nodes`, which connect again with ends of `maker`.
    pub fn new(nodes: Vec<N>, maker: M) -> Nodes<M, N> {
        Nodes { all: nodes, maker }
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A segment came to an end of connection `index` of node `number`, and the transport has it.
    #[inline(never)]
    pub fn handle_arrival(
        &mut self,
        now: Time,
        number: NodeNumber,
        (index, side): (usize, Side),
        of: &mut Connections<M::Transport>,
        net: &mut Network<Packet>,
    ) {
        let has_news = self.all[number.index()].handle_arrival(now, index, side, &mut of.ends());
        // Acknowledgments, whether the node has something to send or not.
        of.pump(now, index, side, net);
        if has_news {
            self.settle(now, number, of, net);
        }
    }

    /// The timer of an end of connection `index` of node `number` fired, and the transport knows.
    #[inline(never)]
    pub fn handle_transport_timeout(
        &mut self,
        now: Time,
        number: NodeNumber,
        (index, side): (usize, Side),
        of: &mut Connections<M::Transport>,
        net: &mut Network<Packet>,
    ) {
        self.all[number.index()].handle_transport_timeout(now, index, &mut of.ends());
        of.pump(now, index, side, net);
        self.settle(now, number, of, net);
    }

    /// The timer of the application of flow `index` fired; for a node it is that of the first that it begins.
    #[inline(never)]
    pub fn handle_timer(
        &mut self,
        now: Time,
        number: NodeNumber,
        index: usize,
        of: &mut Connections<M::Transport>,
        net: &mut Network<Packet>,
    ) {
        let node = &mut self.all[number.index()];
        if node.flows().start != index {
            return;
        }
        if of.opened[index] {
            node.handle_timeout(now, &mut of.ends());
        } else {
            node.flows().for_each(|flow| of.opened[flow] = true);
            node.start(now, &mut of.ends());
        }
        self.settle(now, number, of, net);
    }

    /// The application stops.
    #[inline(never)]
    pub fn stop(
        &mut self,
        now: Time,
        number: NodeNumber,
        of: &mut Connections<M::Transport>,
        net: &mut Network<Packet>,
    ) {
        self.all[number.index()].stop(now);
        self.settle(now, number, of, net);
    }

    /// The measured interval begins.
    #[inline(never)]
    pub fn begin_measuring(&mut self) {
        self.all.iter_mut().for_each(Node::begin_measuring);
    }

    /// Sends the data that a node has handed to transports, sets its timer, notes its end.
    #[inline(never)]
    fn settle(&mut self, now: Time, number: NodeNumber, of: &mut Connections<M::Transport>, net: &mut Network<Packet>) {
        let maker = &mut self.maker;
        self.all[number.index()].settle(now, &mut World { maker, of, net });
    }

    /// Gives the counters of the nodes to their flows; returns their remarks, each with the first flow of its node.
    pub fn finish(&mut self, of: &mut Connections<M::Transport>) -> Vec<(usize, String)> {
        let mut all_notes = vec![];
        for node in &mut self.all {
            let flows = node.flows();
            let mut notes = vec![];
            let counters = node.finish(&of.flows[flows.start].spec.name, &mut notes);
            all_notes.extend(notes.into_iter().map(|note| (flows.start, note)));
            for (flow, counters) in of.flows[flows].iter_mut().zip(counters) {
                flow.workload.source = match counters {
                    NodeCounters::Requests(counters) => Source::Iscsi(counters),
                    NodeCounters::Fc(counters) => Source::Fc(counters),
                    NodeCounters::Fcp(counters) => Source::Fcp(counters),
                };
            }
        }
        all_notes
    }
}

/// The world around a node.
struct World<'a, M: TransportMaker> {
    maker: &'a mut M,
    of: &'a mut Connections<M::Transport>,
    net: &'a mut Network<Packet>,
}

impl<M: TransportMaker> Surroundings<M::Transport> for World<'_, M> {
    #[inline(never)]
    fn reconnect(&mut self, now: Time, flow: usize) {
        let made = self.maker.make(&self.of.flows[flow].spec, now);
        let [sender, receiver] = made.unwrap_or_else(|_| unreachable!("what was made once of a flow is made again"));
        self.of.reconnect(now, flow, sender, receiver);
    }

    #[inline]
    fn pump(&mut self, now: Time, flow: usize, side: Side) -> Ends<'_, M::Transport> {
        self.of.pump(now, flow, side, self.net);
        self.of.ends()
    }

    #[inline]
    fn set_timer(&mut self, first: usize, due: Time) {
        self.net.set_timer(self.of.timers.application(first), due);
    }

    #[inline(never)]
    fn note_done(&mut self, flows: Range<usize>, at: Time) {
        if self.of.flows[flows.start].workload.done_at.is_some() {
            return;
        }
        for flow in flows {
            self.of.flows[flow].workload.done_at = Some(at);
            self.net.finish_work(flow as u32);
        }
    }
}
