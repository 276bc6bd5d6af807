//! A trace played to disks: one disk for each device of the trace.

use super::disk::{Completion, Device, Disk};
use super::drive::Extent;
use super::schedule::Scheduler;
use crate::trace::{Format, Request, TraceError};
use std::collections::BTreeMap;
use std::fmt;
use units::{Histogram, Time};

/// Devices of a trace that are played at once; each has a disk of its own.
const DISKS_MAX: usize = 4096;

/// Handling of a request beyond the end of the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OutOfRange {
    /// The replay ends with an error.
    #[default]
    Refuse,
    /// It is left out and counted.
    Skip,
    /// Its block number is taken modulo the disk's size.
    Wrap,
}

/// The plan of a replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayPlan {
    /// Order of requests on each disk.
    pub scheduler: Scheduler,
    /// None: requests come when they came. Some(n): n are always under way, whatever their times.
    pub closed: Option<usize>,
    /// Only the requests to this device.
    pub device: Option<u32>,
    /// Format of the trace, as whose errors name devices.
    pub format: Format,
    /// Handling of requests beyond the end of the disk.
    pub out_of_range: OutOfRange,
    /// Factor on times, 10^-6; above zero.
    pub time_scale_e6: u64,
}

/// Response and service times of one kind of request, ns.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// From arrival to completion.
    pub response: Histogram,
    /// From the time at which the device took it.
    pub service: Histogram,
}

/// Results of a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayReport {
    /// Reads, writes.
    pub reads: Times,
    /// Writes.
    pub writes: Times,
    /// Bytes read and written.
    pub bytes: u64,
    /// Disks that were played to.
    pub disks: usize,
    /// Requests that went beyond the disk and were left out or wrapped.
    pub out_of_range: u64,
    /// Requests of other devices, where one was asked for.
    pub others: u64,
    /// From the first arrival to the last completion, ns.
    pub span_ns: u64,
    /// Most requests under way at once on one disk, as an arriving request found them, itself among them.
    pub most_outstanding: usize,
    /// Requests under way on average, on all disks.
    pub mean_outstanding: f64,
    /// Share of the span in which a drive served, the mean over the disks; None for devices that serve several at once.
    pub busy: Option<f64>,
    /// Recorded response times, where the trace has them, ns.
    pub recorded: Histogram,
}

/// Reason for which a replay ended before the trace did.
#[derive(Debug)]
pub enum ReplayError {
    /// The trace.
    Trace(TraceError),
    /// A request that the disk has no blocks for; [`OutOfRange::Skip`] and [`OutOfRange::Wrap`] play such traces.
    OutOfRange(String),
    /// Too many devices, nothing to play, or a request that the disk refuses.
    Plan(String),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Trace(error) => error.fmt(f),
            ReplayError::OutOfRange(text) | ReplayError::Plan(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ReplayError {}

/// Plays a trace to copies of a device. Holds what is under way, and no more of the trace.
///
/// # Errors
/// [`ReplayError`]: the first fault of the trace, a request beyond the disk, nothing to play.
pub fn replay(
    trace: impl Iterator<Item = Result<Request, TraceError>>,
    device: &Device,
    plan: &ReplayPlan,
) -> Result<ReplayReport, ReplayError> {
    let mut player = ReplayRun {
        plan,
        device,
        disks: BTreeMap::new(),
        report: ReplayReport::default(),
        began: None,
        last: 0,
        number: 0,
        under_way: 0,
        now: 0,
    };
    for request in trace {
        player.request(&request.map_err(ReplayError::Trace)?)?;
    }
    player.finish()
}

struct ReplayRun<'a> {
    plan: &'a ReplayPlan,
    device: &'a Device,
    disks: BTreeMap<u32, Disk>,
    report: ReplayReport,
    /// First arrival in the trace, ns.
    began: Option<u64>,
    last: u64,
    number: u64,
    under_way: usize,
    /// Progress of a closed replay.
    now: u64,
}

impl ReplayRun<'_> {
    fn request(&mut self, request: &Request) -> Result<(), ReplayError> {
        self.number += 1;
        if self.plan.device.is_some_and(|device| device != request.device) {
            self.report.others += 1;
            return Ok(());
        }
        let Some(extent) = self.extent(request)? else { return Ok(()) };
        let began = *self.began.get_or_insert(request.arrival_ns);
        let scaled = u128::from(request.arrival_ns - began) * u128::from(self.plan.time_scale_e6) / 1_000_000;
        let mut at = u64::try_from(scaled).unwrap_or(u64::MAX / 2);
        if let Some(most) = self.plan.closed {
            while self.under_way >= most {
                self.step();
            }
            at = self.now;
        }
        if self.disks.len() == DISKS_MAX && !self.disks.contains_key(&request.device) {
            let text = format!("request {}: more than {DISKS_MAX} devices; choose one", self.number);
            return Err(ReplayError::Plan(text));
        }
        let (device, scheduler) = (self.device, self.plan.scheduler);
        let disk = self.disks.entry(request.device).or_insert_with(|| Disk::new(device.clone(), scheduler));
        // Disks know nothing of each other: each is brought to its own next arrival.
        let mut done = Vec::new();
        while let Some(next) = disk.poll_timeout().filter(|next| next.0 <= at) {
            disk.handle_timeout(next);
            done.extend(std::iter::from_fn(|| disk.poll_completion()));
        }
        // The id carries nothing: kind and times come back with the completion.
        disk.handle_request(Time(at), self.number, extent).map_err(ReplayError::Plan)?;
        self.report.most_outstanding = self.report.most_outstanding.max(disk.outstanding());
        self.under_way += 1;
        self.report.bytes += u64::from(request.bytes);
        if let Some(ns) = request.response_ns {
            self.report.recorded.record(ns);
        }
        done.iter().for_each(|completion| self.count(completion));
        Ok(())
    }

    fn extent(&mut self, request: &Request) -> Result<Option<Extent>, ReplayError> {
        let size = self.device.blocks();
        let (blocks, kind) = (request.sectors(), request.kind);
        let inside = blocks <= size && request.lba <= size - blocks;
        if inside {
            return Ok(Some(Extent { block: request.lba, blocks, kind }));
        }
        self.report.out_of_range += 1;
        match self.plan.out_of_range {
            OutOfRange::Skip => Ok(None),
            OutOfRange::Wrap if blocks <= size => {
                let block = (request.lba % size).min(size - blocks);
                Ok(Some(Extent { block, blocks, kind }))
            }
            _ => Err(ReplayError::OutOfRange(format!(
                "request {}: sectors {} to before {} of device {}, but {} has {size}",
                self.number,
                request.lba,
                request.lba.saturating_add(blocks),
                self.plan.format.device_name(request.device),
                self.device.name(),
            ))),
        }
    }

    /// Brings all disks to the next completion of any.
    fn step(&mut self) {
        let next = self.disks.values().filter_map(Disk::poll_timeout).min();
        let Some(next) = next else { return };
        self.now = self.now.max(next.0);
        let mut done = Vec::new();
        for disk in self.disks.values_mut() {
            disk.handle_timeout(next);
            done.extend(std::iter::from_fn(|| disk.poll_completion()));
        }
        done.iter().for_each(|completion| self.count(completion));
    }

    fn count(&mut self, completion: &Completion) {
        let times = if completion.read { &mut self.report.reads } else { &mut self.report.writes };
        times.response.record(completion.done.since(completion.arrived).0);
        times.service.record(completion.done.since(completion.began).0);
        self.last = self.last.max(completion.done.0);
        self.under_way -= 1;
    }

    fn finish(mut self) -> Result<ReplayReport, ReplayError> {
        while self.under_way > 0 {
            self.step();
        }
        let mut report = self.report;
        let (reads, writes) = (&report.reads, &report.writes);
        if reads.response.count() + writes.response.count() == 0 {
            let what = match self.plan.device {
                Some(device) if report.others > 0 => {
                    let name = self.plan.format.device_name(device);
                    format!("no request to device {name}; there are {} to others", report.others)
                }
                _ if report.out_of_range > 0 => format!("all {} requests go beyond the disk", report.out_of_range),
                _ => "no request in the trace".to_owned(),
            };
            return Err(ReplayError::Plan(what));
        }
        let sum = |histogram: &Histogram| histogram.mean().unwrap_or(0.0) * histogram.count() as f64;
        report.span_ns = self.last;
        report.disks = self.disks.len();
        if self.last > 0 {
            let span = self.last as f64;
            // Little's law: requests under way are their rate times their stay.
            report.mean_outstanding = (sum(&reads.response) + sum(&writes.response)) / span;
            if matches!(self.device, Device::Drive(_)) {
                report.busy = Some((sum(&reads.service) + sum(&writes.service)) / span / report.disks as f64);
            }
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::named;
    use crate::trace::Kind;

    fn plan() -> ReplayPlan {
        ReplayPlan {
            scheduler: Scheduler::Fcfs,
            closed: None,
            device: None,
            format: Format::Mqsim,
            out_of_range: OutOfRange::Refuse,
            time_scale_e6: 1_000_000,
        }
    }

    fn request(arrival_ns: u64, device: u32, lba: u64, kind: Kind) -> Request {
        Request { arrival_ns, device, lba, bytes: 4096, kind, response_ns: None }
    }

    fn requests() -> Vec<Request> {
        let kind = |i: u64| if i.is_multiple_of(3) { Kind::Write } else { Kind::Read };
        (0..400)
            .map(|i| request(7_000_000 + i * 9_000_000, (i % 2) as u32, i * 7_654_321 % 17_000_000, kind(i)))
            .collect()
    }

    fn play(requests: &[Request], plan: &ReplayPlan) -> Result<ReplayReport, String> {
        let cheetah = named("cheetah-9lp").unwrap();
        replay(requests.iter().copied().map(Ok), &cheetah, plan).map_err(|error| error.to_string())
    }

    #[test]
    fn every_request_is_counted_once_with_its_kind() {
        let report = play(&requests(), &plan()).unwrap();
        assert_eq!((report.reads.response.count(), report.writes.response.count()), (266, 134));
        assert_eq!((report.disks, report.bytes, report.out_of_range), (2, 400 * 4096, 0));
        // Each disk has a request every 18 ms, which it serves in half of that.
        let mean = report.reads.response.mean().unwrap();
        assert!((8e6..14e6).contains(&mean), "{mean}");
        assert!(report.busy.unwrap() > 0.2 && report.busy.unwrap() < 0.9);
        // Four times as slow it lasts four times as long; a device alone is served as it was beside the other.
        let slow = play(&requests(), &ReplayPlan { time_scale_e6: 4_000_000, ..plan() }).unwrap();
        assert!(slow.span_ns > 3 * report.span_ns && slow.busy < report.busy);
        let alone = play(&requests(), &ReplayPlan { device: Some(0), ..plan() }).unwrap();
        assert_eq!((alone.disks, alone.others), (1, 200));
    }

    #[test]
    fn a_closed_replay_keeps_its_queue_depth() {
        for closed in [1, 4, 16] {
            let report = play(&requests(), &ReplayPlan { closed: Some(closed), ..plan() }).unwrap();
            assert_eq!(report.reads.response.count() + report.writes.response.count(), 400);
            assert!(report.mean_outstanding <= closed as f64 + 1e-9, "{}", report.mean_outstanding);
            assert!(report.mean_outstanding > closed as f64 * 0.9, "{}", report.mean_outstanding);
        }
        let sptf = ReplayPlan { closed: Some(32), scheduler: Scheduler::Sptf, device: Some(0), ..plan() };
        let fcfs = ReplayPlan { scheduler: Scheduler::Fcfs, ..sptf.clone() };
        let span = |plan: &ReplayPlan| play(&requests(), plan).unwrap().span_ns;
        assert!(span(&sptf) * 10 < span(&fcfs) * 8, "SPTF takes at most 0.8 of the time");
    }

    #[test]
    fn out_of_range_requests_are_refused_skipped_or_wrapped() {
        let mut all = requests();
        all.push(request(u64::MAX / 4, 0, 99_999_999_999, Kind::Read));
        let error = play(&all, &plan()).unwrap_err();
        assert!(error.contains("request 401: sectors 99999999999"), "{error}");
        let skipped = play(&all, &ReplayPlan { out_of_range: OutOfRange::Skip, ..plan() }).unwrap();
        assert_eq!((skipped.out_of_range, skipped.reads.response.count()), (1, 266));
        let wrapped = play(&all, &ReplayPlan { out_of_range: OutOfRange::Wrap, ..plan() }).unwrap();
        assert_eq!((wrapped.out_of_range, wrapped.reads.response.count()), (1, 267));
        let none = play(&all, &ReplayPlan { device: Some(9), ..plan() }).unwrap_err();
        assert!(none.contains("no request to device 9"), "{none}");
        let sdb = ReplayPlan { device: Some(8 << 20 | 16), format: Format::Blkparse, ..plan() };
        let none = play(&all, &sdb).unwrap_err();
        assert!(none.contains("no request to device 8,16"), "{none}");
        assert!(play(&[], &plan()).unwrap_err().contains("no request"));
    }
}
