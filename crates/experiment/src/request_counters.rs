//! Counters of the requests over a connection.

use units::Histogram;

/// Reads or writes.
#[derive(Clone, Default)]
pub struct RequestKindCounters {
    /// Requests done.
    pub done: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From when the application had a request to its status, ns.
    pub latency: Histogram,
    /// Sums of the parts of that time, ns: until the command is handed to TCP; on the way, commands, R2Ts, data and
    /// status together; at the disk, its queue included. Range: u128, since a run may have 10^9 requests of an hour.
    pub layers: [u128; 3],
}

/// The requests over one connection.
#[derive(Clone, Default)]
pub struct RequestCounters {
    /// Reads.
    pub reads: RequestKindCounters,
    /// Writes.
    pub writes: RequestKindCounters,
    /// The same parts, ns, of reads and writes.
    pub layers: [Histogram; 3],
    /// Requests that ended with another status than GOOD.
    pub failed: u64,
}

impl RequestCounters {
    /// A request is done.
    pub fn record(&mut self, read: bool, bytes: u64, layers: [u64; 3]) {
        let kind = if read { &mut self.reads } else { &mut self.writes };
        kind.done += 1;
        kind.bytes += bytes;
        kind.latency.record(layers.iter().sum());
        for (index, ns) in layers.into_iter().enumerate() {
            kind.layers[index] += u128::from(ns);
            self.layers[index].record(ns);
        }
    }

    /// Adds what went over another connection.
    pub fn merge(&mut self, other: &RequestCounters) {
        self.failed += other.failed;
        for (mine, theirs) in [(&mut self.reads, &other.reads), (&mut self.writes, &other.writes)] {
            mine.done += theirs.done;
            mine.bytes += theirs.bytes;
            mine.latency.merge(&theirs.latency);
            mine.layers.iter_mut().zip(theirs.layers).for_each(|(sum, more)| *sum += more);
        }
        self.layers.iter_mut().zip(&other.layers).for_each(|(all, more)| all.merge(more));
    }
}
