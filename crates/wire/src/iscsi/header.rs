//! The basic header segment of each PDU as a plain value.
//!
//! Reserved bits are not looked at when parsing (RFC 7143, 11) and zero when emitted. TotalAHSLength and
//! DataSegmentLength are left to the frame.

use super::field::{bits, byte, flag, half, long, raw, word, BHS_BYTES};

macro_rules! headers {
    ($($(#[$doc:meta])* $name:ident = $opcode:literal {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty = $accessor:ident($($place:expr),*),)*
    })*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }

        impl $name {
            /// The operation code.
            pub const OPCODE: u8 = $opcode;
        }

        impl From<$name> for Header {
            fn from(header: $name) -> Header { Header::$name(header) }
        })*

        /// A basic header segment.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Header {
            $($(#[$doc])* $name($name),)*
            /// An operation code that RFC 7143 does not have: the bytes as they came, without the lengths.
            Other([u8; BHS_BYTES]),
        }

        impl Header {
            /// The value of any 48 bytes.
            pub fn parse(bytes: &[u8; BHS_BYTES]) -> Header {
                match bytes[0] & 0x3f {
                    $($opcode => Header::$name($name { $($field: $accessor::get(bytes $(, $place)*),)* }),)*
                    _ => {
                        let mut other = *bytes;
                        other[4..8].fill(0);
                        Header::Other(other)
                    }
                }
            }

            /// The bytes, with lengths of zero.
            pub fn emit(&self) -> [u8; BHS_BYTES] {
                let mut bytes = [0; BHS_BYTES];
                match self {
                    $(Header::$name(header) => {
                        bytes[0] = $opcode;
                        $($accessor::put(&mut bytes, header.$field $(, $place)*);)*
                    })*
                    Header::Other(other) => bytes = *other,
                }
                bytes[1] |= self.fixed_bits();
                bytes
            }

            /// The PDU's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Header::$name(_) => stringify!($name),)*
                    Header::Other(_) => "unknown PDU",
                }
            }

            /// The operation code.
            pub fn opcode(&self) -> u8 {
                match self {
                    $(Header::$name(_) => $opcode,)*
                    Header::Other(bytes) => bytes[0] & 0x3f,
                }
            }
        }
    };
}

impl Header {
    /// Bit 7 of byte 1 is set in PDUs that have no use for it, as in those that are the last of their sequence.
    fn fixed_bits(&self) -> u8 {
        match self {
            Header::ScsiCommand(_)
            | Header::LoginRequest(_)
            | Header::LoginResponse(_)
            | Header::TextRequest(_)
            | Header::TextResponse(_)
            | Header::DataOut(_)
            | Header::DataIn(_)
            | Header::Other(_) => 0,
            _ => 0x80,
        }
    }
}

headers! {
    /// Ping, or the answer to one (RFC 7143, 11.18).
    NopOut = 0x00 {
        /// For immediate delivery: the command number is not used up.
        immediate: bool = flag(0, 0x40),
        /// Logical unit number, as its eight bytes.
        lun: u64 = long(8),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Target transfer tag; all ones: none.
        ttt: u32 = word(20),
        /// Command sequence number.
        cmd_sn: u32 = word(24),
        /// Next status number that the initiator expects: acknowledges those before.
        exp_stat_sn: u32 = word(28),
    }

    /// A SCSI command (11.3).
    ScsiCommand = 0x01 {
        /// For immediate delivery: the command number is not used up.
        immediate: bool = flag(0, 0x40),
        /// Last PDU of its sequence.
        last: bool = flag(1, 0x80),
        /// Data is expected from the target.
        read: bool = flag(1, 0x40),
        /// Data is sent to the target.
        write: bool = flag(1, 0x20),
        /// Task attribute: 0 untagged, 1 simple, 2 ordered, 3 head of queue, 4 ACA.
        attribute: u8 = bits(1, 0, 7),
        /// Logical unit number, as its eight bytes.
        lun: u64 = long(8),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Bytes that the initiator expects to move.
        expected_length: u32 = word(20),
        /// Command sequence number.
        cmd_sn: u32 = word(24),
        /// Next status number that the initiator expects: acknowledges those before.
        exp_stat_sn: u32 = word(28),
        /// Command descriptor block, filled up with zeros.
        cdb: [u8; 16] = raw(32),
    }

    /// A task management function (11.5).
    TaskRequest = 0x02 {
        /// For immediate delivery: the command number is not used up.
        immediate: bool = flag(0, 0x40),
        /// See [`task`].
        function: u8 = bits(1, 0, 0x7f),
        /// Logical unit number, as its eight bytes.
        lun: u64 = long(8),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Tag of the task that is meant.
        referenced_tag: u32 = word(20),
        /// Command sequence number.
        cmd_sn: u32 = word(24),
        /// Next status number that the initiator expects: acknowledges those before.
        exp_stat_sn: u32 = word(28),
        /// Command number of the task that is meant.
        ref_cmd_sn: u32 = word(32),
        /// For reassignment.
        exp_data_sn: u32 = word(36),
    }

    /// A step of a login (11.12).
    LoginRequest = 0x03 {
        /// For immediate delivery: the command number is not used up.
        immediate: bool = flag(0, 0x40),
        /// Ready for the next stage.
        transit: bool = flag(1, 0x80),
        /// The text goes on in the next PDU.
        cont: bool = flag(1, 0x40),
        /// Current stage: 0 security, 1 operational, 3 full feature.
        csg: u8 = bits(1, 2, 3),
        /// Next stage, when ready for it.
        nsg: u8 = bits(1, 0, 3),
        /// Highest version.
        version_max: u8 = byte(2),
        /// Lowest version.
        version_min: u8 = byte(3),
        /// Initiator's part of the session's identity.
        isid: [u8; 6] = raw(8),
        /// Target's session handle; 0 in the first login of a session.
        tsih: u16 = half(14),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Connection within the session.
        cid: u16 = half(20),
        /// Command sequence number.
        cmd_sn: u32 = word(24),
        /// Next status number that the initiator expects: acknowledges those before.
        exp_stat_sn: u32 = word(28),
    }

    /// A step of a negotiation outside of login (11.10).
    TextRequest = 0x04 {
        /// For immediate delivery: the command number is not used up.
        immediate: bool = flag(0, 0x40),
        /// Last PDU of its sequence.
        last: bool = flag(1, 0x80),
        /// The text goes on in the next PDU.
        cont: bool = flag(1, 0x40),
        /// Logical unit number, as its eight bytes.
        lun: u64 = long(8),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Target transfer tag; all ones: none.
        ttt: u32 = word(20),
        /// Command sequence number.
        cmd_sn: u32 = word(24),
        /// Next status number that the initiator expects: acknowledges those before.
        exp_stat_sn: u32 = word(28),
    }

    /// Data of a write (11.7).
    DataOut = 0x05 {
        /// Last PDU of its sequence.
        last: bool = flag(1, 0x80),
        /// Logical unit number, as its eight bytes.
        lun: u64 = long(8),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Target transfer tag; all ones: none.
        ttt: u32 = word(20),
        /// Next status number that the initiator expects: acknowledges those before.
        exp_stat_sn: u32 = word(28),
        /// Data sequence number.
        data_sn: u32 = word(36),
        /// Place of the data in the command's buffer, bytes.
        buffer_offset: u32 = word(40),
    }

    /// The end of a connection or session (11.14).
    LogoutRequest = 0x06 {
        /// For immediate delivery: the command number is not used up.
        immediate: bool = flag(0, 0x40),
        /// 0 close the session, 1 close the connection, 2 remove it for recovery.
        reason: u8 = bits(1, 0, 0x7f),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Connection within the session.
        cid: u16 = half(20),
        /// Command sequence number.
        cmd_sn: u32 = word(24),
        /// Next status number that the initiator expects: acknowledges those before.
        exp_stat_sn: u32 = word(28),
    }

    /// A request for numbers again (11.16); levels of recovery above 0 only.
    SnackRequest = 0x10 {
        /// 0 data or R2T, 1 status, 2 data acknowledgment, 3 R-data.
        kind: u8 = bits(1, 0, 15),
        /// Logical unit number, as its eight bytes.
        lun: u64 = long(8),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Target transfer tag; all ones: none.
        ttt: u32 = word(20),
        /// Next status number that the initiator expects: acknowledges those before.
        exp_stat_sn: u32 = word(28),
        /// First number missed.
        begin_run: u32 = word(40),
        /// Their number; 0: all from there.
        run_length: u32 = word(44),
    }

    /// Ping from the target, or the answer to one (11.19).
    NopIn = 0x20 {
        /// Logical unit number, as its eight bytes.
        lun: u64 = long(8),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Target transfer tag; all ones: none.
        ttt: u32 = word(20),
        /// Status sequence number.
        stat_sn: u32 = word(24),
        /// Next command number that the target expects.
        exp_cmd_sn: u32 = word(28),
        /// Last command number that the target takes.
        max_cmd_sn: u32 = word(32),
    }

    /// The end of a SCSI command (11.4).
    ScsiResponse = 0x21 {
        /// The residual is an overflow.
        overflow: bool = flag(1, 0x04),
        /// The residual is an underflow.
        underflow: bool = flag(1, 0x02),
        /// Overflow of the read of a bidirectional command.
        bidi_overflow: bool = flag(1, 0x10),
        /// Underflow of the read of a bidirectional command.
        bidi_underflow: bool = flag(1, 0x08),
        /// 0: the command was completed at the target.
        response: u8 = byte(2),
        /// SCSI status.
        status: u8 = byte(3),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// For SNACK.
        snack_tag: u32 = word(20),
        /// Status sequence number.
        stat_sn: u32 = word(24),
        /// Next command number that the target expects.
        exp_cmd_sn: u32 = word(28),
        /// Last command number that the target takes.
        max_cmd_sn: u32 = word(32),
        /// Data-In and R2T PDUs that the target sent for the command.
        exp_data_sn: u32 = word(36),
        /// Residual of the read of a bidirectional command, bytes.
        bidi_residual: u32 = word(40),
        /// Bytes that were not moved (underflow), or would have been had there been room (overflow).
        residual: u32 = word(44),
    }

    /// The outcome of a task management function (11.6).
    TaskResponse = 0x22 {
        /// See [`task_response`].
        response: u8 = byte(2),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Status sequence number.
        stat_sn: u32 = word(24),
        /// Next command number that the target expects.
        exp_cmd_sn: u32 = word(28),
        /// Last command number that the target takes.
        max_cmd_sn: u32 = word(32),
    }

    /// The answer to a step of a login (11.13).
    LoginResponse = 0x23 {
        /// Ready for the next stage.
        transit: bool = flag(1, 0x80),
        /// The text goes on in the next PDU.
        cont: bool = flag(1, 0x40),
        /// Current stage: 0 security, 1 operational, 3 full feature.
        csg: u8 = bits(1, 2, 3),
        /// Next stage, when ready for it.
        nsg: u8 = bits(1, 0, 3),
        /// Highest version.
        version_max: u8 = byte(2),
        /// Version in use.
        version_active: u8 = byte(3),
        /// Initiator's part of the session's identity.
        isid: [u8; 6] = raw(8),
        /// Target's session handle; 0 in the first login of a session.
        tsih: u16 = half(14),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Status sequence number.
        stat_sn: u32 = word(24),
        /// Next command number that the target expects.
        exp_cmd_sn: u32 = word(28),
        /// Last command number that the target takes.
        max_cmd_sn: u32 = word(32),
        /// 0 success, 1 redirection, 2 fault of the initiator, 3 of the target.
        status_class: u8 = byte(36),
        /// See [`login_status`].
        status_detail: u8 = byte(37),
    }

    /// The answer to a text request (11.11).
    TextResponse = 0x24 {
        /// Last PDU of its sequence.
        last: bool = flag(1, 0x80),
        /// The text goes on in the next PDU.
        cont: bool = flag(1, 0x40),
        /// Logical unit number, as its eight bytes.
        lun: u64 = long(8),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Target transfer tag; all ones: none.
        ttt: u32 = word(20),
        /// Status sequence number.
        stat_sn: u32 = word(24),
        /// Next command number that the target expects.
        exp_cmd_sn: u32 = word(28),
        /// Last command number that the target takes.
        max_cmd_sn: u32 = word(32),
    }

    /// Data of a read (11.7).
    DataIn = 0x25 {
        /// Last PDU of its sequence.
        last: bool = flag(1, 0x80),
        /// The target asks for a data acknowledgment.
        acknowledge: bool = flag(1, 0x40),
        /// The residual is an overflow.
        overflow: bool = flag(1, 0x04),
        /// The residual is an underflow.
        underflow: bool = flag(1, 0x02),
        /// Status and residual count: phase collapse.
        has_status: bool = flag(1, 0x01),
        /// SCSI status.
        status: u8 = byte(3),
        /// Logical unit number, as its eight bytes.
        lun: u64 = long(8),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Target transfer tag; all ones: none.
        ttt: u32 = word(20),
        /// Status sequence number.
        stat_sn: u32 = word(24),
        /// Next command number that the target expects.
        exp_cmd_sn: u32 = word(28),
        /// Last command number that the target takes.
        max_cmd_sn: u32 = word(32),
        /// Data sequence number.
        data_sn: u32 = word(36),
        /// Place of the data in the command's buffer, bytes.
        buffer_offset: u32 = word(40),
        /// Bytes that were not moved (underflow), or would have been had there been room (overflow).
        residual: u32 = word(44),
    }

    /// The answer to a logout (11.15).
    LogoutResponse = 0x26 {
        /// 0 closed, 1 no such connection, 2 no recovery, 3 clean-up failed.
        response: u8 = byte(2),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Status sequence number.
        stat_sn: u32 = word(24),
        /// Next command number that the target expects.
        exp_cmd_sn: u32 = word(28),
        /// Last command number that the target takes.
        max_cmd_sn: u32 = word(32),
        /// Least time before a reconnection, s.
        time_to_wait: u16 = half(40),
        /// Longest time for reassignment, s.
        time_to_retain: u16 = half(42),
    }

    /// The target asks for data of a write (11.8).
    ReadyToTransfer = 0x31 {
        /// Logical unit number, as its eight bytes.
        lun: u64 = long(8),
        /// Initiator task tag.
        itt: u32 = word(16),
        /// Target transfer tag; all ones: none.
        ttt: u32 = word(20),
        /// Status sequence number.
        stat_sn: u32 = word(24),
        /// Next command number that the target expects.
        exp_cmd_sn: u32 = word(28),
        /// Last command number that the target takes.
        max_cmd_sn: u32 = word(32),
        /// Number of the R2T within the command.
        r2t_sn: u32 = word(36),
        /// Place of the data in the command's buffer, bytes.
        buffer_offset: u32 = word(40),
        /// Bytes asked for.
        desired_length: u32 = word(44),
    }

    /// Something that the initiator did not ask for (11.9).
    AsyncMessage = 0x32 {
        /// Logical unit number, as its eight bytes.
        lun: u64 = long(8),
        /// Status sequence number.
        stat_sn: u32 = word(24),
        /// Next command number that the target expects.
        exp_cmd_sn: u32 = word(28),
        /// Last command number that the target takes.
        max_cmd_sn: u32 = word(32),
        /// 0 SCSI, 1 log out, 2 connection will be dropped, 3 session will be dropped, 4 negotiate.
        event: u8 = byte(36),
        /// Of event 255.
        vendor_code: u8 = byte(37),
        /// Of events 2 and 3: the connection.
        parameter1: u16 = half(38),
        /// Of events 2 and 3: time to wait, s.
        parameter2: u16 = half(40),
        /// Of event 1: time to log out, s; of 2 and 3: time to retain, s.
        parameter3: u16 = half(42),
    }

    /// A PDU was not taken; its header is the data (11.17).
    Reject = 0x3f {
        /// See [`reject`].
        reason: u8 = byte(2),
        /// Status sequence number.
        stat_sn: u32 = word(24),
        /// Next command number that the target expects.
        exp_cmd_sn: u32 = word(28),
        /// Last command number that the target takes.
        max_cmd_sn: u32 = word(32),
        /// Data sequence number.
        data_sn: u32 = word(36),
    }
}
