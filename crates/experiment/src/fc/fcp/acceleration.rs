//! Write acceleration: the gateway at the initiator answers a write with FCP_XFER_RDY in the target's name, and the
//! gateway at the target swallows the target's own.
//!
//! Data of a write then follows its command without a round trip between. The far gateway holds it until the target
//! asks. The response is the target's: what an initiator takes for written, the target has written.
//!
//! **Invariant: the target gets the frames that it would have got without acceleration, in their order within each
//! exchange.** Both gateways know how much the target asks for at once. Writes are granted one after the other, so that
//! the data that a target needs first is first on the connection, and data that is held never waits for data behind it.

use crate::fc::carried::Carried;
use std::collections::{BTreeMap, VecDeque};
use wire::fc::els;
use wire::fc::fcp::{Command, TransferReady};
use wire::fc::{frame_control, routing, Frame, FrameHeader, FrameType, UNASSIGNED};

/// A port's gateway as far as acceleration goes.
pub enum Acceleration {
    /// There is none.
    Off,
    /// The port is the initiator.
    Near(Near),
    /// The port is the target.
    Far(Far),
}

impl Acceleration {
    /// Returns true if the gateway has room for `frame`, which came over the connection.
    pub fn has_room(&self, frame: &Frame) -> bool {
        match self {
            Acceleration::Off | Acceleration::Near(_) => true,
            Acceleration::Far(far) => far.has_room(frame),
        }
    }

    /// Takes a frame that came over the connection; returns it if the port may have it now.
    pub fn handle_inbound(&mut self, carried: Carried) -> Option<Carried> {
        match self {
            Acceleration::Off => Some(carried),
            Acceleration::Near(near) => {
                near.handle_inbound(&carried.frame);
                Some(carried)
            }
            Acceleration::Far(far) => far.handle_inbound(carried),
        }
    }

    /// Looks at a frame of the port; returns true if it goes no further. Frames that the port may have from then on go
    /// to `free`.
    pub fn handle_outbound(&mut self, frame: &Frame, free: &mut VecDeque<Carried>) -> bool {
        match self {
            Acceleration::Off => false,
            Acceleration::Near(near) => {
                near.handle_outbound(frame);
                false
            }
            Acceleration::Far(far) => far.handle_outbound(frame, free),
        }
    }

    /// The next frame that the gateway has for the port in the other port's name.
    pub fn poll_ready(&mut self) -> Option<Frame> {
        match self {
            Acceleration::Off | Acceleration::Far(_) => None,
            Acceleration::Near(near) => near.poll_ready(),
        }
    }

    /// Returns the number of frames that it has discarded since the last call.
    pub fn take_discarded(&mut self) -> u64 {
        match self {
            Acceleration::Off | Acceleration::Near(_) => 0,
            Acceleration::Far(far) => std::mem::take(&mut far.discarded),
        }
    }
}

/// A write at the gateway of its initiator.
#[derive(Clone, Copy, Debug)]
struct Grant {
    command: FrameHeader,
    bytes: u32,
    /// End of the data that the initiator was asked for.
    granted_to: u32,
}

/// The gateway at the initiator.
#[derive(Default, Debug)]
pub struct Near {
    /// Data that one transfer ready asks for.
    burst_bytes: u32,
    /// Data granted and not yet here from which on no more is granted.
    bound_bytes: u64,
    /// Data granted and not yet here.
    awaited_bytes: u64,
    /// Writes under way by their number, with the data that they still owe.
    writes: BTreeMap<u16, u64>,
    /// Writes that are to be granted more, the oldest first.
    waiting: VecDeque<Grant>,
}

impl Near {
    /// A gateway that grants `burst_bytes` at once, as long as fewer than `bound_bytes` are on their way to it.
    pub fn new(burst_bytes: u32, bound_bytes: u64) -> Near {
        Near { burst_bytes: burst_bytes.max(1), bound_bytes, ..Near::default() }
    }

    /// Looks at a frame that the initiator sends.
    fn handle_outbound(&mut self, frame: &Frame) {
        let header = frame.header;
        match (header.kind, header.r_ctl) {
            (FrameType::FCP, routing::UNSOLICITED_COMMAND) => {
                let Ok(command) = Command::parse(&frame.payload.to_bytes()) else { return };
                if command.write && command.management.is_none() && command.data_bytes > 0 {
                    self.end(header.ox_id);
                    self.writes.insert(header.ox_id, 0);
                    self.waiting.push_back(Grant { command: header, bytes: command.data_bytes, granted_to: 0 });
                }
            }
            (FrameType::FCP, routing::SOLICITED_DATA) => {
                if let Some(owed) = self.writes.get_mut(&header.ox_id) {
                    let bytes = (frame.payload.len() as u64).min(*owed);
                    *owed -= bytes;
                    self.awaited_bytes -= bytes;
                }
            }
            (FrameType::BASIC, routing::ABORT_SEQUENCE) => self.end(header.ox_id),
            _ if ends_exchanges(frame) => self.end_all(),
            _ => {}
        }
    }

    /// Looks at a frame of the target.
    fn handle_inbound(&mut self, frame: &Frame) {
        if frame.header.kind == FrameType::FCP && frame.header.r_ctl == routing::COMMAND_STATUS {
            self.end(frame.header.ox_id);
        } else if ends_exchanges(frame) {
            self.end_all();
        }
    }

    fn end_all(&mut self) {
        (self.awaited_bytes, self.writes, self.waiting) = Default::default();
    }

    /// A write is over.
    fn end(&mut self, ox_id: u16) {
        if let Some(owed) = self.writes.remove(&ox_id) {
            self.awaited_bytes -= owed;
            self.waiting.retain(|grant| grant.command.ox_id != ox_id);
        }
    }

    /// The next transfer ready for the initiator.
    fn poll_ready(&mut self) -> Option<Frame> {
        let grant = self.waiting.front_mut()?;
        let bytes = (grant.bytes - grant.granted_to).min(self.burst_bytes);
        // The core takes a transfer ready when it has sent all of the one before.
        let owed = self.writes.get_mut(&grant.command.ox_id)?;
        let full = self.awaited_bytes > 0 && self.awaited_bytes + u64::from(bytes) > self.bound_bytes;
        if *owed > 0 || full {
            return None;
        }
        let ready = TransferReady { offset: grant.granted_to, bytes };
        let header = FrameHeader {
            r_ctl: routing::DATA_DESCRIPTOR,
            d_id: grant.command.s_id,
            s_id: grant.command.d_id,
            kind: FrameType::FCP,
            f_ctl: frame_control::EXCHANGE_RESPONDER | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE,
            ox_id: grant.command.ox_id,
            // The target gives its number later, and an initiator does without.
            rx_id: UNASSIGNED,
            ..FrameHeader::default()
        };
        *owed += u64::from(bytes);
        self.awaited_bytes += u64::from(bytes);
        grant.granted_to += bytes;
        if grant.granted_to == grant.bytes {
            self.waiting.pop_front();
        }
        Some(Frame::class3(header, ready.to_bytes()))
    }
}

/// A write at the gateway of its target.
#[derive(Default)]
struct Held {
    /// The target's number, once it has asked for data.
    rx_id: u16,
    /// End of the data that it asked for.
    ready_to: u32,
    /// Data that came before it did.
    frames: VecDeque<Carried>,
}

/// The gateway at the target.
#[derive(Default)]
pub struct Far {
    /// Data held from which on the connection is not read.
    bound_bytes: u64,
    bytes: u64,
    /// By the initiator's number.
    writes: BTreeMap<u16, Held>,
    /// Frames of writes that are over.
    discarded: u64,
}

impl Far {
    /// A gateway that takes frames while it holds fewer than `bound_bytes` of data.
    pub fn new(bound_bytes: u64) -> Far {
        Far { bound_bytes, ..Far::default() }
    }

    /// Returns true if it has room for `frame`, which came over the connection.
    fn has_room(&self, frame: &Frame) -> bool {
        !is_data(frame) || self.bytes < self.bound_bytes
    }

    /// Takes a frame of the initiator; returns it if the target may have it now.
    fn handle_inbound(&mut self, mut carried: Carried) -> Option<Carried> {
        let header = carried.frame.header;
        match (header.kind, header.r_ctl) {
            (FrameType::FCP, routing::UNSOLICITED_COMMAND) => {
                let command = Command::parse(&carried.frame.payload.to_bytes());
                if command.is_ok_and(|command| command.write && command.management.is_none()) {
                    self.end(header.ox_id);
                    self.writes.insert(header.ox_id, Held::default());
                }
            }
            (FrameType::BASIC, routing::ABORT_SEQUENCE) => self.end(header.ox_id),
            _ if is_data(&carried.frame) => {
                let Some(write) = self.writes.get_mut(&header.ox_id) else {
                    self.discarded += 1;
                    return None;
                };
                if header.parameter >= write.ready_to {
                    self.bytes += carried.frame.payload.len() as u64;
                    write.frames.push_back(carried);
                    return None;
                }
                carried.frame.header.rx_id = write.rx_id;
            }
            _ if ends_exchanges(&carried.frame) => self.end_all(),
            _ => {}
        }
        Some(carried)
    }

    /// Looks at a frame of the target; returns true if it goes no further. Frames that the target may have from then on
    /// go to `free`.
    fn handle_outbound(&mut self, frame: &Frame, free: &mut VecDeque<Carried>) -> bool {
        let header = frame.header;
        if ends_exchanges(frame) {
            self.end_all();
        }
        if header.kind != FrameType::FCP {
            return false;
        }
        match header.r_ctl {
            routing::DATA_DESCRIPTOR => {
                let Ok(ready) = TransferReady::parse(&frame.payload.to_bytes()) else { return false };
                let Some(write) = self.writes.get_mut(&header.ox_id) else { return false };
                (write.rx_id, write.ready_to) = (header.rx_id, ready.offset.saturating_add(ready.bytes));
                let ready_to = write.ready_to;
                while write.frames.front().is_some_and(|of| of.frame.header.parameter < ready_to) {
                    let Some(mut carried) = write.frames.pop_front() else { break };
                    self.bytes -= carried.frame.payload.len() as u64;
                    carried.frame.header.rx_id = header.rx_id;
                    free.push_back(carried);
                }
                true
            }
            routing::COMMAND_STATUS => {
                self.end(header.ox_id);
                false
            }
            _ => false,
        }
    }

    /// A write is over: the target wants no more of it.
    fn end(&mut self, ox_id: u16) {
        for carried in self.writes.remove(&ox_id).into_iter().flat_map(|write| write.frames) {
            self.bytes -= carried.frame.payload.len() as u64;
            self.discarded += 1;
        }
    }

    fn end_all(&mut self) {
        let writes: Vec<u16> = self.writes.keys().copied().collect();
        writes.into_iter().for_each(|ox_id| self.end(ox_id));
    }
}

/// True for a link service that ends all exchanges of its two ports.
fn ends_exchanges(frame: &Frame) -> bool {
    let header = &frame.header;
    let is_request = header.kind == FrameType::ELS && header.r_ctl == routing::ELS_REQUEST;
    is_request && matches!(els::Command::of(&frame.payload.to_bytes()), Ok(els::Command::PLOGI | els::Command::LOGO))
}

fn is_data(frame: &Frame) -> bool {
    frame.header.kind == FrameType::FCP && frame.header.r_ctl == routing::SOLICITED_DATA
}
