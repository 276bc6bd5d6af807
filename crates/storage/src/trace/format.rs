//! The formats, by name.

use super::column_map::ColumnMap;
use std::fmt;

/// Bits of a minor device number in Linux (MINORBITS).
pub(super) const MINOR_BITS: u32 = 20;

/// The format of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Alibaba's block storage: CSV.
    Alibaba,
    /// Events of Linux's block layer as `blkparse` prints them by default; requests are its queue (Q) events.
    Blkparse,
    /// Delimited fields of any order.
    Columns(ColumnMap),
    /// DiskSim's ascii: arrival in ms, device, block, blocks, flags in hexadecimal.
    Disksim,
    /// DiskSim's validation traces: kind, buffer action, block, blocks, measured service time and time to the next in
    /// us.
    DisksimValidate,
    /// Florida International University's.
    Fiu,
    /// fio's I/O log, version 2 or 3.
    Fio,
    /// Hewlett-Packard's SRT, binary, big-endian, with a header in text.
    HpSrt,
    /// The MQSim project's.
    Mqsim,
    /// Microsoft Research Cambridge's, as SNIA keeps them: CSV.
    Msr,
    /// The Storage Performance Council's: CSV.
    Spc,
    /// The virtual desktops of SYSTOR '17: CSV.
    Systor,
    /// Tencent's block storage: CSV.
    Tencent,
}

impl Format {
    /// All that have a name of their own, by name.
    pub const ALL: [Format; 12] = [
        Format::Alibaba,
        Format::Blkparse,
        Format::Disksim,
        Format::DisksimValidate,
        Format::Fio,
        Format::Fiu,
        Format::HpSrt,
        Format::Mqsim,
        Format::Msr,
        Format::Spc,
        Format::Systor,
        Format::Tencent,
    ];

    /// Its name for users.
    pub fn name(self) -> &'static str {
        match self {
            Format::Alibaba => "alibaba",
            Format::Columns(_) => "columns",
            Format::Blkparse => "blkparse",
            Format::Disksim => "disksim",
            Format::DisksimValidate => "disksim-validate",
            Format::Fio => "fio",
            Format::Fiu => "fiu",
            Format::HpSrt => "hp-srt",
            Format::Mqsim => "mqsim",
            Format::Msr => "msr",
            Format::Spc => "spc",
            Format::Systor => "systor",
            Format::Tencent => "tencent",
        }
    }

    /// A device's number as this format writes it: `major,minor` for blkparse and FIU, one number for the others.
    pub fn device_name(self, device: u32) -> String {
        match self {
            Format::Blkparse | Format::Fiu => format!("{},{}", device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1)),
            _ => device.to_string(),
        }
    }

    /// All names in one line.
    pub fn names() -> String {
        Format::ALL.map(Format::name).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
