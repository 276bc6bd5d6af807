//! Requests that are nearly in order, put in order.

use super::request::Request;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Requests that may overtake each other: a trace merged from several processors or written at completion is out of
/// order by what was in progress, which no queue of a device exceeds (NVMe queues hold 65,536 commands, in practice
/// 1,024).
const WINDOW: usize = 4096;

/// Holds back `WINDOW` requests and lets the earliest go.
#[derive(Default)]
pub struct Reorder {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    /// Requests in their slots.
    held: Vec<Request>,
    free: Vec<usize>,
    /// Requests taken so far. Range: 2^51, above what any file holds.
    number: u64,
    last: u64,
}

impl Reorder {
    /// Takes a request; true when one is to be taken out before the next.
    pub fn put(&mut self, request: Request) -> Result<bool, String> {
        if request.arrival_ns < self.last {
            return Err(format!(
                "an arrival at most {WINDOW} requests out of order ({} ns comes after {} ns): \
                 sort the trace by arrival",
                request.arrival_ns, self.last
            ));
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.held.push(request);
                self.held.len() - 1
            }
        };
        self.held[slot] = request;
        // Equal arrivals keep the order of the file: the number grows; the slot, below 2^13, is in the low bits.
        self.heap.push(Reverse((request.arrival_ns, self.number << 13 | slot as u64)));
        self.number += 1;
        Ok(self.heap.len() > WINDOW)
    }

    /// The earliest request.
    pub fn take(&mut self) -> Option<Request> {
        let Reverse((arrival, key)) = self.heap.pop()?;
        let slot = (key & 0x1fff) as usize;
        self.last = arrival;
        self.free.push(slot);
        Some(self.held[slot])
    }
}
