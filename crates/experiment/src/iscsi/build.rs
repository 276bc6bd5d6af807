//! From specs to sessions.

use super::session::Session;
use super::settings::settings;
use crate::block::{unit, Sources, Volume};
use crate::error::RunError;
use crate::validate::ValidSimulation;
use spec::{AllegianceSpec, IscsiSpec};
use storage::iscsi::initiator::Allegiance;
use storage::iscsi::{Initiator, InitiatorConfig, Target, TargetConfig};

const INITIATOR: &str = "iqn.2026-01.elephan:initiator";
const TARGET: &str = "iqn.2026-01.elephan:disk";

/// Returns the session over the `count` flows from `first` on, which `spec` describes.
///
/// # Errors
/// [`RunError`] names the file that cannot be read, or the flow whose requests do not fit what is in it.
pub fn session(
    run: ValidSimulation<'_>,
    spec: &IscsiSpec,
    first: usize,
    count: usize,
    sources: &mut Sources,
) -> Result<Session, RunError> {
    let (own, theirs) = settings(spec, count);
    let mut config = InitiatorConfig::new(INITIATOR, Some(TARGET));
    config.settings = own;
    config.connections = count;
    config.allegiance = match spec.allegiance {
        AllegianceSpec::RoundRobin => Allegiance::RoundRobin,
        AllegianceSpec::LeastOutstanding => Allegiance::LeastOutstanding,
    };
    let mut target = TargetConfig::new(TARGET);
    target.settings = theirs;
    target.window = spec.command_window;
    let volume = Volume { flow: &run.flows[first], workload: "iscsi", number: 0 };
    let backing = sources.backing(volume, &spec.disk)?;
    let requests = sources.make(volume, &spec.source, backing.blocks())?;
    let target = Target::new(target, unit(backing.blocks(), TARGET));
    Ok(Session::new(first, count, Initiator::new(config), target, backing, requests, spec.queue_depth as usize))
}
