//! Delimiters of frames: the ordered sets at begin and end, as one byte each (RFC 3643, tables 2 and 3; FC-BB-5 has the
//! same codes), and as they are on the line.

use crate::WireError;

/// The special character that begins an ordered set, as captures write it.
const K28_5: u8 = 0xbc;

/// Class of service: what a fabric promises for a frame (FC-FS-2, clause 15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClassOfService {
    /// Switches among themselves.
    F,
    /// Acknowledged, multiplexed.
    Class2,
    /// Datagrams: storage's class.
    Class3,
    /// Virtual circuits.
    Class4,
}

/// Start of frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Sof {
    /// Class F.
    Fabric = 0x28,
    /// Class 4, first frame of a sequence.
    Initiate4 = 0x29,
    /// Class 2, first frame of a sequence.
    Initiate2 = 0x2d,
    /// Class 3, first frame of a sequence.
    Initiate3 = 0x2e,
    /// Class 4, later frames.
    Normal4 = 0x31,
    /// Class 2, later frames.
    Normal2 = 0x35,
    /// Class 3, later frames.
    Normal3 = 0x36,
    /// Class 4, activates a circuit.
    Connect4 = 0x39,
}

impl Sof {
    /// The code's delimiter.
    ///
    /// # Errors
    /// The code is none of RFC 3643's table 2.
    pub fn from_code(code: u8) -> Result<Sof, WireError> {
        Ok(match code {
            0x28 => Sof::Fabric,
            0x29 => Sof::Initiate4,
            0x2d => Sof::Initiate2,
            0x2e => Sof::Initiate3,
            0x31 => Sof::Normal4,
            0x35 => Sof::Normal2,
            0x36 => Sof::Normal3,
            0x39 => Sof::Connect4,
            _ => return Err(WireError::Malformed { field: "SOF", value: u64::from(code) }),
        })
    }

    /// The code.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The transmission word on the line, K28.5 first (FC-FS-2, ordered sets).
    pub fn transmission_word(self) -> [u8; 4] {
        let last = match self {
            Sof::Fabric => 0x58,
            Sof::Initiate4 => 0x59,
            Sof::Initiate2 => 0x55,
            Sof::Initiate3 => 0x56,
            Sof::Normal4 => 0x39,
            Sof::Normal2 => 0x35,
            Sof::Normal3 => 0x36,
            Sof::Connect4 => 0x19,
        };
        [K28_5, 0xb5, last, last]
    }

    /// Class of service.
    pub fn class(self) -> ClassOfService {
        match self {
            Sof::Fabric => ClassOfService::F,
            Sof::Initiate2 | Sof::Normal2 => ClassOfService::Class2,
            Sof::Initiate3 | Sof::Normal3 => ClassOfService::Class3,
            Sof::Initiate4 | Sof::Normal4 | Sof::Connect4 => ClassOfService::Class4,
        }
    }
}

/// End of frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Eof {
    /// Valid; more of the sequence follows.
    Normal = 0x41,
    /// Valid; last of its sequence.
    Terminate = 0x42,
    /// Class 4: removes a circuit.
    RemoveTerminate = 0x44,
    /// Class 4: deactivates a circuit.
    DeactivateTerminate = 0x46,
    /// A switch found the frame damaged.
    NormalInvalid = 0x49,
    /// Class 4: deactivates a circuit, the frame is damaged.
    DeactivateTerminateInvalid = 0x4e,
    /// Class 4: removes a circuit, the frame is damaged.
    RemoveTerminateInvalid = 0x4f,
    /// The frame was cut off.
    Abort = 0x50,
}

impl Eof {
    /// The code's delimiter.
    ///
    /// # Errors
    /// The code is none of RFC 3643's table 3.
    pub fn from_code(code: u8) -> Result<Eof, WireError> {
        Ok(match code {
            0x41 => Eof::Normal,
            0x42 => Eof::Terminate,
            0x44 => Eof::RemoveTerminate,
            0x46 => Eof::DeactivateTerminate,
            0x49 => Eof::NormalInvalid,
            0x4e => Eof::DeactivateTerminateInvalid,
            0x4f => Eof::RemoveTerminateInvalid,
            0x50 => Eof::Abort,
            _ => return Err(WireError::Malformed { field: "EOF", value: u64::from(code) }),
        })
    }

    /// The code.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The transmission word on the line after negative running disparity, K28.5 first (FC-FS-2, ordered sets).
    pub fn transmission_word(self) -> [u8; 4] {
        let (second, last) = match self {
            Eof::Normal => (0x95, 0xd5),
            Eof::Terminate => (0x95, 0x75),
            Eof::RemoveTerminate => (0x95, 0x99),
            Eof::DeactivateTerminate => (0x95, 0x95),
            Eof::NormalInvalid => (0x8a, 0xd5),
            Eof::DeactivateTerminateInvalid => (0x8a, 0x95),
            Eof::RemoveTerminateInvalid => (0x8a, 0x99),
            Eof::Abort => (0x95, 0xf5),
        };
        [K28_5, second, last, last]
    }

    /// True unless the sender, or a switch, marked the frame as damaged or cut off.
    pub fn is_valid(self) -> bool {
        !matches!(self, Eof::NormalInvalid | Eof::DeactivateTerminateInvalid | Eof::RemoveTerminateInvalid | Eof::Abort)
    }
}
