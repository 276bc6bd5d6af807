//! From specs to sessions.

use super::backing::{Backing, BLOCK_BYTES};
use super::postmark::Postmark;
use super::requests::{Mix, Requests, Traced};
use super::session::Session;
use crate::error::RunError;
use crate::session_number::SessionNumber;
use crate::spec::{AllegianceSpec, BeyondSpec, FlowSpec, IscsiSpec, RunSpec, SourceSpec, TraceSpec, WorkloadSpec};
use link::random::{stream_seed, Random};
use std::collections::BTreeMap;
use std::path::Path;
use storage::disk::Disk;
use storage::iscsi::initiator::Allegiance;
use storage::iscsi::{Digest, Initiator, InitiatorConfig, Settings, Target, TargetConfig};
use storage::scsi::{Device, Geometry, Identity, Lun, LunConfig, MAX_TRANSFER_BYTES};
use storage::trace::Player;
use storage::{Format, Trace, TraceError};
use units::Span;

const INITIATOR: &str = "iqn.2026-01.elephan:initiator";
const TARGET: &str = "iqn.2026-01.elephan:disk";
/// Largest unit, blocks: of 2^63 bytes.
const MOST_BLOCKS: u64 = 1 << 54;

/// All sessions of `run`, and for each flow the number of its session, where it is of one.
///
/// # Errors
/// [`RunError`] names the flow and what is wrong with its workload, or the file that cannot be read.
pub fn sessions(run: &RunSpec) -> Result<(Vec<Session>, Vec<Option<SessionNumber>>), RunError> {
    let mut sessions = Vec::new();
    let mut of_flow = vec![None; run.flows.len()];
    let mut traces = BTreeMap::new();
    let mut index = 0;
    while index < run.flows.len() {
        let flow = &run.flows[index];
        let WorkloadSpec::Iscsi(spec) = &flow.workload else {
            index += 1;
            continue;
        };
        let count = run.flows[index..].iter().take_while(|other| other.group == flow.group).count();
        for (other, number) in run.flows[index..index + count].iter().zip(&mut of_flow[index..]) {
            check_alike(flow, spec, other)?;
            *number = Some(SessionNumber::new(sessions.len()));
        }
        sessions.push(session(run, flow, spec, index, count, &mut traces)?);
        index += count;
    }
    Ok((sessions, of_flow))
}

fn wrong(flow: &FlowSpec, what: &str) -> RunError {
    RunError::Spec(format!("flow {}: iscsi: {what}", flow.name))
}

/// The connections of a session are one session.
fn check_alike(flow: &FlowSpec, spec: &IscsiSpec, other: &FlowSpec) -> Result<(), RunError> {
    let same = matches!(&other.workload, WorkloadSpec::Iscsi(theirs) if **theirs == *spec)
        && (other.source, other.destination, other.start_ns, other.stop_ns)
            == (flow.source, flow.destination, flow.start_ns, flow.stop_ns);
    if same {
        return Ok(());
    }
    Err(wrong(other, "the connections of a session have the same workload, ends, start and stop"))
}

fn session(
    run: &RunSpec,
    flow: &FlowSpec,
    spec: &IscsiSpec,
    first: usize,
    count: usize,
    traces: &mut BTreeMap<String, Trace>,
) -> Result<Session, RunError> {
    let (own, theirs) = settings(flow, spec, count)?;
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
    let backing = backing(flow, spec)?;
    let requests = requests(run, flow, spec, backing.blocks(), traces)?;
    let target = Target::new(target, unit(backing.blocks()));
    Ok(Session::new(first, count, Initiator::new(config), target, backing, requests, spec.queue_depth as usize))
}

fn settings(flow: &FlowSpec, spec: &IscsiSpec, count: usize) -> Result<(Settings, Settings), RunError> {
    let digest = |on: bool| if on { Digest::Required } else { Digest::Off };
    let initiator = Settings {
        header_digest: digest(spec.header_digest),
        data_digest: digest(spec.data_digest),
        max_connections: u32::try_from(count).unwrap_or(u32::MAX),
        initial_r2t: spec.initial_r2t,
        immediate_data: spec.immediate_data,
        max_recv_bytes: spec.initiator_max_recv_bytes,
        max_burst_bytes: spec.max_burst_bytes,
        first_burst_bytes: spec.first_burst_bytes,
        max_outstanding_r2t: spec.max_outstanding_r2t,
        ..Settings::default()
    };
    let target = Settings { max_recv_bytes: spec.target_max_recv_bytes, ..initiator };
    if initiator.within_ranges() != initiator || target.within_ranges() != target {
        return Err(wrong(flow, "a key is out of the range that RFC 7143 gives it"));
    }
    if spec.queue_depth == 0 || !(1..=4096).contains(&spec.command_window) {
        return Err(wrong(flow, "a queue depth of at least 1 and a command window of 1 to 4096"));
    }
    Ok((initiator, target))
}

fn unit(blocks: u64) -> Device {
    let identity = Identity {
        vendor: "ELEPHAN".to_owned(),
        product: "DISK".to_owned(),
        revision: "1".to_owned(),
        serial: "1".to_owned(),
        target: TARGET.to_owned(),
    };
    let geometry = Geometry { blocks, block_bytes: BLOCK_BYTES, physical_bytes: BLOCK_BYTES };
    Device::new(vec![Lun::new(LunConfig { geometry, identity, read_only: false, thin: false, write_cache: true })])
}

fn backing(flow: &FlowSpec, spec: &IscsiSpec) -> Result<Backing, RunError> {
    let disk = &spec.disk;
    let block = u64::from(BLOCK_BYTES);
    let Some(model) = &disk.model else {
        let blocks = disk.size_bytes / block;
        if !(1..=MOST_BLOCKS).contains(&blocks) {
            return Err(wrong(flow, "a unit of at least one block of 512 B and at most 2^63 B"));
        }
        return Ok(Backing::instant(blocks));
    };
    if disk.count == 0 || disk.stripe_bytes == 0 || disk.stripe_bytes % block != 0 {
        return Err(wrong(flow, "at least one disk, and stripes of a multiple of 512 B"));
    }
    let text = disk.drive.as_ref().map_or(model.clone(), |drive| format!("{model}:{drive}"));
    let device = storage::disk::device(&text).map_err(|error| wrong(flow, &error.to_string()))?;
    let scheduler = storage::disk::scheduler(disk.scheduler.as_deref(), &device);
    let scheduler = scheduler.map_err(|error| wrong(flow, &error))?;
    Ok(Backing::striped(&Disk::new(device, scheduler), disk.count as usize, disk.stripe_bytes / block))
}

fn requests(
    run: &RunSpec,
    flow: &FlowSpec,
    spec: &IscsiSpec,
    unit_blocks: u64,
    traces: &mut BTreeMap<String, Trace>,
) -> Result<Requests, RunError> {
    match &spec.source {
        SourceSpec::Mix { reads_e6, request_bytes, random, think_ns, requests, span_bytes } => {
            let blocks = request_bytes / BLOCK_BYTES;
            if blocks == 0 || request_bytes % BLOCK_BYTES != 0 || *request_bytes > MAX_TRANSFER_BYTES {
                return Err(wrong(flow, "requests of a multiple of 512 B, at most 16 MiB"));
            }
            let span = span_bytes.map_or(unit_blocks, |bytes| bytes / u64::from(BLOCK_BYTES));
            let places = span / u64::from(blocks);
            if places == 0 || span > unit_blocks {
                let unit = unit_blocks * u64::from(BLOCK_BYTES);
                return Err(wrong(flow, &format!("requests and their span have to fit into the unit of {unit} B")));
            }
            let stream = Random::new(stream_seed(run.seed, &format!("iscsi/{}", flow.name)));
            let think = Span(*think_ns);
            Ok(Requests::Mix(Mix::new(*reads_e6, blocks, places, *random, think, *requests, stream)))
        }
        SourceSpec::Postmark { files, smallest_bytes, largest_bytes, transactions } => {
            let (least, most) = (u64::from(*smallest_bytes), u64::from(*largest_bytes));
            if *files == 0 || *files > 1 << 30 || least == 0 || least > most || *largest_bytes > MAX_TRANSFER_BYTES / 2
            {
                return Err(wrong(
                    flow,
                    "postmark: 1 to 2^30 files of 1 B to 8 MiB, the smallest not above the largest",
                ));
            }
            let needed = Postmark::blocks(u64::from(*files), most);
            if needed > unit_blocks {
                let (needed, unit) = (needed * u64::from(BLOCK_BYTES), unit_blocks * u64::from(BLOCK_BYTES));
                return Err(wrong(flow, &format!("postmark: its files need {needed} B, and the unit has {unit} B")));
            }
            let stream = Random::new(stream_seed(run.seed, &format!("iscsi/{}", flow.name)));
            Ok(Requests::Postmark(Postmark::new(*files, least, most, *transactions, stream)))
        }
        SourceSpec::Trace { trace, timed, device, beyond } => {
            let all = read(trace, traces)?;
            let fitted = fit(flow, trace, &all, *device, *beyond, unit_blocks)?;
            Ok(Requests::Trace(Traced::new(Player::new(fitted, trace.slowdown_e6, trace.looped), *timed)))
        }
    }
}

fn read(spec: &TraceSpec, traces: &mut BTreeMap<String, Trace>) -> Result<Trace, RunError> {
    if let Some(trace) = traces.get(&spec.path) {
        return Ok(trace.clone());
    }
    let wrong = |error: TraceError| RunError::Trace(error.to_string());
    let format = Format::asked(&spec.format).map_err(wrong)?;
    let trace = storage::open(Path::new(&spec.path), format).map_err(wrong)?;
    traces.insert(spec.path.clone(), trace.clone());
    Ok(trace)
}

/// The requests that concern the unit, within its blocks.
fn fit(
    flow: &FlowSpec,
    spec: &TraceSpec,
    trace: &Trace,
    device: Option<u32>,
    beyond: BeyondSpec,
    unit_blocks: u64,
) -> Result<Trace, RunError> {
    let mut fitted = Vec::with_capacity(trace.requests.len());
    for (index, request) in trace.requests.iter().enumerate() {
        if device.is_some_and(|device| device != request.device) {
            continue;
        }
        let mut request = *request;
        let blocks = request.sectors();
        let number = index + 1;
        if request.bytes > MAX_TRANSFER_BYTES {
            let (bytes, path) = (request.bytes, &spec.path);
            return Err(wrong(
                flow,
                &format!("{path}: request {number} has {bytes} B: at most 16 MiB, as one command"),
            ));
        }
        if request.lba.saturating_add(blocks) > unit_blocks {
            match beyond {
                BeyondSpec::Skip => continue,
                BeyondSpec::Wrap if blocks <= unit_blocks => {
                    request.lba = (request.lba % unit_blocks).min(unit_blocks - blocks);
                }
                _ => {
                    let (from, path) = (request.lba, &spec.path);
                    return Err(wrong(
                        flow,
                        &format!(
                            "{path}: request {number}: sectors {from} to before {}, but the unit has {unit_blocks}: beyond = \
                             \"skip\" leaves such requests out, \"wrap\" takes their place modulo the unit's size",
                            request.lba.saturating_add(blocks)
                        ),
                    ));
                }
            }
        }
        fitted.push(request);
    }
    if fitted.is_empty() {
        return Err(wrong(flow, &format!("{}: no request to play", spec.path)));
    }
    Ok(Trace { requests: fitted.into() })
}
