//! A probe of a page: how long the queue before a link is, at an interval of its own.

use crate::common::{bulk, transport, Dumbbell, MS, S};
use crate::extensions::stop_and_wait::Nobody;
use experiment::{simulate, simulate_with, Parts, Probe, ProbeView, QueueObservation};
use serde_json::json;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use units::{Span, Time};

struct QueueLength {
    link: usize,
    interval: Span,
    next: Time,
    seen: Rc<RefCell<Vec<(Time, QueueObservation)>>>,
}

impl Probe for QueueLength {
    fn poll_timeout(&self) -> Time {
        self.next
    }

    fn handle_timeout(&mut self, now: Time, view: &mut dyn ProbeView) -> ControlFlow<()> {
        self.seen.borrow_mut().push((now, view.queue(self.link)));
        self.next = now + self.interval;
        ControlFlow::Continue(())
    }
}

#[test]
fn a_probe_measures_by_its_own_schedule_and_changes_nothing() {
    let mut run = Dumbbell::new(10_000_000, 100 * MS).flow("f", transport("reno", json!({})), bulk());
    run.duration_ns = 10 * S;
    run.series_interval_ns = Some(S);
    let seen = Rc::new(RefCell::new(vec![]));
    let interval = Span::from_millis(7);
    let probe = QueueLength { link: 0, interval, next: Time::ZERO + interval, seen: Rc::clone(&seen) };
    let parts = Parts {
        maker: experiment::Algorithms::default(),
        nodes: Vec::<Nobody>::new(),
        of_ends: vec![],
        probes: vec![Box::new(probe)],
    };
    let measured = simulate_with(&run.spec(), parts, &mut |_| ControlFlow::Continue(())).expect("the run ends");
    let seen = seen.borrow();
    assert_eq!(seen.len(), 10_000 / 7);
    let largest = seen.iter().map(|(_, queue)| queue.bytes).max().unwrap_or(0);
    assert!((60_000..=125_000).contains(&largest), "the queue holds one bandwidth-delay product: {largest}");
    // A sample of the series at the same time agrees.
    let series = &measured.link_series;
    let rows = || series.time_s.iter().zip(&series.link).zip(&series.queue_bytes).filter(|((_, &link), _)| link == 0);
    for (at, queue) in seen.iter().filter(|(at, _)| at.0 % S == 0) {
        let row = rows().find(|((&time, _), _)| time == at.as_secs_f64()).expect("there is a sample");
        assert_eq!(*row.1, queue.bytes);
    }
    let plain = simulate(&run.spec(), &mut |_| ControlFlow::Continue(())).expect("the run ends");
    assert_eq!(plain.metrics["delivered_bytes"], measured.metrics["delivered_bytes"]);
}
