//! Fibre Channel as bytes: names and addresses, frames with their delimiters and CRC (FC-FS-2), link services (FC-LS),
//! the common transport of the fabric's servers (FC-GS-2), SCSI's information units (FCP-3).
//!
//! The constants are those of T11's and T10's standards as the headers of the Linux kernel repeat them
//! (`include/uapi/scsi/fc/fc_fs.h`, `fc_els.h`, `fc_gs.h`, `fc_ns.h`; `include/scsi/fc/fc_fcp.h`).
//!
//! **Invariant: any bytes give a value or an error; what is emitted parses back to the same value.**

pub mod ct;
pub mod els;
pub mod fcp;
pub mod name_server;

mod address;
mod basic;
mod command;
mod crc;
mod delimiter;
mod frame;
mod header;
mod login;

pub use address::{FcId, Wwn};
pub use basic::{BasicAccept, BasicReject, BASIC_LOGICAL_ERROR, BASIC_UNABLE, INVALID_OX_RX_ID};
pub use delimiter::{ClassOfService, Eof, Sof};
pub use frame::{Frame, CRC_BYTES, FRAME_BYTES_MAX, PAYLOAD_BYTES_MAX};
pub use header::{frame_control, routing, FrameHeader, FrameType, FRAME_HEADER_BYTES, UNASSIGNED};
pub use login::{Login, LOGIN_BYTES};

pub(crate) use crc::crc;
