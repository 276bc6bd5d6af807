//! Traffic whose receivers another agent has: its reports take the place of this process's own reads.

use super::connection::Connection;
use super::far_end::{FarCounters, FarEnd};
use super::poll::Poll;
use super::program::Program;
use super::record::{Preamble, Record};
use super::remote::{gone, no_answer, Remote, EXCHANGES, EXCHANGES_LEAST, EXCHANGES_LONGEST};
use super::report_link::{PING_INTERVAL, SILENCE};
use super::sender::ConnectionState;
use super::{allow_descriptors, Traffic, DESCRIPTORS};
use crate::clock::{self, Clock};
use crate::error::KernelError;
use crate::remote_plan::SendPlan;
use experiment::{Applications, ValidRun};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use units::{Time, NS_PER_S};

impl<'a> Traffic<'a> {
    /// Makes the sending sockets of all flows; the receivers are those of `remote`.
    ///
    /// # Errors
    /// The flow's socket or option that the kernel refused, or the file of its workload that cannot be read.
    pub fn to_remote(run: ValidRun<'a>, plan: &SendPlan, remote: Remote) -> Result<Traffic<'a>, KernelError> {
        let spec = run.spec();
        allow_descriptors(spec.flows.len() as u64 * DESCRIPTORS);
        let mut applications = Applications::new(run)?;
        let mut connections = vec![];
        let poll = Poll::new().map_err(|e| KernelError::machine("epoll", e))?;
        let mut programs = vec![];
        for (index, flow) in spec.flows.iter().enumerate() {
            let failed = |(what, error)| KernelError::Flow { flow: flow.name.clone(), what, error };
            if let Some(program) = &plan.programs[index] {
                programs.push(Program::to_remote(spec, plan, index, program).map_err(failed)?);
                continue;
            }
            let workload = applications.build(index, flow)?;
            let (sockets, port) = (&plan.flows[index], plan.ports[index]);
            let to = SocketAddr::new(plan.peer, port);
            let preamble = Preamble::Flow(index as u32).to_bytes(plan.token);
            let made = Connection::to_remote(spec, index, plan.local, to, sockets, preamble, workload);
            connections.push(made.map_err(failed)?);
        }
        poll.add_report(remote.link.socket()).map_err(|e| KernelError::machine("epoll", e))?;
        let traffic = Traffic::of(spec, connections, applications.into_stripes(), programs, poll);
        Ok(Traffic { remote: Some(remote), ..traffic })
    }

    /// Tells the other agent when the run of `clock` measures and ends.
    pub fn announce(&mut self, clock: Clock) {
        let spec = self.spec;
        let Some(remote) = &mut self.remote else { return };
        let there = |time: u64| remote.clock.there(clock.monotonic_ns_at(Time(time)));
        let (warmup_ns, end_ns) = (there(spec.measure.warmup_ns), there(spec.duration_ns));
        remote.link.queue(&Record::Times { warmup_ns, end_ns });
        for program in self.programs.iter().filter(|program| program.is_fetched()) {
            let at_ns = there(spec.flows[program.flow].start_ns);
            remote.link.queue(&Record::Begin { flow: program.flow as u32, at_ns });
        }
    }

    /// Returns true if another agent has the client of a program.
    pub fn fetches(&self) -> bool {
        self.programs.iter().any(Program::is_fetched)
    }

    /// Finds a port that nothing has reached, though it was tried for long: what another port does tells nothing of it.
    ///
    /// # Errors
    /// There is one.
    pub(super) fn check_ports(&self, now: Time) -> Result<(), KernelError> {
        let Some(remote) = &self.remote else { return Ok(()) };
        let waits = |c: &&Connection| c.sender.standing == ConnectionState::Connecting;
        for late in self.connections.iter().filter(waits).filter(|c| now.since(c.connecting_since) > remote.connect) {
            // A SYN may be lost three times; a port that has answered once is open.
            if !self.connections.iter().any(|other| other.to == late.to && other.far.came()) {
                return Err(no_answer(remote.local, late.to, remote.connect.as_secs_f64()));
            }
        }
        Ok(())
    }

    /// The end of the run: now; when all data had arrived before it, and a report took its time, when it had.
    pub(super) fn end(&self, clock: Clock) -> Time {
        let now = clock.now();
        if self.remote.is_none() || !self.is_done() {
            return now;
        }
        let own = self.connections.iter().filter_map(|c| c.workload.done_at);
        own.chain(self.programs.iter().filter_map(|p| p.workload.done_at)).max().unwrap_or(now)
    }

    /// Takes the reports that have come.
    pub(super) fn handle_reports(&mut self, clock: Clock, progress: &Arc<[AtomicU64]>) -> Result<(), KernelError> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        let mut records = vec![];
        let taken = remote.link.take(&mut records);
        for record in records {
            self.handle_report(clock, record, progress)?;
        }
        let said_bye = self.remote.as_ref().is_some_and(|remote| remote.said_bye);
        match taken {
            _ if said_bye => Ok(()),
            Ok(true) => Ok(()),
            Ok(false) => Err(KernelError::Peer("the other agent has gone: it closed the connection of reports".into())),
            Err(error) => Err(gone(error)),
        }
    }

    fn handle_report(&mut self, clock: Clock, record: Record, progress: &Arc<[AtomicU64]>) -> Result<(), KernelError> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        match record {
            Record::Pong { sent_ns, at_ns } => remote.note_pong(sent_ns, at_ns),
            Record::Bye => remote.said_bye = true,
            Record::Failed { text } => return Err(KernelError::Peer(text)),
            Record::Counters { text } => {
                let all: Vec<Option<FarCounters>> = serde_json::from_str(&text)
                    .map_err(|error| KernelError::Peer(format!("the other agent's counters: {error}")))?;
                remote.counted = true;
                for connection in &mut self.connections {
                    if let FarEnd::Remote { counters, .. } = &mut connection.far {
                        *counters = all.get(connection.flow).copied().flatten();
                    }
                }
                for program in &mut self.programs {
                    let flow = program.flow;
                    if let Some(told) = program.told() {
                        told.counters = all.get(flow).copied().flatten();
                    }
                }
            }
            Record::Came { flow }
            | Record::Delivered { flow, .. }
            | Record::AtWarmup { flow, .. }
            | Record::Lost { flow, .. }
            | Record::Talks { flow, .. }
            | Record::Ended { flow, .. } => {
                let flow = flow as usize;
                if let Ok(place) = self.connections.binary_search_by_key(&flow, |connection| connection.flow) {
                    return self.handle_report_of_connection(clock, place, record, progress);
                }
                if let Some(place) = self.programs.iter().position(|program| program.flow == flow) {
                    return self.handle_report_of_program(clock, place, record, progress);
                }
            }
            // Of a sender.
            Record::Ping { .. } | Record::Times { .. } | Record::Count | Record::Finish | Record::Begin { .. } => {}
        }
        Ok(())
    }

    fn handle_report_of_connection(
        &mut self,
        clock: Clock,
        place: usize,
        record: Record,
        progress: &Arc<[AtomicU64]>,
    ) -> Result<(), KernelError> {
        let Some(remote) = &self.remote else { return Ok(()) };
        let connection = &mut self.connections[place];
        match record {
            Record::Came { .. } => {
                if let FarEnd::Remote { came, .. } = &mut connection.far {
                    *came = true;
                }
            }
            Record::Delivered { bytes, at_ns, .. } if connection.received < bytes => {
                let at = clock.at_monotonic_ns(remote.clock.here(at_ns)).min(clock.now());
                connection.received = bytes;
                progress[connection.flow].store(bytes, Ordering::Relaxed);
                self.note_delivered(at, place)?;
            }
            Record::AtWarmup { bytes, .. } => connection.received_at_warmup = bytes,
            Record::Lost { text, .. } => connection.lose(io::Error::other(format!("at the receiver: {text}"))),
            _ => {}
        }
        Ok(())
    }

    fn handle_report_of_program(
        &mut self,
        clock: Clock,
        place: usize,
        record: Record,
        progress: &Arc<[AtomicU64]>,
    ) -> Result<(), KernelError> {
        let Some(remote) = &self.remote else { return Ok(()) };
        let program = &mut self.programs[place];
        let flow = program.flow;
        match record {
            Record::Delivered { bytes, .. } => {
                if let Some(told) = program.told() {
                    told.received = told.received.max(bytes);
                }
                progress[flow].store(program.received(), Ordering::Relaxed);
            }
            Record::Talks { live, .. } => {
                if let Some(told) = program.told() {
                    (told.is_live, told.came) = (live > 0, true);
                }
            }
            Record::AtWarmup { bytes, .. } => program.received_at_warmup = bytes,
            Record::Ended { at_ns, .. } => {
                let at = clock.at_monotonic_ns(remote.clock.here(at_ns)).min(clock.now());
                program.note_end(at);
            }
            Record::Lost { text, .. } => {
                let failed = program.failed_there(format!("at the receiver: {text}"));
                return Err(self.failed(flow, failed));
            }
            _ => {}
        }
        Ok(())
    }

    /// Sends what waits for the other agent, and finds out whether it is still there.
    pub(super) fn tend_remote(&mut self, _clock: Clock) -> Result<(), KernelError> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        if remote.said_bye {
            return Ok(());
        }
        if clock::monotonic_ns().saturating_sub(remote.pinged_ns) > PING_INTERVAL.0 {
            remote.ping();
        }
        if remote.link.is_silent() {
            let seconds = SILENCE.0 / NS_PER_S;
            return Err(KernelError::Peer(format!("the other agent has not been heard for {seconds} s")));
        }
        remote.link.flush().map_err(gone)
    }

    /// Asks the other agent for its counters at the run's end, and waits for them.
    pub(super) fn count_remotely(
        &mut self,
        end: Time,
        clock: Clock,
        progress: &Arc<[AtomicU64]>,
        stop: &AtomicBool,
    ) -> Result<(), KernelError> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        remote.link.queue(&Record::Count);
        remote.ends = vec![None; self.spec.flows.len()];
        for connection in &mut self.connections {
            connection.note_end();
            let name = &self.spec.flows[connection.flow].name;
            let told = connection.far.came().then(|| connection.end_report(name).ok().flatten()).flatten();
            remote.ends[connection.flow] = told;
        }
        for program in &mut self.programs {
            let report = program.end_report(&self.spec.flows[program.flow].name);
            remote.ends[program.flow] = report.map_err(|error| KernelError::machine("sock_diag", error))?;
        }
        self.stop_applications(end)?;
        let mut events = vec![];
        while !self.remote.as_ref().is_some_and(|remote| remote.counted) {
            self.turn(clock, Time::NEVER, progress, stop, &mut events)?;
        }
        Ok(())
    }

    /// Compares the clocks once more, and takes leave of the other agent.
    pub(super) fn finish_remotely(
        &mut self,
        clock: Clock,
        progress: &Arc<[AtomicU64]>,
        stop: &AtomicBool,
    ) -> Result<(), KernelError> {
        let (mut events, began) = (vec![], clock.now());
        let Some(remote) = &mut self.remote else { return Ok(()) };
        remote.over = true;
        for exchange in 1..=EXCHANGES {
            let Some(remote) = &mut self.remote else { return Ok(()) };
            if clock.now().since(began) > EXCHANGES_LONGEST && remote.after.exchanges >= EXCHANGES_LEAST {
                break;
            }
            remote.ping();
            while self.remote.as_ref().is_some_and(|remote| remote.after.exchanges < exchange) {
                self.turn(clock, Time::NEVER, progress, stop, &mut events)?;
            }
        }
        if let Some(remote) = &mut self.remote {
            remote.link.queue(&Record::Finish);
        }
        while self.remote.as_ref().is_some_and(|remote| !remote.said_bye) {
            self.turn(clock, Time::NEVER, progress, stop, &mut events)?;
        }
        Ok(())
    }
}
