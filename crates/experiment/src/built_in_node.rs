//! The nodes that a specification can ask for.

use crate::block::Sources;
use crate::error::RunError;
use crate::fc::fcp::{self, FcpPair};
use crate::fc::{self, Gateways, Pair};
use crate::iscsi::{self, Session};
use crate::node::{Ends, Node, NodeCounters, Surroundings};
use crate::node_number::{EndNodes, NodeNumber};
use crate::side::Side;
use crate::transport::Transport;
use crate::validate::ValidSimulation;
use spec::WorkloadSpec;
use std::ops::Range;
use units::Time;

/// A node of a run.
pub enum BuiltInNode {
    /// Initiator and target of an iSCSI session.
    Iscsi(Box<Session>),
    /// Two Fibre Channel gateways.
    Fc(Box<Gateways<Pair>>),
    /// Two of which the ports behind are SCSI initiators and targets.
    Fcp(Box<Gateways<FcpPair>>),
}

/// Hands a call on to the node of whatever kind.
macro_rules! each {
    ($node:expr, $inner:ident => $call:expr) => {
        match $node {
            BuiltInNode::Iscsi($inner) => $call,
            BuiltInNode::Fc($inner) => $call,
            BuiltInNode::Fcp($inner) => $call,
        }
    };
}

/// All nodes of `run`, and for each of its flows the nodes that drive its ends.
///
/// # Errors
/// [`RunError`] names the file that cannot be read, or the flow whose requests do not fit what is in it.
pub fn built_in_nodes(run: ValidSimulation<'_>) -> Result<(Vec<BuiltInNode>, Vec<EndNodes>), RunError> {
    let (mut nodes, mut of_ends) = (vec![], vec![[None; 2]; run.flows.len()]);
    let mut sources = Sources::new(run.seed);
    let mut first = 0;
    while first < run.flows.len() {
        let flow = &run.flows[first];
        let count = run.flows[first..].iter().take_while(|other| other.group == flow.group).count();
        let made: Vec<BuiltInNode> = match &flow.workload {
            WorkloadSpec::Iscsi(spec) => {
                let session = iscsi::session(run, spec, first, count, &mut sources)?;
                vec![BuiltInNode::Iscsi(Box::new(session))]
            }
            WorkloadSpec::Fc(spec) => {
                let gateways = fc::gateways(run, spec, first, count).into_iter();
                gateways.map(|gateways| BuiltInNode::Fc(Box::new(gateways))).collect()
            }
            WorkloadSpec::Fcp(spec) => {
                let gateways = fcp::gateways(run, spec, first, count, &mut sources)?.into_iter();
                gateways.map(|gateways| BuiltInNode::Fcp(Box::new(gateways))).collect()
            }
            _ => vec![],
        };
        for node in made {
            let flows = each!(&node, node => node.flows());
            of_ends[flows].fill([Some(NodeNumber::new(nodes.len())); 2]);
            nodes.push(node);
        }
        first += count;
    }
    Ok((nodes, of_ends))
}

impl<T: Transport> Node<T> for BuiltInNode {
    fn flows(&self) -> Range<usize> {
        each!(self, node => node.flows())
    }
    fn start(&mut self, now: Time, ends: &mut Ends<'_, T>) {
        each!(self, node => node.start(now, ends))
    }
    fn stop(&mut self, now: Time) {
        each!(self, node => Node::<T>::stop(&mut **node, now))
    }
    fn handle_arrival(&mut self, now: Time, flow: usize, side: Side, ends: &mut Ends<'_, T>) -> bool {
        each!(self, node => node.handle_arrival(now, flow, side, ends))
    }
    fn handle_sent(&mut self, now: Time, flow: usize, side: Side, ends: &mut Ends<'_, T>) {
        each!(self, node => node.handle_sent(now, flow, side, ends))
    }
    fn handle_transport_timeout(&mut self, now: Time, flow: usize, ends: &mut Ends<'_, T>) {
        each!(self, node => node.handle_transport_timeout(now, flow, ends))
    }
    fn handle_timeout(&mut self, now: Time, ends: &mut Ends<'_, T>) {
        each!(self, node => node.handle_timeout(now, ends))
    }
    fn poll_timer(&mut self) -> Option<Time> {
        each!(self, node => Node::<T>::poll_timer(&mut **node))
    }
    fn poll_pump(&mut self) -> Option<(usize, Side)> {
        each!(self, node => Node::<T>::poll_pump(&mut **node))
    }
    fn poll_reconnect(&mut self) -> Option<usize> {
        each!(self, node => Node::<T>::poll_reconnect(&mut **node))
    }
    fn done_at(&self) -> Option<Time> {
        each!(self, node => Node::<T>::done_at(&**node))
    }
    fn settle(&mut self, now: Time, world: &mut impl Surroundings<T>) {
        each!(self, node => node.settle(now, world))
    }
    fn begin_measuring(&mut self) {
        each!(self, node => Node::<T>::begin_measuring(&mut **node))
    }
    fn finish(&mut self, name: &str, notes: &mut Vec<String>) -> Vec<NodeCounters> {
        each!(self, node => Node::<T>::finish(&mut **node, name, notes))
    }
}
