//! Hold buffers at moving routers, and the lines that pace their release.

use link::hold_buffer::Config;
use link::{Link, Pacers, Packet};
use spec::HoldBufferSpec;
use std::collections::BTreeMap;
use units::Rate;

/// Numbers of those lines: one for each link and rate, one for each buffer that names no link.
#[derive(Default)]
pub struct Lines(Vec<Option<(usize, u64)>>);

impl Lines {
    /// Returns the number of the line of a hold buffer.
    pub fn number(&mut self, hold_buffer: &HoldBufferSpec) -> usize {
        let key = hold_buffer.line.map(|line| (line, hold_buffer.rate_bps));
        let known = key.and_then(|_| self.0.iter().position(|other| *other == key));
        known.unwrap_or_else(|| {
            self.0.push(key);
            self.0.len() - 1
        })
    }
}

/// Makes hold buffers, each with the number of its line.
pub fn make<'a, P: Packet>(
    hold_buffers: impl Iterator<Item = (usize, &'a HoldBufferSpec)>,
    pacers: &mut Pacers,
) -> Vec<Link<P>> {
    let mut by_line = BTreeMap::new();
    let hold_buffer = |(number, hold_buffer): (usize, &HoldBufferSpec)| {
        let pacer = *by_line.entry(number).or_insert_with(|| pacers.add(Rate(hold_buffer.rate_bps)));
        Link::hold_buffer(Config { pacer, limit_bytes: hold_buffer.limit_bytes })
    };
    hold_buffers.map(hold_buffer).collect()
}
