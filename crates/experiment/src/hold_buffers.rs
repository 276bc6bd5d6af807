//! Gates at moving routers, and the lines for which they let go what they kept back.

use crate::spec::GateSpec;
use link::{Link, Pacer, Packet};
use std::collections::BTreeMap;
use units::Rate;

/// Numbers for those lines: one for each link and rate, one for each gate that names no link.
#[derive(Default)]
pub struct Lines(Vec<Option<(usize, u64)>>);

impl Lines {
    /// The number of the line of `gate`.
    pub fn number(&mut self, gate: &GateSpec) -> usize {
        let key = gate.line.map(|line| (line, gate.rate_bps));
        let known = key.and_then(|_| self.0.iter().position(|other| *other == key));
        known.unwrap_or_else(|| {
            self.0.push(key);
            self.0.len() - 1
        })
    }
}

/// Makes gates, each with the number of its line.
pub fn make<'a, P: Packet>(gates: impl Iterator<Item = (usize, &'a GateSpec)>) -> Vec<Link<P>> {
    let mut pacers = BTreeMap::new();
    let gate = |(number, gate): (usize, &GateSpec)| {
        let pacer = pacers.entry(number).or_insert_with(|| Pacer::new(Rate(gate.rate_bps)));
        Link::gate(pacer, gate.limit_bytes)
    };
    gates.map(gate).collect()
}
