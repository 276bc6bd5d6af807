//! Description of a drive: all parameters of its timing.

use super::layout::Layout;
use super::schedule::Scheduler;

/// Read-ahead of a drive after a request (DiskSim's "Buffer continuous read").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadAhead {
    /// 0: not at all.
    No,
    /// 1: to the end of the track.
    Track,
    /// 2: to the end of the cylinder.
    Cylinder,
    /// 3: as far as the segment and the limits go.
    Segment,
    /// 4: to the end of the track, and one track further when the segment began on a track before.
    TrackThenNext,
}

/// Behaviour of the controller between bus, buffer and medium. Times in ns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Control {
    /// Time per 512-byte block over the bus: (of a read, of a write).
    pub block_ns: (u64, u64),
    /// Before anything else, per request.
    pub request_ns: u64,
    /// Command overheads: (after a read, after a write).
    pub read_hit_ns: (u64, u64),
    /// The same for a read that needs the medium.
    pub read_miss_ns: (u64, u64),
    /// The same for a write that is acknowledged from the buffer.
    pub write_hit_ns: (u64, u64),
    /// The same for a write that is acknowledged from the medium.
    pub write_miss_ns: (u64, u64),
    /// Between the last block and the completion of a read.
    pub read_complete_ns: u64,
    /// The same of a write.
    pub write_complete_ns: u64,
    /// Before each transfer of data.
    pub prepare_ns: u64,
    /// To get the bus back: the first time, and again within a request that disconnected twice.
    pub reselect_ns: (u64, u64),
    /// To let the bus go during a read: (after a read, after a write).
    pub read_disconnect_ns: (u64, u64),
    /// To let the bus go during a write.
    pub write_disconnect_ns: u64,
    /// The bus is kept during a read from its first block to its last.
    pub hold_read: bool,
    /// The same during a write.
    pub hold_write: bool,
    /// The bus is kept from command to completion.
    pub never_disconnect: bool,
    /// A disconnection of its own before the data of a write that does not follow on from the one before.
    pub extra_disconnect: Option<ExtraDisconnect>,
    /// A write's seek takes at least this, unless it goes on where the last write ended.
    pub least_write_seek_ns: u64,
}

/// Blocks of a write that must be in the buffer before the first goes to the medium, of a drive with extra
/// disconnections: 10, or 15 of a long write. (DiskSim has them as constants, disk_buffer_block_available.)
const FIRST_BLOCKS: u64 = 10;
const FIRST_BLOCKS_LONG: u64 = 15;
/// Blocks of a long write.
const LONG_WRITE: u64 = 45;

impl Control {
    /// Blocks of a write of `blocks` that must be in the buffer before the first goes to the medium.
    pub fn first_blocks(&self, blocks: u64) -> u64 {
        match self.extra_disconnect {
            None => 1,
            Some(_) if blocks < LONG_WRITE => blocks.min(FIRST_BLOCKS),
            Some(_) => FIRST_BLOCKS_LONG,
        }
    }
}

/// Some drives let the bus go before they take a write's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtraDisconnect {
    /// Instead of the command overhead.
    pub command_ns: u64,
    /// To let the bus go.
    pub disconnect_ns: u64,
    /// Until it is taken again.
    pub between_ns: u64,
    /// To let it go after the data.
    pub again_ns: u64,
    /// From the command to the seek.
    pub seek_delta_ns: u64,
}

/// The drive's memory. Sizes in blocks of 512 bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// Segments.
    pub segments: usize,
    /// Blocks per segment.
    pub blocks: u64,
    /// One segment is kept for writes.
    pub write_segment: bool,
    /// Reads are served from it.
    pub enabled: bool,
    /// Its read-ahead.
    pub read_ahead: ReadAhead,
    /// Blocks read ahead at most; 0: what the segment holds.
    pub ahead_max: u64,
    /// Without `ahead_max`: whether the request's own blocks count in the segment's size.
    pub ahead_counts_request: bool,
    /// Read data is discarded once it went over the bus.
    pub forget_read: bool,
    /// A hit on a segment that nobody fills begins to fill it.
    pub ahead_on_hit: bool,
    /// Writes are acknowledged when they are in the buffer.
    pub write_back: bool,
    /// Writes that follow on join the one before.
    pub combine_writes: bool,
    /// Written data can be read from the buffer.
    pub hit_on_written: bool,
    /// The block that is being read ahead counts as there.
    pub almost_hit: bool,
    /// Blocks that pass before the requested one on its track are kept.
    pub free_blocks: bool,
    /// A partial hit goes over the bus at once.
    pub partial_at_once: bool,
    /// A read that is wholly in the buffer goes over the bus while the arm is busy.
    pub sneaky: bool,
    /// Reading ahead ends at once, not at the end of the sector.
    pub stop_in_sector: bool,
    /// Share of a request (else of the segment) that must be there before the bus is taken again, 10^-6.
    pub read_watermark_e6: u64,
    /// True if it is a share of the request.
    pub watermark_of_request: bool,
}

/// The moving parts. Times in ns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mechanics {
    /// Revolutions per minute.
    pub rpm: u64,
    /// By distance in cylinders.
    pub seek_ns: Vec<u64>,
    /// To another surface; within a seek it costs nothing more.
    pub head_switch_ns: u64,
    /// More before a write, when the arm moved or the surface changed; less where negative.
    pub settle_ns: i64,
    /// Every access waits half a revolution, whatever the angle.
    pub average_rotation: bool,
}

/// A drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveSpec {
    /// Its name in the description.
    pub name: String,
    /// Places of the blocks.
    pub layout: Layout,
    /// The mechanics.
    pub mechanics: Mechanics,
    /// Commands and bus.
    pub control: Control,
    /// Memory.
    pub buffer: Buffer,
    /// The request scheduler of its description; None: first come, first served.
    pub scheduler: Scheduler,
}
