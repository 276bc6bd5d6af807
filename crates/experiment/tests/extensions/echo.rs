//! An application of a page: it sends back what comes. A node gives it the far end of a flow, whose near end has the
//! scenario's workload.

use crate::common::{transport, Dumbbell, MS, S};
use experiment::{simulate_with, Application, Ends, Node, NodeNumber, Parts, SendingEnd, Side, Transport};
use serde_json::json;
use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;
use units::Time;

#[derive(Default)]
struct Echo {
    /// Bytes that came.
    received: u64,
    /// Of them, sent back.
    answered: u64,
    stopped: bool,
}

impl Application for Echo {
    fn start(&mut self, _now: Time, _end: &mut impl SendingEnd) -> Time {
        Time::NEVER
    }
    fn handle_timer(&mut self, _now: Time, _end: &mut impl SendingEnd) -> Time {
        Time::NEVER
    }
    fn handle_delivered(&mut self, now: Time, received: u64, end: &mut impl SendingEnd) -> Option<Time> {
        self.received = received;
        self.flush(now, end);
        None
    }
    fn flush(&mut self, now: Time, end: &mut impl SendingEnd) {
        if !self.stopped {
            self.answered += end.write(now, self.received - self.answered);
        }
    }
    fn stop(&mut self, now: Time, end: &mut impl SendingEnd) {
        self.stopped = true;
        end.close(now);
    }
    fn done_at(&self) -> Option<Time> {
        None
    }
}

/// The far end of flow 0, and what its application has answered.
struct FarEnd {
    application: Echo,
    answered: Rc<Cell<u64>>,
    pumps: Vec<(usize, Side)>,
}

impl<T: Transport> Node<T> for FarEnd {
    fn flows(&self) -> Range<usize> {
        0..0
    }
    fn start(&mut self, now: Time, ends: &mut Ends<'_, T>) {
        self.application.start(now, ends.end(0, Side::Receiver));
    }
    fn stop(&mut self, _now: Time) {
        self.application.stopped = true;
    }
    fn handle_arrival(&mut self, now: Time, flow: usize, side: Side, ends: &mut Ends<'_, T>) -> bool {
        let end = ends.end(flow, side);
        let received = end.bytes_received();
        self.application.handle_delivered(now, received, end);
        self.answered.set(self.application.answered);
        self.pumps.push((flow, side));
        true
    }
    fn handle_sent(&mut self, now: Time, flow: usize, side: Side, ends: &mut Ends<'_, T>) {
        self.application.flush(now, ends.end(flow, side));
    }
    fn poll_pump(&mut self) -> Option<(usize, Side)> {
        self.pumps.pop()
    }
    fn done_at(&self) -> Option<Time> {
        None
    }
}

#[test]
fn what_comes_is_sent_back() {
    let bytes = json!({"kind": "bulk", "bytes": 1_000_000});
    let mut run = Dumbbell::new(100_000_000, 10 * MS).flow("f", transport("reno", json!({})), bytes);
    run.duration_ns = 5 * S;
    let answered = Rc::new(Cell::new(0));
    let node = FarEnd { application: Echo::default(), answered: Rc::clone(&answered), pumps: vec![] };
    let parts = Parts {
        maker: experiment::Algorithms::default(),
        nodes: vec![node],
        of_ends: vec![[None, Some(NodeNumber::new(0))]],
        probes: vec![],
    };
    let outcome = simulate_with(&run.spec(), parts, &mut |_| ControlFlow::Continue(())).expect("the run ends");
    assert_eq!(crate::common::integer(&outcome, "delivered_bytes"), 1_000_000);
    assert_eq!(answered.get(), 1_000_000);
}
