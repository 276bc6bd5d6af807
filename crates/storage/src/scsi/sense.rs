//! Status and sense data (SPC-4, 4.5).

/// SCSI status codes (SAM-5, 5.3).
pub mod status {
    /// Done.
    pub const GOOD: u8 = 0x00;
    /// Sense data says what is wrong.
    pub const CHECK_CONDITION: u8 = 0x02;
    /// PRE-FETCH: all of it fits into the cache.
    pub const CONDITION_MET: u8 = 0x04;
    /// Try again later.
    pub const BUSY: u8 = 0x08;
    /// Another initiator holds a reservation.
    pub const RESERVATION_CONFLICT: u8 = 0x18;
    /// Too many commands.
    pub const TASK_SET_FULL: u8 = 0x28;
    /// Aborted by another initiator's command.
    pub const TASK_ABORTED: u8 = 0x40;
}

/// Reason for which a command ended in CHECK CONDITION.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sense {
    /// Sense key.
    pub key: u8,
    /// Additional sense code and its qualifier.
    pub code: (u8, u8),
    /// The INFORMATION field: place of a miscompare or block that failed.
    pub information: Option<u64>,
    /// Byte of the CDB (true) or of the parameter list (false) that is wrong.
    pub field: Option<(bool, u16)>,
}

impl Sense {
    const fn new(key: u8, code: u8, qualifier: u8) -> Sense {
        Sense { key, code: (code, qualifier), information: None, field: None }
    }

    /// Nothing to report.
    pub const NONE: Sense = Sense::new(0, 0, 0);
    /// Stopped by START STOP UNIT.
    pub const STOPPED: Sense = Sense::new(2, 0x04, 0x02);
    /// The medium could not be read.
    pub const READ_ERROR: Sense = Sense::new(3, 0x11, 0x00);
    /// The medium could not be written.
    pub const WRITE_ERROR: Sense = Sense::new(3, 0x0c, 0x00);
    /// The operation code is not known.
    pub const OPERATION_CODE: Sense = Sense::new(5, 0x20, 0x00);
    /// Blocks beyond the end.
    pub const OUT_OF_RANGE: Sense = Sense::new(5, 0x21, 0x00);
    /// There is no such logical unit.
    pub const NO_LUN: Sense = Sense::new(5, 0x25, 0x00);
    /// The parameter list is shorter than it has to be.
    pub const LIST_LENGTH: Sense = Sense::new(5, 0x1a, 0x00);
    /// RELEASE of what another holds, by key.
    pub const INVALID_RELEASE: Sense = Sense::new(5, 0x26, 0x04);
    /// Saved mode pages.
    pub const NO_SAVING: Sense = Sense::new(5, 0x39, 0x00);
    /// More reservations' keys than there is room for.
    pub const NO_REGISTRATION: Sense = Sense::new(5, 0x55, 0x04);
    /// The data does not fit the command.
    pub const INFORMATION_UNIT: Sense = Sense::new(5, 0x0e, 0x03);
    /// INVALID MESSAGE ERROR.
    pub const INVALID_MESSAGE: Sense = Sense::new(5, 0x49, 0x00);
    /// A prevented removal.
    pub const REMOVAL_PREVENTED: Sense = Sense::new(5, 0x53, 0x02);
    /// Write protected by the operator.
    pub const WRITE_PROTECTED: Sense = Sense::new(7, 0x27, 0x00);
    /// Write protected by the mode page.
    pub const SOFTWARE_PROTECTED: Sense = Sense::new(7, 0x27, 0x02);
    /// No room for what is to be written.
    pub const NO_SPACE: Sense = Sense::new(7, 0x27, 0x07);
    /// The data digest of the transport did not match.
    pub const CRC: Sense = Sense::new(0xb, 0x47, 0x05);
    /// The initiator sent unsolicited data that it may not send (RFC 7143, 11.4.7.2).
    pub const UNEXPECTED_DATA: Sense = Sense::new(0xb, 0x0c, 0x0c);
    /// The initiator sent less or more data than it was asked for (RFC 7143, 11.4.7.2).
    pub const AMOUNT_OF_DATA: Sense = Sense::new(0xb, 0x0c, 0x0d);
    /// Data came in another order than it has to.
    pub const DATA_PHASE: Sense = Sense::new(0xb, 0x4b, 0x00);
    /// Compared data differ.
    pub const MISCOMPARE: Sense = Sense::new(0xe, 0x1d, 0x00);

    /// Byte `byte` of the CDB is wrong.
    pub const fn cdb(byte: u16) -> Sense {
        Sense { field: Some((true, byte)), ..Sense::new(5, 0x24, 0x00) }
    }

    /// Byte `byte` of the parameter list is wrong.
    pub const fn parameter(byte: u16) -> Sense {
        Sense { field: Some((false, byte)), ..Sense::new(5, 0x26, 0x00) }
    }

    /// Something happened that the initiator has to hear of.
    pub const fn attention(code: u8, qualifier: u8) -> Sense {
        Sense::new(6, code, qualifier)
    }

    /// The data: fixed format (70h), or descriptors (72h).
    pub fn bytes(&self, descriptors: bool) -> Vec<u8> {
        let specific = self.field.map(|(cdb, byte)| {
            let [high, low] = byte.to_be_bytes();
            [0x80 | if cdb { 0x40 } else { 0 }, high, low]
        });
        if descriptors {
            let mut bytes = vec![0x72, self.key, self.code.0, self.code.1, 0, 0, 0, 0];
            if let Some(information) = self.information {
                bytes.extend_from_slice(&[0, 10, 0x80, 0]);
                bytes.extend_from_slice(&information.to_be_bytes());
            }
            if let Some(specific) = specific {
                bytes.extend_from_slice(&[2, 6, 0, 0]);
                bytes.extend_from_slice(&specific);
                bytes.push(0);
            }
            bytes[7] = (bytes.len() - 8) as u8;
            return bytes;
        }
        let mut bytes = vec![0; 18];
        bytes[0] = 0x70;
        bytes[2] = self.key;
        bytes[7] = 10;
        (bytes[12], bytes[13]) = self.code;
        // The fixed format has room for 32 bits; what does not fit is left out (SPC-4, 4.5.3).
        if let Some(information) = self.information.and_then(|value| u32::try_from(value).ok()) {
            bytes[0] |= 0x80;
            bytes[3..7].copy_from_slice(&information.to_be_bytes());
        }
        if let Some(specific) = specific {
            bytes[15..18].copy_from_slice(&specific);
        }
        bytes
    }
}
