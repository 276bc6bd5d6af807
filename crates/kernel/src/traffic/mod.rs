//! The traffic of a run on this machine: one thread, all senders and receivers, the simulator's own workloads.
//!
//! Sender and receiver are in one process, so that issue and delivery are read from one clock. What is sent is nothing
//! but zeroes, and what arrives is not copied. Flows that real programs carry are started, watched and counted beside
//! them.

mod clock_offset;
mod connection;
mod diag;
mod ends;
mod far_end;
mod flow_watch;
mod info;
mod netstat;
mod poll;
mod proc_file;
mod process;
mod program;
mod program_connections;
mod program_far;
mod program_reception;
mod programs;
mod reception;
mod record;
mod remote;
mod report_link;
mod reports;
mod segment_counts;
mod sender;
mod socket;
mod striped;
#[cfg(test)]
mod tests;
mod written;

use crate::clock::{self, Clock};
use crate::error::KernelError;
use crate::plan::HostPlan;
use connection::Connection;
use experiment::{Application as _, Applications, FlowCounters, FlowSeries, MeasuredFlow, Stripe, ValidRun};
use poll::{End, Event, Poll};
use program::Program;
use spec::{RunSpec, WorkloadSpec};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use units::{Histogram, Span, Time};

pub use ends::EndReport;
pub use flow_watch::{FlowSelection, FlowWatch};
pub use process::SEARCHED;
pub(crate) use reception::Reception;
pub(crate) use remote::{Measured as RemoteMeasured, Remote};
pub use segment_counts::SegmentCounts;

/// Longest wait, so that a stop is noticed.
const NAP: Span = Span::from_millis(20);

/// Interval of the samples of the smoothed round-trip time where no series is asked for.
const SAMPLE: Span = Span::from_millis(10);

/// Least time to wait for data in flight at the end of a run; a longer run waits for its own duration. (The simulator
/// waits longer, at no cost.)
const DRAIN_LEAST: Span = Span::from_secs(60);

/// Flows, and everything that happens to them in time.
pub(crate) struct Traffic<'a> {
    spec: &'a RunSpec,
    /// Flows of one's own sockets; timers and events name them by their place here.
    connections: Vec<Connection>,
    /// Workloads that several of them share.
    stripes: Vec<Stripe>,
    /// Flows that programs carry.
    programs: Vec<Program>,
    poll: Poll,
    timers: BinaryHeap<Reverse<(Time, Timer, usize)>>,
    /// Ends that were cut short for the others' sake.
    turns: Vec<Event>,
    series: FlowSeries,
    /// Flows whose finite work is not delivered yet.
    unfinished: usize,
    /// Lateness of the applications' calls, ns.
    lateness: Histogram,
    /// The other agent, where the receivers are its.
    remote: Option<Remote>,
}

/// In the order in which they go at one time: a sample shows everything that happened at its time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    Application,
    /// A program begins.
    Program,
    Stop,
    Warmup,
    Sample,
}

/// The results of a run's traffic.
pub(crate) struct MeasuredTraffic {
    pub end: Time,
    pub drained_at: Time,
    pub flows: Vec<MeasuredFlow>,
    pub stripes: Vec<Stripe>,
    pub series: FlowSeries,
    pub notes: Vec<String>,
    /// Findings about the other agent, where there is one.
    pub remote: Option<RemoteMeasured>,
    /// CPU time of the thread, ns.
    pub cpu_ns: u64,
}

impl<'a> Traffic<'a> {
    /// Makes all sockets; nothing is sent yet. The devices and addresses of `plan` must be there.
    ///
    /// # Errors
    /// The flow's socket or option that the kernel refused, or the file of its workload that cannot be read.
    pub fn open(run: ValidRun<'a>, plan: &HostPlan) -> Result<Traffic<'a>, KernelError> {
        let spec = run.spec();
        allow_descriptors(spec.flows.len() as u64 * DESCRIPTORS);
        let mut applications = Applications::new(run)?;
        let (mut connections, mut programs) = (vec![], vec![]);
        let poll = Poll::new().map_err(|e| KernelError::machine("epoll", e))?;
        for (index, flow) in spec.flows.iter().enumerate() {
            let failed = |(what, error)| KernelError::Flow { flow: flow.name.clone(), what, error };
            if let Some(program) = plan.flows.get(index).and_then(|planned| planned.program.as_ref()) {
                programs.push(Program::open(spec, plan, index, program).map_err(failed)?);
                continue;
            }
            let workload = applications.build(index, flow)?;
            let made = Connection::new(spec, plan, index, workload).map_err(failed)?;
            let listener = made.far.listener().expect("it was just made");
            poll.add(listener, connections.len(), End::Listener).map_err(|e| failed(("waiting".into(), e)))?;
            connections.push(made);
        }
        Ok(Traffic::of(spec, connections, applications.into_stripes(), programs, poll))
    }

    fn of(
        spec: &'a RunSpec,
        connections: Vec<Connection>,
        stripes: Vec<Stripe>,
        programs: Vec<Program>,
        poll: Poll,
    ) -> Traffic<'a> {
        let mut timers: BinaryHeap<_> =
            connections.iter().enumerate().map(|(i, c)| Reverse((c.due, Timer::Application, i))).collect();
        let stop_of = |c: &Connection| spec.flows[c.flow].stop_ns.map(Time);
        let stops = connections.iter().enumerate().filter_map(|(i, c)| Some((stop_of(c)?, Timer::Stop, i)));
        timers.extend(stops.map(Reverse));
        let starts = programs.iter().enumerate().map(|(i, p)| (Time(spec.flows[p.flow].start_ns), Timer::Program, i));
        timers.extend(starts.map(Reverse));
        if spec.measure.warmup_ns > 0 {
            timers.push(Reverse((Time(spec.measure.warmup_ns), Timer::Warmup, 0)));
        }
        let interval = spec.measure.series_interval_ns.map_or(SAMPLE, Span);
        timers.push(Reverse((Time::ZERO + interval, Timer::Sample, 0)));
        Traffic {
            spec,
            unfinished: spec.flows.len(),
            connections,
            stripes,
            programs,
            poll,
            timers,
            turns: vec![],
            series: FlowSeries::default(),
            lateness: Histogram::default(),
            remote: None,
        }
    }

    /// Runs everything from time zero of `clock` to the end of the run, and until the messages on their way have
    /// arrived. `progress` receives what each flow has delivered. `at_end` is called when the run proper has ended,
    /// before that.
    ///
    /// # Errors
    /// [`KernelError::Stopped`] when `stop` was set; which flow the kernel refused.
    pub fn run(
        mut self,
        clock: Clock,
        progress: &Arc<[AtomicU64]>,
        stop: &AtomicBool,
        over: &AtomicBool,
        at_end: impl FnOnce(Time),
    ) -> Result<MeasuredTraffic, KernelError> {
        match self.remote {
            Some(_) => clock::be_exact(),
            None => clock::prefer(),
        }
        let cpu = clock::thread_cpu_ns();
        let mut events = vec![];
        self.wait_for_start(clock, stop)?;
        let limit = Time(self.spec.duration_ns);
        while !(over.load(Ordering::Relaxed) || clock.now() >= limit || self.is_done()) {
            self.turn(clock, limit, progress, stop, &mut events)?;
        }
        // Handle all timers and arrivals up to now.
        self.turn(clock, Time::ZERO, progress, stop, &mut events)?;
        let end = self.end(clock);
        self.look_at_programs(end, progress)?;
        self.count_remotely(end, clock, progress, stop)?;
        let programs = self.programs.iter().map(Program::counters).collect::<Vec<_>>();
        let counters = self.connections.iter_mut().map(Connection::counters).chain(programs).collect::<io::Result<_>>();
        let counters = counters.map_err(|e| KernelError::machine("the kernel's counters of a connection", e))?;
        at_end(end);
        let notes = self.notes(end);
        self.end_applications(end)?;
        let limit = end + DRAIN_LEAST.max(Span(self.spec.duration_ns));
        while !(over.load(Ordering::Relaxed) || clock.now() >= limit || self.is_drained()) {
            self.turn(clock, limit, progress, stop, &mut events)?;
        }
        let drained_at = clock.now();
        self.finish_remotely(clock, progress, stop)?;
        let measured = self.summarize(end, drained_at, counters, notes);
        Ok(MeasuredTraffic { cpu_ns: clock::thread_cpu_ns() - cpu, ..measured })
    }

    fn summarize(
        self,
        end: Time,
        drained_at: Time,
        counters: Vec<FlowCounters>,
        notes: Vec<String>,
    ) -> MeasuredTraffic {
        let drained_at = if self.connections.iter().any(|c| self.has_messages(c)) { drained_at } else { end };
        let own = self.connections.into_iter().map(|c| (c.flow, c.received_at_warmup, c.workload));
        let programs = self.programs.into_iter().map(|p| (p.flow, p.received_at_warmup, p.into_workload()));
        let mut flows: Vec<_> = own
            .chain(programs)
            .zip(counters)
            .map(|((flow, received_at_warmup, workload), counters)| {
                // Of the workloads here none sends data back.
                (flow, MeasuredFlow { reverse: None, counters, received_at_warmup, workload })
            })
            .collect();
        flows.sort_by_key(|(flow, _)| *flow);
        let flows = flows.into_iter().map(|(_, measured)| measured).collect();
        let remote = self.remote.map(Remote::into_measured);
        let (stripes, series) = (self.stripes, self.series);
        MeasuredTraffic { end, drained_at, flows, stripes, series, notes, remote, cpu_ns: 0 }
    }

    fn is_done(&self) -> bool {
        self.spec.stop_when_done && self.unfinished == 0 && !self.spec.flows.is_empty()
    }

    /// Returns true if every message has arrived or can never arrive.
    fn is_drained(&self) -> bool {
        self.connections.iter().all(|connection| {
            let waiting = match connection.workload.share() {
                Some(share) => self.stripes[share.stripe].messages().in_transit_on(share.lane) > 0,
                None => connection.workload.messages().is_some_and(|m| m.in_transit() > 0),
            };
            !waiting || !connection.is_alive()
        })
    }

    /// Returns true if the messages of a connection are followed: they tell when it is done.
    fn has_messages(&self, connection: &Connection) -> bool {
        match connection.workload.share() {
            Some(share) => !self.stripes[share.stripe].is_copy(),
            None => connection.workload.messages().is_some(),
        }
    }

    fn wait_for_start(&mut self, clock: Clock, stop: &AtomicBool) -> Result<(), KernelError> {
        loop {
            let left = clock.monotonic_ns_at(Time::ZERO).saturating_sub(clock::monotonic_ns());
            if left == 0 {
                return Ok(());
            }
            check(stop)?;
            self.poll.wait(Span(left).min(NAP), &mut vec![]).map_err(|e| KernelError::machine("epoll", e))?;
        }
    }

    /// One round: timers, then what happened at the sockets.
    fn turn(
        &mut self,
        clock: Clock,
        limit: Time,
        progress: &Arc<[AtomicU64]>,
        stop: &AtomicBool,
        events: &mut Vec<Event>,
    ) -> Result<(), KernelError> {
        check(stop)?;
        let next = self.handle_timers(clock, progress)?;
        let now = clock.now();
        let left = if self.turns.is_empty() { next.min(limit).since(now).min(NAP) } else { Span::ZERO };
        self.poll.wait(left, events).map_err(|e| KernelError::machine("epoll", e))?;
        // Those first that were cut short: everyone's turn comes.
        let turns = std::mem::take(&mut self.turns);
        for (flow, end) in turns.into_iter().chain(events.drain(..)) {
            match end {
                End::Listener => self.accept(flow)?,
                End::Sender => self.handle_sender(clock.now(), flow)?,
                End::Receiver => self.handle_receiver(clock, flow, progress)?,
                End::Program => self.handle_program_end(clock.now(), flow)?,
                End::Report => self.handle_reports(clock, progress)?,
                // Those of a receiving agent.
                End::Arrival => {}
            }
        }
        self.tend_remote(clock)
    }

    /// Everything that is due; returns when the next is.
    fn handle_timers(&mut self, clock: Clock, progress: &Arc<[AtomicU64]>) -> Result<Time, KernelError> {
        loop {
            let Some(&Reverse((due, timer, flow))) = self.timers.peek() else { return Ok(Time::NEVER) };
            let now = clock.now();
            if due > now {
                return Ok(due);
            }
            self.timers.pop();
            match timer {
                // The application has another time in mind by now.
                Timer::Application if self.connections[flow].due != due => {}
                Timer::Application => self.handle_application(now, due, flow)?,
                Timer::Program => self.start_program(flow)?,
                Timer::Stop => self.stop_flow(due, now, flow)?,
                // The other agent tells it.
                Timer::Warmup if self.remote.is_some() => {}
                Timer::Warmup => {
                    for connection in &mut self.connections {
                        connection.received_at_warmup = connection.received;
                    }
                    self.look_at_programs(now, progress)?;
                    for program in &mut self.programs {
                        program.received_at_warmup = program.received();
                    }
                }
                Timer::Sample => self.sample(due, now, progress)?,
            }
        }
    }

    fn handle_application(&mut self, now: Time, due: Time, flow: usize) -> Result<(), KernelError> {
        let connection = &mut self.connections[flow];
        let share = connection.workload.share();
        if connection.opened {
            self.lateness.record(now.since(due).0);
            if let Some(share) = share {
                return self.handle_stripe_timer(now, share.stripe);
            }
            let next = connection.workload.handle_timer(now, &mut connection.sender);
            self.set_due(flow, next);
        } else if let Some(share) = share {
            return self.open_lane(due, flow, share);
        } else {
            self.begin(now, flow)?;
            let connection = &mut self.connections[flow];
            let next = connection.workload.start(due, &mut connection.sender);
            self.set_due(flow, next);
        }
        self.after_write(flow)
    }

    fn begin(&mut self, now: Time, flow: usize) -> Result<(), KernelError> {
        let connection = &mut self.connections[flow];
        connection.opened = true;
        connection.connecting_since = now;
        connection.connect();
        let begun = self.poll.add(&connection.sender.socket, flow, End::Sender);
        begun.map_err(|e| KernelError::machine("epoll", e))
    }

    fn set_due(&mut self, flow: usize, due: Time) {
        self.connections[flow].due = due;
        if due != Time::NEVER {
            self.timers.push(Reverse((due, Timer::Application, flow)));
        }
    }

    fn stop_flow(&mut self, due: Time, now: Time, flow: usize) -> Result<(), KernelError> {
        let connection = &mut self.connections[flow];
        match connection.workload.share() {
            Some(share) => self.stop_stripe(due, share.stripe)?,
            None => connection.workload.stop(due, &mut connection.sender),
        }
        // Everything may have arrived already.
        self.note_delivered(now, flow)
    }

    fn sample(&mut self, due: Time, now: Time, progress: &Arc<[AtomicU64]>) -> Result<(), KernelError> {
        let asked = self.spec.measure.series_interval_ns;
        let interval = asked.map_or(SAMPLE, Span);
        self.look_at_programs(now, progress)?;
        for program in self.programs.iter_mut().filter(|p| p.is_alive()) {
            program.sample(now, asked.map(|_| &mut self.series));
        }
        for connection in self.connections.iter_mut().filter(|c| c.is_alive()) {
            let series = asked.map(|_| &mut self.series);
            let lag = match connection.workload.share() {
                Some(share) => self.stripes[share.stripe].messages().lag_of(share.lane, now),
                None => connection.workload.lag(now, connection.received),
            };
            connection.sample(now, lag, series).map_err(|e| KernelError::machine("TCP_INFO", e))?;
        }
        self.check_ports(now)?;
        // Missed samples are skipped.
        let next = due + Span(interval.0 * (1 + now.since(due).0 / interval.0));
        self.timers.push(Reverse((next, Timer::Sample, 0)));
        Ok(())
    }

    fn accept(&mut self, flow: usize) -> Result<(), KernelError> {
        let connection = &mut self.connections[flow];
        let Some(listener) = connection.far.listener() else { return Ok(()) };
        let failed = |what: &str, error| KernelError::Flow {
            flow: self.spec.flows[connection.flow].name.clone(),
            what: what.to_owned(),
            error,
        };
        if let Some((socket, _)) = listener.accept().map_err(|e| failed("accept", e))? {
            self.poll.add(&socket, flow, End::Receiver).map_err(|e| failed("waiting", e))?;
            connection.far.accept(socket);
        }
        Ok(())
    }

    fn handle_sender(&mut self, now: Time, flow: usize) -> Result<(), KernelError> {
        let connection = &mut self.connections[flow];
        if connection.handle_sender() {
            match connection.workload.share() {
                Some(share) => self.fill_lane(now, flow, share)?,
                None => connection.workload.flush(now, &mut connection.sender),
            }
        }
        self.after_write(flow)
    }

    fn after_write(&mut self, flow: usize) -> Result<(), KernelError> {
        let connection = &mut self.connections[flow];
        connection.notice_failure();
        if std::mem::take(&mut connection.sender.wants_turn) {
            self.turns.push((flow, End::Sender));
        }
        match connection.mistake() {
            Some(error) => {
                let flow = self.spec.flows[connection.flow].name.clone();
                Err(KernelError::Flow { flow, what: "connecting".into(), error })
            }
            None => Ok(()),
        }
    }

    fn handle_receiver(&mut self, clock: Clock, flow: usize, progress: &Arc<[AtomicU64]>) -> Result<(), KernelError> {
        let connection = &mut self.connections[flow];
        match connection.take() {
            Ok(0) => {}
            Ok(_) => {
                progress[connection.flow].store(connection.received, Ordering::Relaxed);
                // There may be more, and the stream's end.
                self.turns.push((flow, End::Receiver));
                self.note_delivered(clock.now(), flow)?;
            }
            Err(error) => connection.lose(error),
        }
        Ok(())
    }

    fn note_delivered(&mut self, now: Time, flow: usize) -> Result<(), KernelError> {
        let connection = &mut self.connections[flow];
        if let Some(share) = connection.workload.share() {
            return self.note_lane_delivered(now, flow, share);
        }
        let was_done = connection.workload.done_at.is_some();
        let received = connection.received;
        let wake = connection.workload.handle_delivered(now, received, &mut connection.sender);
        connection.notice_failure();
        if std::mem::take(&mut connection.sender.wants_turn) {
            self.turns.push((flow, End::Sender));
        }
        if !was_done && connection.workload.done_at.is_some() {
            self.unfinished -= 1;
        }
        if let Some(due) = wake {
            self.set_due(flow, due);
        }
        Ok(())
    }

    /// Applications write no more. Messages go on to the far end. Data without end or without messages is cut off, as
    /// the simulator discards unsent data: it must not delay the messages.
    fn end_applications(&mut self, now: Time) -> Result<(), KernelError> {
        self.stop_applications(now)?;
        for place in 0..self.connections.len() {
            if !self.has_messages(&self.connections[place]) {
                self.connections[place].cut();
            }
        }
        for program in &mut self.programs {
            program.cut();
        }
        Ok(())
    }

    fn stop_applications(&mut self, now: Time) -> Result<(), KernelError> {
        for index in 0..self.stripes.len() {
            self.stop_stripe(now, index)?;
        }
        for connection in self.connections.iter_mut().filter(|c| c.workload.share().is_none()) {
            connection.workload.stop(now, &mut connection.sender);
        }
        Ok(())
    }

    fn notes(&self, end: Time) -> Vec<String> {
        let mut notes: Vec<_> = self.connections.iter().flat_map(|c| c.notes(&self.spec.flows[c.flow], end)).collect();
        notes.extend(self.programs.iter().flat_map(|p| p.notes(&self.spec.flows[p.flow], end)));
        let messages =
            |w: &WorkloadSpec| matches!(w, WorkloadSpec::ConstantRate { .. } | WorkloadSpec::Replicate { .. });
        let generated = self.spec.flows.iter().any(|f| messages(&f.workload));
        if let Some(late) = self.lateness.quantile(990).filter(|&ns| generated && ns > LATE.0) {
            let late_ms = late as f64 / 1e6;
            notes.push(format!(
                "TRAFFIC: the generator of messages was late by {late_ms:.1} ms (p99); their latency and lag contain \
                 that"
            ));
        }
        notes
    }
}

/// A generator that is later than this, in the 99th percentile, is mentioned.
const LATE: Span = Span::from_millis(1);

/// Descriptors of a flow: sender, listener, receiver, its namespace's counters.
const DESCRIPTORS: u64 = 4;

/// Raises this process' bound on open files, as far as it may, so that `more` can be opened: the usual one of 1024 ends
/// at 250 flows. Where that is not enough, opening says so.
fn allow_descriptors(more: u64) {
    // Descriptors for everything else, with room to spare.
    let wanted = more + 512;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid to write to and to read from.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < wanted {
            limit.rlim_cur = wanted.min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

fn check(stop: &AtomicBool) -> Result<(), KernelError> {
    if stop.load(Ordering::Relaxed) {
        return Err(KernelError::Stopped);
    }
    Ok(())
}
