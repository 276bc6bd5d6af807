//! Summary of a trace, in one pass and constant memory.

use super::request::{Kind, Request};
use std::collections::BTreeMap;

/// Devices that are followed for sequentiality; a trace with more is counted as if the others were random.
const DEVICES_MAX: usize = 1 << 16;

/// Counts and sums over the requests of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Requests in all.
    pub requests: u64,
    /// Of them reads.
    pub reads: u64,
    /// Bytes read. Range: u64.
    pub read_bytes: u64,
    /// Bytes written. Range: u64.
    pub written_bytes: u64,
    /// Smallest request, bytes.
    pub smallest_bytes: u32,
    /// Largest request, bytes.
    pub largest_bytes: u32,
    /// First arrival, ns.
    pub first_ns: u64,
    /// Last arrival, ns.
    pub last_ns: u64,
    /// Requests that begin where the one before on the same device ended.
    pub sequential: u64,
    /// One past the last sector that is touched on any device.
    pub end_lba: u64,
    /// Requests whose response time was recorded.
    pub responses: u64,
    /// Sum of recorded response times, ns. Range: u128.
    pub response_ns: u128,
    /// Requests by device.
    pub devices: BTreeMap<u32, u64>,
    next: BTreeMap<u32, u64>,
}

impl Summary {
    /// Counts one more request.
    pub fn add(&mut self, request: &Request) {
        if self.requests == 0 {
            self.first_ns = request.arrival_ns;
            self.smallest_bytes = request.bytes;
        }
        self.requests += 1;
        self.last_ns = request.arrival_ns;
        self.smallest_bytes = self.smallest_bytes.min(request.bytes);
        self.largest_bytes = self.largest_bytes.max(request.bytes);
        match request.kind {
            Kind::Read => {
                self.reads += 1;
                self.read_bytes = self.read_bytes.saturating_add(u64::from(request.bytes));
            }
            Kind::Write => self.written_bytes = self.written_bytes.saturating_add(u64::from(request.bytes)),
        }
        let end = request.lba.saturating_add(request.sectors());
        self.end_lba = self.end_lba.max(end);
        if let Some(ns) = request.response_ns {
            self.responses += 1;
            self.response_ns += u128::from(ns);
        }
        if self.next.len() < DEVICES_MAX || self.next.contains_key(&request.device) {
            *self.devices.entry(request.device).or_default() += 1;
            if self.next.insert(request.device, end) == Some(request.lba) {
                self.sequential += 1;
            }
        }
    }

    /// Writes.
    pub fn writes(&self) -> u64 {
        self.requests - self.reads
    }

    /// Time from the first to the last arrival, ns.
    pub fn span_ns(&self) -> u64 {
        self.last_ns - self.first_ns
    }
}
