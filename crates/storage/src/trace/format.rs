//! The formats, by name.

use std::fmt;

/// Bits of a minor device number in Linux (MINORBITS).
pub(super) const MINOR_BITS: u32 = 20;

/// The format of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Events of Linux's block layer as `blkparse` prints them by default; requests are its queue (Q) events.
    Blkparse,
    /// DiskSim's ascii: arrival in ms, device, block, blocks, flags in hexadecimal.
    Disksim,
    /// DiskSim's validation traces: kind, buffer action, block, blocks, measured service time and time to the next in
    /// us.
    DisksimValidate,
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
}

impl Format {
    /// All of them, by name.
    pub const ALL: [Format; 8] = [
        Format::Blkparse,
        Format::Disksim,
        Format::DisksimValidate,
        Format::Fio,
        Format::HpSrt,
        Format::Mqsim,
        Format::Msr,
        Format::Spc,
    ];

    /// Its name for users.
    pub fn name(self) -> &'static str {
        match self {
            Format::Blkparse => "blkparse",
            Format::Disksim => "disksim",
            Format::DisksimValidate => "disksim-validate",
            Format::Fio => "fio",
            Format::HpSrt => "hp-srt",
            Format::Mqsim => "mqsim",
            Format::Msr => "msr",
            Format::Spc => "spc",
        }
    }

    /// A device's number as this format writes it: `major,minor` for blkparse, one number for the others.
    pub fn device_name(self, device: u32) -> String {
        match self {
            Format::Blkparse => format!("{},{}", device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1)),
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
