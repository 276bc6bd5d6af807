//! Frames of targets: data, transfer ready, response, answers to aborts.

use super::engine::Initiator;
use super::exchange::{Exchange, Stage};
use crate::fc::fcp::command::{Completion, Data, Failure};
use crate::scsi::status;
use wire::fc::fcp::{Residual, Response, TransferReady};
use wire::fc::{frame_control, routing, Frame, FrameType, UNASSIGNED};

/// Sense key of a command that the transport of the target ended.
const ABORTED_COMMAND: u8 = 0x0b;

impl Initiator {
    /// Takes a frame that a target sent at `now_ns`.
    pub fn handle_frame(&mut self, frame: Frame, now_ns: u64) {
        let header = frame.header;
        let Some(exchange) = self.exchanges.get_mut(&header.ox_id).filter(|exchange| {
            let same = exchange.rx_id.is_none_or(|rx_id| rx_id == header.rx_id);
            exchange.target == header.s_id
                && header.has(frame_control::EXCHANGE_RESPONDER)
                && (same || header.kind == FrameType::BASIC)
        }) else {
            self.counters.stale += 1;
            return;
        };
        if header.kind == FrameType::BASIC {
            return match header.r_ctl {
                // Either way the target has nothing of the exchange any more.
                routing::BASIC_ACCEPT | routing::BASIC_REJECT => {
                    self.aborted(header.ox_id, header.r_ctl == routing::BASIC_ACCEPT, now_ns);
                }
                // A target ends exchanges by answers.
                _ => self.counters.malformed += 1,
            };
        }
        if exchange.stage != Stage::Active || header.kind != FrameType::FCP {
            self.counters.stale += 1;
            return;
        }
        exchange.rx_id = exchange.rx_id.or((header.rx_id != UNASSIGNED).then_some(header.rx_id));
        self.touch(header.ox_id, now_ns);
        match header.r_ctl {
            routing::SOLICITED_DATA => self.data(frame, now_ns),
            routing::DATA_DESCRIPTOR => self.transfer_ready(&frame, now_ns),
            routing::COMMAND_STATUS => self.response(&frame, now_ns),
            _ => self.counters.malformed += 1,
        }
    }

    /// Data of a read: in order, or the exchange is aborted.
    fn data(&mut self, frame: Frame, now_ns: u64) {
        let ox_id = frame.header.ox_id;
        let Some(exchange) = self.exchanges.get_mut(&ox_id) else { return };
        let expected = match self.tasks.get(&exchange.command).map(|task| &task.command.data) {
            Some(Data::Read(bytes)) => *bytes,
            _ => 0,
        };
        let (received, bytes) = (exchange.received.len() as u32, frame.payload.len() as u32);
        let fits = bytes > 0 && bytes <= expected - received;
        if !exchange.order.takes(&frame, received) || !fits {
            self.counters.broken += 1;
            return self.send_abort(ox_id, now_ns);
        }
        exchange.received.push(frame.payload);
    }

    /// The target has room for data.
    fn transfer_ready(&mut self, frame: &Frame, now_ns: u64) {
        let ox_id = frame.header.ox_id;
        let Some(exchange) = self.exchanges.get_mut(&ox_id) else { return };
        let outgoing = self.tasks.get(&exchange.command).map_or(0, |task| task.outgoing().len() as u64);
        let ready = TransferReady::parse(&frame.payload.to_bytes());
        let in_order = |ready: &TransferReady| {
            ready.offset == exchange.sent
                && exchange.sent == exchange.ready_to
                && ready.bytes > 0
                && u64::from(ready.offset) + u64::from(ready.bytes) <= outgoing
        };
        match ready {
            // A target that gives its side of exchanges no numbers leaves RX_ID unassigned.
            Ok(ready) if in_order(&ready) => {
                exchange.ready_to = ready.offset + ready.bytes;
                self.sending.push_back(ox_id);
            }
            _ => {
                self.counters.broken += 1;
                self.send_abort(ox_id, now_ns);
            }
        }
    }

    /// The end of a command. One that is done, but whose data is not all there, is aborted: frames were lost.
    fn response(&mut self, frame: &Frame, now_ns: u64) {
        let ox_id = frame.header.ox_id;
        let Some(exchange) = self.exchanges.get(&ox_id) else { return };
        let id = exchange.command;
        let Ok(response) = Response::parse(&frame.payload.to_bytes()) else {
            self.counters.malformed += 1;
            return self.send_abort(ox_id, now_ns);
        };
        let Some(task) = self.tasks.get(&id) else { return };
        if let Some(code) = response.code.filter(|code| *code != 0) {
            self.remove(ox_id);
            return self.fail(id, Failure::Refused(code));
        }
        if response.status == status::GOOD && !is_whole(exchange, &task.command.data, response.residual) {
            self.counters.broken += 1;
            return self.send_abort(ox_id, now_ns);
        }
        let key = response.sense.get(2).map_or(0, |key| key & 0x0f);
        let transport = response.status == status::CHECK_CONDITION && key == ABORTED_COMMAND;
        if transport && task.may_repeat() && task.attempts < self.settings.attempts {
            // The target missed data; its exchange is over already.
            self.remove(ox_id);
            return self.wait_again(id);
        }
        let attempts = task.attempts;
        let Some(exchange) = self.remove(ox_id) else { return };
        self.tasks.remove(&id);
        self.counters.completed += 1;
        let (underflow, overflow) = match response.residual {
            Residual::None => (0, 0),
            Residual::Under(bytes) => (bytes, 0),
            Residual::Over(bytes) => (0, bytes),
        };
        let (status, sense) = (response.status, response.sense.to_vec());
        let completion = Completion { status, sense, data: exchange.received, underflow, overflow, attempts };
        self.ended.push_back((id, Ok(completion)));
    }
}

/// True when as many bytes moved as the target says.
fn is_whole(exchange: &Exchange, data: &Data, residual: Residual) -> bool {
    let short = match residual {
        Residual::Under(bytes) => bytes,
        Residual::None | Residual::Over(_) => 0,
    };
    match data {
        Data::None => true,
        Data::Read(bytes) => exchange.received.len() as u64 + u64::from(short) == u64::from(*bytes),
        Data::Write(data) => u64::from(exchange.sent) + u64::from(short) == data.len() as u64,
    }
}
