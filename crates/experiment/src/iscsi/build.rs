//! From specs to sessions.

use super::backing::{Backing, BLOCK_BYTES};
use super::postmark::Postmark;
use super::requests::{Mix, Requests, Traced};
use super::session::Session;
use super::settings::settings;
use crate::error::RunError;
use crate::storage_config::{scheduler, trace_format};
use crate::validate::ValidSimulation;
use link::random::{stream_seed, Random};
use spec::{AllegianceSpec, FlowSpec, IscsiSpec, OutOfRangeSpec, RunSpec, SourceSpec, TraceSpec};
use std::collections::BTreeMap;
use std::path::Path;
use storage::disk::Disk;
use storage::iscsi::initiator::Allegiance;
use storage::iscsi::{Initiator, InitiatorConfig, Target, TargetConfig};
use storage::scsi::{Device, Geometry, Identity, Lun, LunConfig, MAX_TRANSFER_BYTES};
use storage::trace::Player;
use storage::{Trace, TraceError};
use units::Span;

const INITIATOR: &str = "iqn.2026-01.elephan:initiator";
const TARGET: &str = "iqn.2026-01.elephan:disk";

/// Makes the sessions of a run; each trace is read once.
pub struct Sessions<'a> {
    run: ValidSimulation<'a>,
    /// By path.
    traces: BTreeMap<String, Trace>,
}

impl<'a> Sessions<'a> {
    /// Those of `run`.
    pub fn new(run: ValidSimulation<'a>) -> Sessions<'a> {
        Sessions { run, traces: BTreeMap::new() }
    }

    /// The session over the `count` flows from `first` on, which `spec` describes.
    ///
    /// # Errors
    /// [`RunError`] names the file that cannot be read, or the flow whose requests do not fit what is in it.
    pub fn make(&mut self, spec: &IscsiSpec, first: usize, count: usize) -> Result<Session, RunError> {
        session(self.run.spec(), &self.run.flows[first], spec, first, count, &mut self.traces)
    }
}

fn wrong(flow: &FlowSpec, what: &str) -> RunError {
    RunError::File(format!("flow {}: iscsi: {what}", flow.name))
}

fn session(
    run: &RunSpec,
    flow: &FlowSpec,
    spec: &IscsiSpec,
    first: usize,
    count: usize,
    traces: &mut BTreeMap<String, Trace>,
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
    let backing = backing(flow, spec)?;
    let requests = requests(run, flow, spec, backing.blocks(), traces)?;
    let target = Target::new(target, unit(backing.blocks()));
    Ok(Session::new(first, count, Initiator::new(config), target, backing, requests, spec.queue_depth as usize))
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
        return Ok(Backing::instant(disk.size_bytes / block));
    };
    let text = disk.drive.as_ref().map_or(model.clone(), |drive| format!("{model}:{drive}"));
    let device = storage::disk::device(&text).map_err(|error| wrong(flow, &error.to_string()))?;
    let scheduler = disk.scheduler.map_or(device.scheduler(), scheduler);
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
            let needed = Postmark::blocks(u64::from(*files), most);
            if needed > unit_blocks {
                let (needed, unit) = (needed * u64::from(BLOCK_BYTES), unit_blocks * u64::from(BLOCK_BYTES));
                return Err(wrong(flow, &format!("postmark: its files need {needed} B, and the unit has {unit} B")));
            }
            let stream = Random::new(stream_seed(run.seed, &format!("iscsi/{}", flow.name)));
            Ok(Requests::Postmark(Postmark::new(*files, least, most, *transactions, stream)))
        }
        SourceSpec::Trace { trace, timed, device, out_of_range: beyond } => {
            let all = read(trace, traces)?;
            let fitted = fit(flow, trace, &all, *device, *beyond, unit_blocks)?;
            Ok(Requests::Trace(Traced::new(Player::new(fitted, trace.time_scale_e6, trace.looped), *timed)))
        }
    }
}

fn read(spec: &TraceSpec, traces: &mut BTreeMap<String, Trace>) -> Result<Trace, RunError> {
    if let Some(trace) = traces.get(&spec.path) {
        return Ok(trace.clone());
    }
    let wrong = |error: TraceError| RunError::Trace(error.to_string());
    let trace = storage::open(Path::new(&spec.path), trace_format(spec.format)).map_err(wrong)?;
    traces.insert(spec.path.clone(), trace.clone());
    Ok(trace)
}

/// The requests that concern the unit, within its blocks.
fn fit(
    flow: &FlowSpec,
    spec: &TraceSpec,
    trace: &Trace,
    device: Option<u32>,
    beyond: OutOfRangeSpec,
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
                OutOfRangeSpec::Skip => continue,
                OutOfRangeSpec::Wrap if blocks <= unit_blocks => {
                    request.lba = (request.lba % unit_blocks).min(unit_blocks - blocks);
                }
                _ => {
                    let (from, path) = (request.lba, &spec.path);
                    return Err(wrong(
                        flow,
                        &format!(
                            "{path}: request {number}: sectors {from} to before {}, but the unit has {unit_blocks}: \
                             out_of_range = \"skip\" leaves such requests out, \"wrap\" takes their place \
                             modulo the unit's size",
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
