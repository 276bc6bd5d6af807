//! From specs to gateways whose ports are SCSI initiators and targets.

use super::acceleration::{Acceleration, Far, Near};
use super::end::End;
use super::host::Host;
use super::pair::FcpPair;
use crate::block::{unit, Sources, Volume};
use crate::error::RunError;
use crate::fc::gateways::Gateways;
use crate::fc::group::{link, Group};
use crate::fc::names::{self, Names};
use crate::validate::ValidSimulation;
use spec::{FcProtocolSpec, FcpSpec};
use storage::fc::fcp::initiator::Settings as InitiatorSettings;
use storage::fc::fcp::target::Settings as TargetSettings;
use storage::fc::fcp::Port;
use storage::fc::ifcp::Clock;
use storage::fc::nport::{Role, Settings};
use units::Span;
use wire::encapsulation::ENCAPSULATED_BYTES_MAX;
use wire::fc::Wwn;
use wire::ifcp::AddressMode;

/// Frames that wait in a port behind the one on the line: the next one is cut from its data when that begins.
const PORT_FRAMES: usize = 1;

/// The gateways of the group of `count` flows from `first` on, which `spec` describes.
///
/// # Errors
/// [`RunError`] names the file that cannot be read, or the flow whose requests do not fit what is in it.
pub fn gateways(
    run: ValidSimulation<'_>,
    spec: &FcpSpec,
    first: usize,
    count: usize,
    sources: &mut Sources,
) -> Result<Vec<Gateways<FcpPair>>, RunError> {
    let group = Group { run, protocol: spec.protocol, pairs: spec.pairs as usize, first, count };
    let volume = |number| Volume { flow: &run.flows[first], workload: "fcp", number };
    let disks = sources.backing(volume(0), &spec.disk)?;
    let requests = (0..group.pairs).map(|number| sources.make(volume(number), &spec.source, disks.blocks()));
    let mut requests = requests.collect::<Result<Vec<_>, _>>()?.into_iter();
    let [near, far] = group.ends();
    Ok(group.gateways(Some(transit(spec.protocol)), |number, connection| {
        let [own, theirs] = names::of_pair(number);
        let initiator = InitiatorSettings { queue_depth: spec.queue_depth as usize, ..InitiatorSettings::default() };
        let target = TargetSettings {
            burst_bytes: spec.max_burst_bytes,
            // The host's queue is the limit; TASK SET FULL would hide it.
            commands_max: spec.queue_depth as usize,
            ..TargetSettings::default()
        };
        let unit = unit(disks.blocks(), &format!("{}", theirs.port));
        let ports = [
            Port::new(settings(spec, own), Some(initiator), None),
            Port::new(settings(spec, theirs), None, Some((target, unit))),
        ];
        let [initiator, target] = ports;
        let [grants, holds] = if spec.write_acceleration {
            let near_gateway = Near::new(spec.max_burst_bytes, near.buffer_bytes);
            [Acceleration::Near(near_gateway), Acceleration::Far(Far::new(far.buffer_bytes))]
        } else {
            [Acceleration::Off, Acceleration::Off]
        };
        let ends = [(near, initiator, own, grants), (far, target, theirs, holds)].map(|(gateway, port, names, of)| {
            let buffer_frames = (gateway.buffer_bytes / ENCAPSULATED_BYTES_MAX as u64) as usize;
            End::new(port, link(gateway, PORT_FRAMES), names, buffer_frames, of)
        });
        let requests = requests.next().expect("as many sources as pairs");
        FcpPair::new(connection, ends, [own, theirs], Host::new(requests, spec.queue_depth as usize), disks.clone())
    }))
}

fn settings(spec: &FcpSpec, names: Names) -> Settings {
    // Its parts give a port its role.
    let receive_bytes = u16::try_from(spec.frame_bytes).unwrap_or(u16::MAX);
    Settings { receive_bytes, ..Settings::new(names.port, names.node, Role::default()) }
}

/// Longest time of a frame between the gateways, of which the other half of R_A_TOV is for the SANs.
fn transit(protocol: FcProtocolSpec) -> Span {
    match protocol {
        FcProtocolSpec::Ifcp => {
            Span(storage::fc::ifcp::Settings::new(AddressMode::Transparent, Clock::Unsynchronized).ip_tov_ns)
        }
        FcProtocolSpec::Fcip => Span::from_millis(storage::fc::fcip::Settings::new(Wwn(0), Wwn(0)).transit_ms.into()),
    }
}
