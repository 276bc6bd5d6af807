//! Headers of SCSI's frames, and data as frames of a sequence.

use bytes::Bytes;
use wire::fc::{frame_control, routing, Eof, FcId, Frame, FrameHeader, FrameType, Sof, UNASSIGNED};
use wire::iscsi::Payload;

/// Names of an exchange, and the side that sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Side {
    pub from: FcId,
    pub to: FcId,
    pub ox_id: u16,
    pub rx_id: u16,
    /// The sender is the exchange's responder.
    pub responder: bool,
}

impl Side {
    fn header(&self, r_ctl: u8, kind: FrameType, f_ctl: u32) -> FrameHeader {
        let side = if self.responder { frame_control::EXCHANGE_RESPONDER } else { 0 };
        FrameHeader {
            r_ctl,
            d_id: self.to,
            s_id: self.from,
            kind,
            f_ctl: f_ctl | side,
            ox_id: self.ox_id,
            rx_id: self.rx_id,
            ..FrameHeader::default()
        }
    }

    /// The command: first sequence of the exchange.
    pub fn command(&self, payload: Bytes) -> Frame {
        let f_ctl = frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
        let header = self.header(routing::UNSOLICITED_COMMAND, FrameType::FCP, f_ctl);
        Frame::class3(FrameHeader { rx_id: UNASSIGNED, ..header }, payload)
    }

    /// Transfer ready.
    pub fn ready(&self, seq_id: u8, payload: Bytes) -> Frame {
        let f_ctl = frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
        let header = self.header(routing::DATA_DESCRIPTOR, FrameType::FCP, f_ctl);
        Frame::class3(FrameHeader { seq_id, ..header }, payload)
    }

    /// The response: last sequence of the exchange.
    pub fn response(&self, seq_id: u8, payload: Bytes) -> Frame {
        let f_ctl = frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE;
        let header = self.header(routing::COMMAND_STATUS, FrameType::FCP, f_ctl);
        Frame::class3(FrameHeader { seq_id, ..header }, payload)
    }

    /// A frame of data from place `offset` of the command's. `last` ends the sequence; `passes` gives the other side
    /// the initiative with it.
    pub fn data(&self, seq_id: u8, seq_cnt: u16, offset: u32, data: Payload, last: bool, passes: bool) -> Frame {
        let end = if last { frame_control::END_SEQUENCE } else { 0 };
        let initiative = if last && passes { frame_control::SEQUENCE_INITIATIVE } else { 0 };
        let f_ctl = frame_control::RELATIVE_OFFSET | end | initiative;
        let header = self.header(routing::SOLICITED_DATA, FrameType::FCP, f_ctl);
        Frame {
            sof: if seq_cnt == 0 { Sof::Initiate3 } else { Sof::Normal3 },
            header: FrameHeader { seq_id, seq_cnt, parameter: offset, ..header },
            payload: data,
            eof: if last { Eof::Terminate } else { Eof::Normal },
        }
    }

    /// An abort of the exchange (ABTS). Its sequence is the next of the side that sends it.
    pub fn abort(&self, seq_id: u8) -> Frame {
        let f_ctl = frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
        let header = self.header(routing::ABORT_SEQUENCE, FrameType::BASIC, f_ctl);
        Frame::class3(FrameHeader { seq_id, ..header }, Bytes::new())
    }

    /// An answer to an abort: BA_ACC or BA_RJT, by `r_ctl`.
    pub fn basic(&self, r_ctl: u8, seq_id: u8, payload: Bytes) -> Frame {
        let f_ctl = frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE;
        let header = self.header(r_ctl, FrameType::BASIC, f_ctl);
        Frame::class3(FrameHeader { seq_id, ..header }, payload)
    }
}

/// Order of the data frames of an exchange's direction: places in the data without a gap, counts without a gap within
/// a sequence (the offsets grow: PLOGI says so).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct DataOrder {
    sequence: Option<(u8, u16)>,
}

impl DataOrder {
    /// True for the next frame of data in order, where `received` bytes are there.
    pub fn takes(&mut self, frame: &Frame, received: u32) -> bool {
        let header = frame.header;
        let first = matches!(frame.sof, Sof::Initiate3);
        let counts = match self.sequence {
            Some((seq_id, count)) => !first && header.seq_id == seq_id && header.seq_cnt == count.wrapping_add(1),
            None => first,
        };
        let in_place = header.has(frame_control::RELATIVE_OFFSET) && header.parameter == received;
        let ends = header.has(frame_control::END_SEQUENCE);
        self.sequence = (!ends).then_some((header.seq_id, header.seq_cnt));
        counts && in_place
    }
}
