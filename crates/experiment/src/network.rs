//! The network of a spec for its carrier: the simulator in virtual time, an emulator in wall-clock time.

use crate::hold_buffers;
use crate::link_config::link_config;
use crate::routes;
use crate::validate::ValidRun;
use link::random::stream_seed;
use link::{Link, Pacers, Packet};

/// All links of `run`, in its order, then the hold buffers of its moves, whose pacers go to `pacers`. With `ahead`,
/// [`Link::fixed`] makes those that no event changes; it may tell of a loss before its time. Without, everything may
/// change while they carry packets.
pub fn links<P: Packet>(run: ValidRun<'_>, ahead: bool, pacers: &mut Pacers) -> Vec<Link<P>> {
    let links = (0..run.links.len()).map(|index| build_link(index, run, ahead));
    let mut lines = hold_buffers::Lines::default();
    let hold_buffers = hold_buffers::make(
        routes::hold_buffers(run.spec()).map(|(_, hold_buffer)| (lines.number(hold_buffer), hold_buffer)),
        pacers,
    );
    links.chain(hold_buffers).collect()
}

fn build_link<P: Packet>(index: usize, run: ValidRun<'_>, ahead: bool) -> Link<P> {
    let spec = &run.links[index];
    let seed = stream_seed(run.seed, &format!("link/{}", spec.name));
    let changes = run.events.iter().any(|e| e.action.link() == Some(index));
    let config = link_config(spec);
    match (ahead, changes) {
        (false, _) => Link::live(&config, seed),
        (true, true) => Link::variable(&config, seed),
        (true, false) => Link::fixed(&config, seed),
    }
}
