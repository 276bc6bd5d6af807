//! From specs to gateways whose ports carry a load.

use super::gateways::Gateways;
use super::group::{link, Group};
use super::names;
use super::pair::Pair;
use crate::applications::name;
use crate::validate::ValidSimulation;
use crate::workload::{Generator, RandomWrites};
use spec::{FcLoadSpec, FcSpec, WritesSpec};
use wire::encapsulation::ENCAPSULATED_BYTES_MAX;

/// The gateways of the group of `count` flows from `first` on, which `spec` describes.
pub fn gateways(run: ValidSimulation<'_>, spec: &FcSpec, first: usize, count: usize) -> Vec<Gateways<Pair>> {
    let group = Group { run, protocol: spec.protocol, pairs: spec.pairs as usize, first, count };
    let FcLoadSpec { rate_bps, sizes, arrivals, queue_frames } = &spec.load;
    let (sizes, arrivals) = (sizes.clone(), *arrivals);
    let writes = WritesSpec { rate_bps: *rate_bps, sizes, arrivals, header_bytes: 0, active: None };
    let [near, far] = group.ends();
    let far_frames = (far.buffer_bytes / ENCAPSULATED_BYTES_MAX as u64) as usize;
    group.gateways(None, |number, connection| {
        let name = format!("{}/pair{}", name(&run.flows[first]), number + 1);
        let generator = Generator::RandomWrites(Box::new(RandomWrites::new(&writes, run.seed, &name)));
        let addresses = names::of_pair(number).map(|names| names.id);
        Pair::new(connection, addresses, [link(near, *queue_frames as usize), link(far, far_frames)], generator)
    })
}
