//! iSCSI sessions in the world: what packets and timers mean to them.

use super::connections::Connections;
use crate::iscsi::Session;
use crate::packet::Packet;
use crate::session_number::SessionNumber;
use crate::side::Side;
use crate::tcp_config::{tcp_config, Algorithms};
use crate::workload::Source;
use sim::Network;
use tcp::Endpoint;
use units::Time;

/// The sessions of a run.
pub struct Sessions {
    all: Vec<Session>,
    /// For connections in place of lost ones.
    algorithms: Algorithms,
}

impl Sessions {
    /// `sessions`, which connect with `algorithms`.
    pub fn new(sessions: Vec<Session>, algorithms: Algorithms) -> Sessions {
        Sessions { all: sessions, algorithms }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A segment came to an end of connection `index` of session `number`, and TCP has it.
    pub fn handle_tcp(
        &mut self,
        now: Time,
        number: SessionNumber,
        (index, side): (usize, Side),
        of: &mut Connections,
        net: &mut Network<Packet>,
    ) {
        self.all[number.index()].handle_tcp(now, index, side, &mut of.flows);
        // Acknowledgments, whether the session has something to send or not.
        of.pump(now, index, side, net);
        self.settle(now, number, of, net);
    }

    /// The timer of an end of connection `index` of session `number` fired, and TCP knows.
    pub fn handle_tcp_timeout(
        &mut self,
        now: Time,
        number: SessionNumber,
        (index, side): (usize, Side),
        of: &mut Connections,
        net: &mut Network<Packet>,
    ) {
        self.all[number.index()].handle_tcp_timeout(now, index, &mut of.flows);
        of.pump(now, index, side, net);
        self.settle(now, number, of, net);
    }

    /// The timer of the application of flow `index` fired; for a session it is that of the first connection.
    pub fn handle_timer(
        &mut self,
        now: Time,
        number: SessionNumber,
        index: usize,
        of: &mut Connections,
        net: &mut Network<Packet>,
    ) {
        let session = &mut self.all[number.index()];
        if session.first() != index {
            return;
        }
        if of.opened[index] {
            session.handle_timeout(now, &mut of.flows);
        } else {
            session.flows().for_each(|flow| of.opened[flow] = true);
            session.start(now, &mut of.flows);
        }
        self.settle(now, number, of, net);
    }

    /// The application stops.
    pub fn stop(&mut self, now: Time, number: SessionNumber, of: &mut Connections, net: &mut Network<Packet>) {
        self.all[number.index()].stop(now);
        self.settle(now, number, of, net);
    }

    /// The measured interval begins.
    pub fn begin_measuring(&mut self) {
        self.all.iter_mut().for_each(Session::begin_measuring);
    }

    /// Sends what a session has handed to TCP, sets its timer, notes its end.
    fn settle(&mut self, now: Time, number: SessionNumber, of: &mut Connections, net: &mut Network<Packet>) {
        while let Some(flow) = self.all[number.index()].poll_reconnect() {
            self.reconnect(now, flow, of);
        }
        let session = &mut self.all[number.index()];
        while let Some((flow, side)) = session.poll_pump() {
            of.pump(now, flow, side, net);
            // What went makes room.
            session.handle_sent(now, flow, side, &mut of.flows);
        }
        if let Some(due) = session.poll_timer() {
            net.set_timer(of.timers.application(session.first()), due);
        }
        let (flows, done_at) = (session.flows(), session.done_at());
        if done_at.is_some() && of.flows[flows.start].workload.done_at.is_none() {
            for flow in flows {
                of.flows[flow].workload.done_at = done_at;
                of.finish_one(net);
            }
        }
    }

    /// Gives a flow fresh endpoints, and opens their connection.
    fn reconnect(&mut self, now: Time, index: usize, of: &mut Connections) {
        let spec = &of.flows[index].spec;
        let (name, stack) = (&spec.name, &spec.stack);
        let again = "what was made once of these settings is made again";
        let config = tcp_config(stack);
        let mut control = || self.algorithms.controller(name, stack).expect(again);
        let sender = Endpoint::new_client(config.clone(), control(), now);
        let receiver = Endpoint::new_server(config, control(), now);
        of.reconnect(now, index, sender, receiver);
    }

    /// What the sessions did goes to their flows, and what a reader has to know to the notes.
    pub fn finish(&mut self, of: &mut Connections, notes: &mut Vec<String>) {
        for session in &mut self.all {
            let flows = session.flows();
            let counters = session.finish(&of.flows[flows.start].spec.name, notes);
            for (flow, counters) in of.flows[flows].iter_mut().zip(counters) {
                flow.workload.source = Source::Iscsi(Box::new(counters));
            }
        }
    }
}
