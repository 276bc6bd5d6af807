//! Data of commands: in from initiators, out to them.

use super::command::refusal;
use super::engine::Target;
use super::exchange::{Key, Stage};
use crate::scsi::Sense;
use wire::fc::{frame_control, Frame};

impl Target {
    /// Takes data of a write.
    pub(super) fn data(&mut self, key: Key, frame: Frame) {
        let header = frame.header;
        let Some(exchange) = self.exchanges.get_mut(&key) else {
            self.counters.stale += 1;
            return;
        };
        let received = exchange.data.len() as u32;
        if header.rx_id != exchange.rx_id || exchange.stage != Stage::Collecting || received >= exchange.asked_to {
            self.counters.stale += 1;
            return;
        }
        let bytes = frame.payload.len() as u32;
        let in_order = exchange.order.takes(&frame, received);
        let fits = bytes > 0 && bytes <= exchange.asked_to - received;
        let ends = header.has(frame_control::END_SEQUENCE);
        // The data of one transfer ready is one sequence.
        let whole = ends == (received + bytes == exchange.asked_to);
        if !(in_order && fits && whole) {
            // A frame was lost. The command fails, and its initiator begins it anew.
            self.counters.broken += 1;
            let serial = exchange.serial;
            exchange.data = Default::default();
            let sense = if fits { Sense::DATA_PHASE } else { Sense::AMOUNT_OF_DATA };
            return self.finish(key, serial, refusal(sense));
        }
        exchange.data.push(frame.payload);
        if ends {
            self.advance(key);
        }
    }

    /// The next frame of the oldest answer.
    pub(super) fn next_of_answers(&mut self) -> Option<Frame> {
        let answer = self.answers.front_mut()?;
        let key = answer.key;
        // An answer goes with its exchange.
        let exchange = self.exchanges.get_mut(&key)?;
        let rx_id = exchange.rx_id;
        let left = answer.data.len() as u32 - answer.offset;
        if left > 0 {
            let most = self.initiators.get(&key.0).map_or(256, |port| u32::from(port.receive_bytes / 4 * 4));
            let bytes = left.min(most);
            let data = answer.data.slice(answer.offset as usize, bytes as usize);
            let (seq_id, seq_cnt, offset) = (answer.seq_id, answer.seq_cnt, answer.offset);
            answer.offset += bytes;
            answer.seq_cnt = answer.seq_cnt.wrapping_add(1);
            exchange.sent = answer.offset;
            return Some(self.side(key, rx_id).data(seq_id, seq_cnt, offset, data, bytes == left, false));
        }
        let answer = self.answers.pop_front()?;
        // The response is a sequence of its own behind data.
        let seq_id = if answer.data.is_empty() { answer.seq_id } else { answer.seq_id.wrapping_add(1) };
        let frame = self.side(key, rx_id).response(seq_id, answer.response.to_bytes());
        self.drop_exchange(key);
        Some(frame)
    }
}
