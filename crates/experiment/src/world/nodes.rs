//! Nodes in the world: what packets and timers mean to them.
//!
//! Nothing here is inlined into the loop that runs packets: a node holds a whole protocol, and its code in that loop
//! displaces the packets' own from the instruction cache.

use super::connections::Connections;
use crate::node::{Node, NodeCounters};
use crate::node_number::NodeNumber;
use crate::packet::Packet;
use crate::side::Side;
use crate::transport::TransportMaker;
use crate::workload::Source;
use sim::Network;
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
        while let Some(flow) = self.all[number.index()].poll_reconnect() {
            self.reconnect(now, flow, of);
        }
        let node = &mut self.all[number.index()];
        while let Some((flow, side)) = node.poll_pump() {
            of.pump(now, flow, side, net);
            // Sending makes room.
            node.handle_sent(now, flow, side, &mut of.ends());
        }
        if let Some(due) = node.poll_timer() {
            net.set_timer(of.timers.application(node.flows().start), due);
        }
        let (flows, done_at) = (node.flows(), node.done_at());
        if done_at.is_some() && of.flows[flows.start].workload.done_at.is_none() {
            for flow in flows {
                of.flows[flow].workload.done_at = done_at;
                of.finish_one(net);
            }
        }
    }

    /// Gives a flow fresh endpoints, and opens their connection.
    #[inline(never)]
    fn reconnect(&mut self, now: Time, index: usize, of: &mut Connections<M::Transport>) {
        let made = self.maker.make(&of.flows[index].spec, now);
        let [sender, receiver] = made.unwrap_or_else(|_| unreachable!("what was made once of a flow is made again"));
        of.reconnect(now, index, sender, receiver);
    }

    /// Gives the counters of the nodes to their flows, and adds their remarks to the notes.
    pub fn finish(&mut self, of: &mut Connections<M::Transport>, notes: &mut Vec<String>) {
        for node in &mut self.all {
            let flows = node.flows();
            let counters = node.finish(&of.flows[flows.start].spec.name, notes);
            for (flow, counters) in of.flows[flows].iter_mut().zip(counters) {
                flow.workload.source = match counters {
                    NodeCounters::Requests(counters) => Source::Iscsi(counters),
                    NodeCounters::Fc(counters) => Source::Fc(counters),
                    NodeCounters::Fcp(counters) => Source::Fcp(counters),
                };
            }
        }
    }
}
