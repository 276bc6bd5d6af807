//! Sessions in the world: what packets and timers mean to them.

use super::NONE;
use crate::flow::Side;
use crate::packet::Packet;
use crate::transport::tcp_config;
use crate::world::World;
use sim::Network;
use tcp::Endpoint;
use units::Time;

impl World {
    /// A segment came to an end of a connection of a session, and TCP has it.
    pub(crate) fn session_tcp(&mut self, now: Time, index: usize, side: Side, net: &mut Network<Packet>) {
        let session = self.flows[index].session as usize;
        self.sessions[session].handle_tcp(now, index, side, &mut self.flows);
        // Acknowledgments, whether the session has something to send or not.
        self.pump(now, index, side, net);
        self.settle(now, session, net);
    }

    /// The timer of an end of a connection of a session fired, and TCP knows.
    pub(crate) fn session_tcp_timeout(&mut self, now: Time, index: usize, side: Side, net: &mut Network<Packet>) {
        let session = self.flows[index].session as usize;
        self.sessions[session].handle_tcp_timeout(now, index, &mut self.flows);
        self.pump(now, index, side, net);
        self.settle(now, session, net);
    }

    /// The timer of a flow's application fired; for a session it is that of the first connection.
    pub(crate) fn session_timer(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let session = self.flows[index].session as usize;
        if self.sessions[session].first != index {
            return;
        }
        if self.opened[index] {
            self.sessions[session].armed = Time::NEVER;
            self.sessions[session].handle_timeout(now, &mut self.flows);
        } else {
            self.sessions[session].flows().for_each(|flow| self.opened[flow] = true);
            self.sessions[session].start(now, &mut self.flows);
        }
        self.settle(now, session, net);
    }

    /// A flow's application stops.
    pub(crate) fn session_stop(&mut self, now: Time, index: usize, net: &mut Network<Packet>) {
        let session = self.flows[index].session as usize;
        self.sessions[session].stop(now);
        self.settle(now, session, net);
    }

    /// The measured interval of all sessions begins.
    pub(crate) fn sessions_measure(&mut self) {
        self.sessions.iter_mut().for_each(super::Session::begin_measuring);
    }

    /// Sends what a session has handed to TCP, sets its timer, notes its end.
    fn settle(&mut self, now: Time, session: usize, net: &mut Network<Packet>) {
        while let Some(flow) = self.sessions[session].anew.pop() {
            self.make_anew(now, flow);
        }
        while let Some((flow, side)) = self.sessions[session].pumps.pop() {
            self.pump(now, flow, side, net);
            // What went makes room.
            let this = &mut self.sessions[session];
            let index = flow - this.first;
            this.fill(now, index, side, &mut self.flows);
        }
        let this = &mut self.sessions[session];
        if std::mem::take(&mut this.moved) {
            // Early is harmless: a deadline that only moves back costs nothing.
            let due = this.poll_timeout();
            if due < this.armed {
                this.armed = due;
                net.set_timer(self.timers.application(this.first), due);
            }
        }
        let (flows, done_at) = (this.flows(), this.done_at);
        if done_at.is_some() && self.flows[flows.start].workload.done_at.is_none() {
            for flow in flows {
                self.flows[flow].workload.done_at = done_at;
                self.finish_one(net);
            }
        }
    }

    /// Makes a flow's connection anew, and opens it.
    fn make_anew(&mut self, now: Time, index: usize) {
        let flow = &mut self.flows[index];
        let (name, transport) = (&flow.spec.name, &flow.spec.transport);
        let again = "what was made once of these settings is made again";
        let config = tcp_config(name, transport).expect(again);
        let mut control = || self.algorithms.controller(name, transport).expect(again);
        let sender = Endpoint::new_client(config.clone(), control(), now);
        let receiver = Endpoint::new_server(config, control(), now);
        flow.make_anew(sender, receiver);
        flow.sender.connect(now);
    }

    /// What the sessions did goes to their flows, and what a reader has to know to the notes.
    pub(crate) fn close_sessions(&mut self, notes: &mut Vec<String>) {
        for session in &mut self.sessions {
            // What drains afterwards is not its load.
            session.stopped = true;
            // The connections of a session are told apart by a number behind its name, which stands for no one of them.
            let name = &self.flows[session.first].spec.name;
            let name =
                if session.connections.len() > 1 { name.rsplit_once('.').map_or(&name[..], |n| n.0) } else { name };
            if let Some((at, why)) = &session.lost {
                let times = if session.losses == 1 { "once".to_owned() } else { format!("{} times", session.losses) };
                let end =
                    session.given_up.map_or_else(String::new, |at| format!("; given up at {:.3} s", at.as_secs_f64()));
                notes.push(format!(
                    "flow {name}: the session was lost {times}, first at {:.3} s: {why}{end}",
                    at.as_secs_f64()
                ));
            }
            let window = session.initiator.window_use();
            if window.is_limit() {
                notes.push(format!(
                    "flow {name}: the command window of {}, not the queue depth of {}, was the limit: {} of {} requests \
                     waited for it (command_window)",
                    window.width, session.depth, window.waited, window.submitted
                ));
            }
            for (index, connection) in session.connections.iter_mut().enumerate() {
                let tally = std::mem::take(&mut connection.tally);
                self.flows[session.first + index].workload.source = crate::workload::Source::Iscsi(Box::new(tally));
            }
        }
        debug_assert!(self
            .flows
            .iter()
            .all(|flow| flow.session == NONE || (flow.session as usize) < self.sessions.len()));
    }
}
