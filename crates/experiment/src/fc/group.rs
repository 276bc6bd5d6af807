//! The gateways of a group of flows, whatever the ports behind them do.

use super::carried::Carried;
use super::connection::Connection;
use super::gateways::Gateways;
use super::ports::Ports;
use crate::validate::ValidSimulation;
use spec::{FcProtocolSpec, GatewaySpec};
use storage::fc::link::{Link, Settings};
use units::{Rate, Span, Time};

/// The flows of a group: connections between two gateways, and the pairs of N_Ports that they carry.
pub struct Group<'a> {
    /// The run.
    pub run: ValidSimulation<'a>,
    /// Protocol between the gateways.
    pub protocol: FcProtocolSpec,
    /// Pairs of N_Ports.
    pub pairs: usize,
    /// The first flow.
    pub first: usize,
    /// Flows.
    pub count: usize,
}

impl<'a> Group<'a> {
    /// The gateways at the ends of the group's flows; `pair` makes a pair by its number and the connection among those
    /// of its gateways. Frames older than `transit` are discarded. Connections without a pair in common are gateways of
    /// their own, so that each has its own timer.
    pub fn gateways<P: Ports>(
        &self,
        transit: Option<Span>,
        mut pair: impl FnMut(usize, usize) -> P,
    ) -> Vec<Gateways<P>> {
        let each = match self.protocol {
            FcProtocolSpec::Ifcp => 1,
            FcProtocolSpec::Fcip => self.count,
        };
        let from = Time(self.run.measure.warmup_ns);
        let unsent = self.ends().map(|gateway| gateway.buffer_bytes);
        let mut made = vec![];
        for range in (0..self.count).step_by(each).map(|start| start..start + each) {
            let made_of = |number| Connection::new(self.protocol, number, self.first + number, from);
            let connections = range.clone().map(made_of).collect();
            // A pair keeps to one connection, which keeps its frames in order.
            let numbers = (0..self.pairs).filter(|number| range.contains(&(number % self.count)));
            let pairs = numbers.map(|number| pair(number, number % self.count - range.start)).collect();
            let first = self.first + range.start;
            made.push(Gateways::new(first, connections, pairs, unsent, transit));
        }
        made
    }

    /// The gateways at the two ends of the group's connections.
    pub fn ends(&self) -> [&'a GatewaySpec; 2] {
        let run = self.run.spec();
        let flow = &run.flows[self.first];
        [flow.source, flow.destination].map(|node| {
            let found = run.gateways.iter().find(|gateway| gateway.node == node);
            found.expect("a valid run's flows between N_Ports end at gateways")
        })
    }
}

/// The link of an N_Port behind `gateway`, at which `queue_frames` may wait at either end.
pub fn link(gateway: &GatewaySpec, queue_frames: usize) -> Link<Carried> {
    let settings = Settings {
        rate: Rate(gateway.rate_bps),
        delay_ns: gateway.delay_ns,
        credits: u16::try_from(gateway.credits).unwrap_or(u16::MAX),
        queue_frames: queue_frames.max(1),
    };
    Link::new(settings).expect("a valid run's gateways have credits")
}
