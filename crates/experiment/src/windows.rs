//! Windows of a measurement: what flows did between two times of a run, which may count from an event.

use crate::counters::{MeasuredWindow, WindowCounters};
use crate::probe::{FlowObservation, Probe, ProbeView};
use spec::{RunSpec, WindowSpec};
use std::ops::ControlFlow;
use units::{Span, Time};

/// Samples of the congestion window in a window of the measurement: 0.1 % of its length apart.
const SAMPLES: u64 = 1000;

/// The windows of a run, in the order of its specification.
pub struct Windows(Vec<Window>);

struct Window {
    event: Option<usize>,
    from: Span,
    length: Span,
    /// Beginning; None: its event has not happened.
    begin: Option<Time>,
    /// Next sample, beginning or end; [`Time::NEVER`]: none is known, or it has ended.
    next: Time,
    /// Counters of each flow at its beginning; empty before.
    before: Vec<FlowObservation>,
    /// Samples of each flow's congestion window: their number and sum, segments.
    cwnd: Vec<(u64, u64)>,
    measured: MeasuredWindow,
}

impl Window {
    fn new(spec: &WindowSpec) -> Window {
        let begin = spec.event.is_none().then_some(Time(spec.from_ns));
        Window {
            event: spec.event,
            from: Span(spec.from_ns),
            length: Span(spec.to_ns - spec.from_ns),
            begin,
            next: begin.unwrap_or(Time::NEVER),
            before: vec![],
            cwnd: vec![],
            measured: MeasuredWindow::default(),
        }
    }

    fn step(&self) -> Span {
        Span((self.length.0 / SAMPLES).max(1))
    }

    fn handle_timeout(&mut self, now: Time, view: &dyn ProbeView) {
        let Some(begin) = self.begin.filter(|_| self.next <= now) else { return };
        let end = begin + self.length;
        if now >= end {
            return self.finish(now, view);
        }
        let flows = (0..view.flows()).map(|flow| view.flow(flow));
        if self.before.is_empty() {
            self.before = flows.collect();
            self.cwnd = vec![(0, 0); self.before.len()];
            self.next = begin + Span(self.step().0 / 2);
        } else {
            for ((samples, sum), flow) in self.cwnd.iter_mut().zip(flows) {
                *samples += u64::from(flow.cwnd_packets.is_some());
                *sum += u64::from(flow.cwnd_packets.unwrap_or(0));
            }
            self.next = self.next + self.step();
        }
        self.next = self.next.min(end);
    }

    /// Ends it, if it has begun and not ended.
    fn finish(&mut self, now: Time, view: &dyn ProbeView) {
        self.next = Time::NEVER;
        if self.before.is_empty() {
            return;
        }
        let flows = std::mem::take(&mut self.before).into_iter().zip(&self.cwnd).enumerate();
        let of_flow = |(flow, (before, &cwnd)): (usize, (FlowObservation, &(u64, u64)))| {
            let after = view.flow(flow);
            WindowCounters {
                received_bytes: Some(after.received_bytes - before.received_bytes),
                retransmitted_segments: Some(after.retransmitted_segments - before.retransmitted_segments),
                dropped_packets: Some(after.dropped_packets - before.dropped_packets),
                timeouts: Some(after.timeouts - before.timeouts),
                cwnd_reductions: after
                    .cwnd_reductions
                    .zip(before.cwnd_reductions)
                    .map(|(after, before)| after - before),
                cwnd,
            }
        };
        self.measured =
            MeasuredWindow { interval: self.begin.map(|begin| (begin, now)), flows: flows.map(of_flow).collect() };
    }
}

impl Windows {
    /// Those of `run`; None: it has none.
    pub fn new(run: &RunSpec) -> Option<Windows> {
        let windows = &run.measure.windows;
        (!windows.is_empty()).then(|| Windows(windows.iter().map(Window::new).collect()))
    }

    /// Event `event` of the specification has happened at `at`.
    pub fn handle_event(&mut self, event: usize, at: Time) {
        for window in self.0.iter_mut().filter(|window| window.event == Some(event) && window.begin.is_none()) {
            window.begin = Some(at + window.from);
            window.next = at + window.from;
        }
    }

    /// Ends those that have begun, as the run does at `now`, and returns all.
    pub fn finish(&mut self, now: Time, view: &dyn ProbeView) -> Vec<MeasuredWindow> {
        let end = |window: &mut Window| {
            window.finish(now, view);
            std::mem::take(&mut window.measured)
        };
        self.0.iter_mut().map(end).collect()
    }
}

impl Probe for Windows {
    fn poll_timeout(&self) -> Time {
        self.0.iter().map(|window| window.next).min().unwrap_or(Time::NEVER)
    }

    fn handle_timeout(&mut self, now: Time, view: &mut dyn ProbeView) -> ControlFlow<()> {
        self.0.iter_mut().for_each(|window| window.handle_timeout(now, view));
        ControlFlow::Continue(())
    }
}
