//! From specs to gateways.

use super::connection::{Connection, UnitBytes};
use super::gateways::Gateways;
use super::pair::{Carried, Pair};
use crate::applications::name;
use crate::validate::ValidSimulation;
use crate::workload::{Generator, RandomWrites};
use spec::{FcLoadSpec, FcProtocolSpec, FcSpec, GatewaySpec, WritesSpec};
use storage::fc::link::{Link, Settings};
use units::{Rate, Time};
use wire::encapsulation::ENCAPSULATED_BYTES_MAX;

/// The gateways of the group of `count` flows from `first` on, which `spec` describes. Connections without a pair in
/// common are gateways of their own, so that each has its own timer.
pub fn gateways(run: ValidSimulation<'_>, spec: &FcSpec, first: usize, count: usize) -> Vec<Gateways> {
    let group = Group { run, spec, first, count };
    match spec.protocol {
        FcProtocolSpec::Ifcp => (0..count).map(|index| group.gateways(index..index + 1)).collect(),
        FcProtocolSpec::Fcip => vec![group.gateways(0..count)],
    }
}

struct Group<'a> {
    run: ValidSimulation<'a>,
    spec: &'a FcSpec,
    first: usize,
    count: usize,
}

impl Group<'_> {
    /// Those of the group's connections `range`.
    fn gateways(&self, range: std::ops::Range<usize>) -> Gateways {
        let from = Time(self.run.measure.warmup_ns);
        let connections = range.clone().map(|_| Connection::new(from)).collect();
        // A pair keeps to one connection, which keeps its frames in order.
        let pairs = (0..self.spec.pairs as usize).filter(|pair| range.contains(&(pair % self.count)));
        let pairs = pairs.map(|pair| self.pair(pair, pair % self.count - range.start)).collect();
        let unsent = self.ends().map(|gateway| gateway.buffer_bytes);
        Gateways::new(self.first + range.start, connections, pairs, UnitBytes::of(self.spec.protocol), unsent)
    }

    /// The gateways at the two ends of the group's connections.
    fn ends(&self) -> [&GatewaySpec; 2] {
        let flow = &self.run.flows[self.first];
        [flow.source, flow.destination].map(|node| {
            let found = self.run.gateways.iter().find(|gateway| gateway.node == node);
            found.expect("a valid run's flows of workload fc end at gateways")
        })
    }

    fn pair(&self, number: usize, connection: usize) -> Pair {
        let FcLoadSpec { rate_bps, sizes, arrivals, queue_frames } = &self.spec.load;
        let writes = WritesSpec { rate_bps: *rate_bps, sizes: sizes.clone(), arrivals: *arrivals, header_bytes: 0 };
        let name = format!("{}/pair{}", name(&self.run.flows[self.first]), number + 1);
        let generator = Generator::RandomWrites(Box::new(RandomWrites::new(&writes, self.run.seed, &name)));
        let [near, far] = self.ends();
        let far_frames = (far.buffer_bytes / ENCAPSULATED_BYTES_MAX as u64) as usize;
        Pair::new(connection, [link(near, *queue_frames as usize), link(far, far_frames)], generator)
    }
}

fn link(gateway: &GatewaySpec, queue_frames: usize) -> Link<Carried> {
    let settings = Settings {
        rate: Rate(gateway.rate_bps),
        delay_ns: gateway.delay_ns,
        credits: u16::try_from(gateway.credits).unwrap_or(u16::MAX),
        queue_frames: queue_frames.max(1),
    };
    Link::new(settings).expect("a valid run's gateways have credits")
}
