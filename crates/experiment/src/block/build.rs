//! From specs to units, disks and sources of requests.

use super::backing::{Backing, BLOCK_BYTES};
use super::postmark::Postmark;
use super::requests::{Mix, Requests, Traced};
use crate::error::RunError;
use crate::storage_config::{scheduler, trace_format};
use link::random::{stream_seed, Random};
use spec::{DiskSpec, FlowSpec, OutOfRangeSpec, SourceSpec, TraceContent, TraceSpec};
use std::collections::BTreeMap;
use std::path::Path;
use storage::disk::{Device, Disk};
use storage::scsi::{self, Geometry, Identity, Lun, LunConfig, MAX_TRANSFER_BYTES};
use storage::trace::Player;
use storage::{Trace, TraceError};
use units::Span;

/// A volume of a flow, for messages and random streams.
#[derive(Clone, Copy)]
pub struct Volume<'a> {
    /// The flow; of several connections the first.
    pub flow: &'a FlowSpec,
    /// Kind of its workload.
    pub workload: &'static str,
    /// Number among the flow's volumes, from 0.
    pub number: usize,
}

impl Volume<'_> {
    fn wrong(&self, what: &str) -> RunError {
        RunError::File(format!("flow {}: {}: {what}", self.flow.name, self.workload))
    }

    /// Random stream of its requests. Volumes of all workloads have the same, so that they can be compared request by
    /// request.
    fn stream(&self, seed: u64) -> Random {
        let name = match self.number {
            0 => format!("iscsi/{}", self.flow.name),
            number => format!("iscsi/{}/{number}", self.flow.name),
        };
        Random::new(stream_seed(seed, &name))
    }
}

/// Sources of requests of a run, and the disks for them; each file is read once.
pub struct Sources {
    seed: u64,
    /// By path, format and columns.
    traces: BTreeMap<TraceContent, Trace>,
    /// At rest, by what a user calls them.
    devices: BTreeMap<String, Device>,
}

impl Sources {
    /// Those of a run with `seed`.
    pub fn new(seed: u64) -> Sources {
        Sources { seed, traces: BTreeMap::new(), devices: BTreeMap::new() }
    }

    /// The source that `source` describes, of requests within `unit_blocks`.
    ///
    /// # Errors
    /// [`RunError`] names the file that cannot be read, or the flow whose requests do not fit what is in it.
    pub fn make(&mut self, volume: Volume<'_>, source: &SourceSpec, unit_blocks: u64) -> Result<Requests, RunError> {
        match source {
            SourceSpec::Mix { reads_e6, request_bytes, random, think_ns, requests, span_bytes } => {
                let blocks = request_bytes / BLOCK_BYTES;
                let span = span_bytes.map_or(unit_blocks, |bytes| bytes / u64::from(BLOCK_BYTES));
                let places = span / u64::from(blocks);
                if places == 0 || span > unit_blocks {
                    let unit = unit_blocks * u64::from(BLOCK_BYTES);
                    return Err(volume.wrong(&format!("requests and their span have to fit into the unit of {unit} B")));
                }
                let stream = volume.stream(self.seed);
                let think = Span(*think_ns);
                Ok(Requests::Mix(Mix::new(*reads_e6, blocks, places, *random, think, *requests, stream)))
            }
            SourceSpec::Postmark { files, smallest_bytes, largest_bytes, transactions } => {
                let (least, most) = (u64::from(*smallest_bytes), u64::from(*largest_bytes));
                let needed = Postmark::blocks(u64::from(*files), most);
                if needed > unit_blocks {
                    let (needed, unit) = (needed * u64::from(BLOCK_BYTES), unit_blocks * u64::from(BLOCK_BYTES));
                    let what = format!("postmark: its files need {needed} B, and the unit has {unit} B");
                    return Err(volume.wrong(&what));
                }
                let stream = volume.stream(self.seed);
                Ok(Requests::Postmark(Postmark::new(*files, least, most, *transactions, stream)))
            }
            SourceSpec::Trace { trace, timed, device, out_of_range } => {
                let all = self.read(trace)?;
                let fitted = fit(volume, trace, &all, *device, *out_of_range, unit_blocks)?;
                Ok(Requests::Trace(Traced::new(Player::new(fitted, trace.time_scale_e6, trace.looped), *timed)))
            }
        }
    }

    /// The disks that `disk` describes. Volumes with the same model share its description in memory.
    ///
    /// # Errors
    /// [`RunError`] names the file that cannot be read.
    pub fn backing(&mut self, volume: Volume<'_>, disk: &DiskSpec) -> Result<Backing, RunError> {
        let block = u64::from(BLOCK_BYTES);
        let Some(model) = &disk.model else {
            return Ok(Backing::instant(disk.size_bytes / block));
        };
        let text = disk.drive.as_ref().map_or(model.clone(), |drive| format!("{model}:{drive}"));
        let device = match self.devices.get(&text) {
            Some(device) => device.clone(),
            None => {
                let device = storage::disk::device(&text).map_err(|error| volume.wrong(&error.to_string()))?;
                self.devices.entry(text).or_insert(device).clone()
            }
        };
        let scheduler = disk.scheduler.map_or(device.scheduler(), scheduler);
        Ok(Backing::striped(&Disk::new(device, scheduler), disk.count as usize, disk.stripe_bytes / block))
    }

    fn read(&mut self, spec: &TraceSpec) -> Result<Trace, RunError> {
        if let Some(trace) = self.traces.get(&spec.content()) {
            return Ok(trace.clone());
        }
        let wrong = |error: TraceError| RunError::Trace(error.to_string());
        let trace = storage::open(Path::new(&spec.path), trace_format(spec).map_err(wrong)?).map_err(wrong)?;
        self.traces.insert(spec.content(), trace.clone());
        Ok(trace)
    }
}

/// A unit of `blocks` of the target named `target`.
pub fn unit(blocks: u64, target: &str) -> scsi::Device {
    let identity = Identity {
        vendor: "ELEPHAN".to_owned(),
        product: "DISK".to_owned(),
        revision: "1".to_owned(),
        serial: "1".to_owned(),
        target: target.to_owned(),
    };
    let geometry = Geometry { blocks, block_bytes: BLOCK_BYTES, physical_bytes: BLOCK_BYTES };
    scsi::Device::new(vec![Lun::new(LunConfig {
        geometry,
        identity,
        read_only: false,
        thin: false,
        write_cache: true,
    })])
}

/// The requests that concern the unit, within its blocks.
fn fit(
    volume: Volume<'_>,
    spec: &TraceSpec,
    trace: &Trace,
    device: Option<u32>,
    out_of_range: OutOfRangeSpec,
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
            return Err(
                volume.wrong(&format!("{path}: request {number} has {bytes} B: at most 16 MiB, as one command"))
            );
        }
        if request.lba.saturating_add(blocks) > unit_blocks {
            match out_of_range {
                OutOfRangeSpec::Skip => continue,
                OutOfRangeSpec::Wrap if blocks <= unit_blocks => {
                    request.lba = (request.lba % unit_blocks).min(unit_blocks - blocks);
                }
                _ => {
                    let (from, path) = (request.lba, &spec.path);
                    return Err(volume.wrong(&format!(
                        "{path}: request {number}: sectors {from} to before {}, but the unit has {unit_blocks}: \
                             out_of_range = \"skip\" leaves such requests out, \"wrap\" takes their place \
                             modulo the unit's size",
                        request.lba.saturating_add(blocks)
                    )));
                }
            }
        }
        fitted.push(request);
    }
    if fitted.is_empty() {
        return Err(volume.wrong(&format!("{}: no request to play", spec.path)));
    }
    Ok(Trace { requests: fitted.into() })
}
