//! A set of files, copied over several streams.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Changed parts of a file set in which everything changed.
pub const ALL_CHANGED_PPM: u32 = 1_000_000;

/// Chunks of `elephan copy` (crates/copy/src/plan.rs): how many of a file it aims at, their least and most bytes.
const CHUNKS_AIM: u64 = 16_384;
const CHUNK_MIN: u64 = 256 << 10;
const CHUNK_MAX: u64 = 16 << 20;

/// A file set that the connections of a flow carry: they take chunks from one queue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "CopyWorkloadSpec")]
pub struct CopySpec {
    /// The files by size; those of several entries come in an order drawn at random.
    pub files: Vec<FilesSpec>,
    /// Copies of such a set, each over its own connections: the flows of a group, in their order.
    pub jobs: u32,
    /// Most data of a piece that a connection takes from the queue, bytes; null = by the size of each file.
    pub chunk_bytes: Option<u64>,
    /// Sent with each file beside its data, bytes: its name and metadata.
    pub file_overhead_bytes: u64,
    /// Sent with each piece beside its data, bytes: its header and that of its encryption.
    pub chunk_overhead_bytes: u64,
    /// Round trips of messages from the first connection to the first data.
    pub begin_round_trips: u32,
    /// Round trips of messages from the last data written to the end of the copy.
    pub end_round_trips: u32,
    /// Chunks that differ from those of the destination, ppm; below 1,000,000 its hashes come first.
    pub changed_ppm: u32,
    /// Most that the sender reads, bit/s; null = no limit.
    pub read_bps: Option<u64>,
    /// Most that the receiver writes, bit/s; null = no limit.
    pub write_bps: Option<u64>,
    /// Most that the receiver reads and hashes of the data that it has, bit/s; null = no limit.
    pub hash_bps: Option<u64>,
    /// Most that all connections of a job send together, bit/s of data; null = no limit.
    pub limit_bps: Option<u64>,
    /// Time that the receiver takes for each file beside its data, ns.
    pub file_ns: u64,
}

/// Files of about one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesSpec {
    /// Their number.
    pub count: u64,
    /// Smallest, bytes.
    pub min_bytes: u64,
    /// Largest, bytes; sizes between are equally likely.
    pub max_bytes: u64,
}

impl CopySpec {
    /// Number of files of a job.
    pub fn count(&self) -> u64 {
        self.files.iter().map(|files| files.count).sum()
    }

    /// Data of the files of a job on average over what can be drawn, bytes. Range: u64, beyond which it stays.
    pub fn mean_bytes(&self) -> u64 {
        let twice =
            |files: &FilesSpec| u128::from(files.count) * (u128::from(files.min_bytes) + u128::from(files.max_bytes));
        u64::try_from(self.files.iter().map(twice).sum::<u128>() / 2).unwrap_or(u64::MAX)
    }

    /// Most data of a piece of a file of `size` bytes.
    pub fn chunk_of(&self, size: u64) -> u64 {
        let by_size = || (size / CHUNKS_AIM).max(1).next_power_of_two().clamp(CHUNK_MIN, CHUNK_MAX);
        self.chunk_bytes.unwrap_or_else(by_size).max(1)
    }

    /// The lowest of the rates at which the ends work through data that is sent, bit/s.
    pub fn pace_bps(&self) -> Option<u64> {
        [self.read_bps, self.write_bps, self.limit_bps].into_iter().flatten().min()
    }

    /// Bytes that a job's connections carry, on average: of data that changed, and of overhead.
    pub fn mean_sent_bytes(&self) -> u64 {
        let data = u128::from(self.mean_bytes());
        let changed = |amount: u128| amount * u128::from(self.changed_ppm) / u128::from(ALL_CHANGED_PPM);
        // Each file has a piece that is not full.
        let pieces_of = |files: &FilesSpec| {
            let mean = (u128::from(files.min_bytes) + u128::from(files.max_bytes)) / 2;
            let chunk = self.chunk_of(u64::try_from(mean).unwrap_or(u64::MAX));
            u128::from(files.count) * (mean / u128::from(chunk) + 1)
        };
        let pieces = self.files.iter().map(pieces_of).sum::<u128>();
        let sent = changed(data)
            + changed(pieces) * u128::from(self.chunk_overhead_bytes)
            + u128::from(self.count()) * u128::from(self.file_overhead_bytes);
        u64::try_from(sent).unwrap_or(u64::MAX)
    }
}
