//! A drive held against what was measured of it.

use super::demerit::{demerit_ns, disksim_rms_ns};
use super::drive::{Drive, Extent};
use super::spec::DriveSpec;
use crate::trace::{MeasuredRequest, TraceError, SECTOR_BYTES};

/// A simulated drive compared with the measured one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValidationReport {
    /// Requests.
    pub requests: u64,
    /// Mean service time, ns: simulated.
    pub simulated_ns: u64,
    /// The same as measured.
    pub measured_ns: u64,
    /// Demerit figure, ns: see [`demerit_ns`].
    pub demerit_ns: u64,
    /// The same by DiskSim's program: see [`disksim_rms_ns`].
    pub disksim_rms_ns: u64,
    /// 0, 5, 10, ... 100 % of the requests took at most this: (simulated, measured), ns.
    pub percentiles: Vec<(u64, u64)>,
}

/// Issues the requests of a validation trace as they were measured: each when the one before was done and the recorded
/// pause had passed. The drive begins at rest, see [`Drive::new`]. Holds the service times.
///
/// # Errors
/// The first that the trace has, or a request beyond the drive, with its number.
pub fn validate(
    spec: DriveSpec,
    trace: impl Iterator<Item = Result<MeasuredRequest, TraceError>>,
) -> Result<ValidationReport, String> {
    let (mut drive, mut now) = (Drive::new(spec), 0u64);
    let (mut simulated, mut measured) = (Vec::new(), Vec::new());
    for (number, request) in (1u64..).zip(trace) {
        let request = request.map_err(|error| error.to_string())?;
        let blocks = u64::from(request.bytes / SECTOR_BYTES);
        if blocks > drive.blocks() || request.lba > drive.blocks() - blocks {
            let (first, size) = (request.lba, drive.blocks());
            return Err(format!("request {number}: block {first} and {blocks} blocks, but the drive has {size}"));
        }
        let done = drive.serve(now, Extent { block: request.lba, blocks, kind: request.kind });
        simulated.push(done - now);
        measured.push(request.service_ns);
        now = done.saturating_add(request.pause_ns).min(u64::MAX / 4);
    }
    if simulated.is_empty() {
        return Err("no request in the trace".to_owned());
    }
    let mean = |times: &[u64]| (times.iter().map(|&ns| u128::from(ns)).sum::<u128>() / times.len() as u128) as u64;
    let (simulated_ns, measured_ns) = (mean(&simulated), mean(&measured));
    let demerit_ns = demerit_ns(&mut simulated, &mut measured);
    let disksim_rms_ns = disksim_rms_ns(&mut simulated, &mut measured);
    let last = simulated.len() - 1;
    let percentiles = (0..=20).map(|n| n * last / 20).map(|i| (simulated[i], measured[i])).collect();
    let requests = simulated.len() as u64;
    Ok(ValidationReport { requests, simulated_ns, measured_ns, demerit_ns, disksim_rms_ns, percentiles })
}
