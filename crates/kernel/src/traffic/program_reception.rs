//! Ends of programs at the receiving host: started, watched, and told of to the sending agent.

use super::ends::EndReport;
use super::far_end::FarCounters;
use super::poll::Poll;
use super::process::{told, Process};
use super::program_connections::{Connections, ServerAt};
use super::record::Record;
use super::report_link::ReportLink;
use crate::clock;
use crate::error::KernelError;
use crate::program_end_plan::ProgramEndPlan;
use crate::remote_plan::ReceivePlan;
use std::io;
use std::os::fd::OwnedFd;
use units::Span;

/// Between two looks at the connections, as at the sender's.
const LOOK: Span = Span::from_millis(10);

/// A program's end at the receiving host.
pub(super) struct ProgramEnd {
    pub flow: usize,
    /// Of the flow.
    name: String,
    plan: ProgramEndPlan,
    connections: Connections,
    server: Option<Process>,
    client: Option<(Process, OwnedFd)>,
    /// Time at which the client begins.
    due_ns: Option<u64>,
    looked_ns: u64,
    /// Bytes and life of the connections that the sending agent knows of.
    told: (u64, bool),
}

impl ProgramEnd {
    fn open(plan: &ReceivePlan, names: &[String]) -> Result<Vec<ProgramEnd>, KernelError> {
        let mut made = vec![];
        for (flow, program) in plan.programs.iter().enumerate() {
            let Some(program) = program else { continue };
            let failed = |(what, error)| KernelError::Flow { flow: names[flow].clone(), what, error };
            let connections = Connections::open(None, plan.peer, program.connections());
            let mut connections = connections.map_err(|error| failed(("sock_diag".to_owned(), error)))?;
            let server =
                program.serves.then(|| connections.serve(&program.name, &program.words, ServerAt::here(program)));
            made.push(ProgramEnd {
                flow,
                name: names[flow].clone(),
                plan: program.clone(),
                connections,
                server: server.transpose().map_err(failed)?,
                client: None,
                due_ns: None,
                looked_ns: 0,
                told: (0, false),
            });
        }
        Ok(made)
    }

    /// Payload that the program has read, bytes, as of the latest look.
    pub fn received(&self) -> u64 {
        self.connections.received()
    }

    /// Counters as of the latest look; None if there never was a connection.
    pub fn counters(&self) -> Option<FarCounters> {
        self.connections.counters()
    }

    /// The receiving end as the kernel had it; None if there never was a connection.
    pub fn end_report(&self) -> Option<EndReport> {
        self.connections.end_report(&self.name)
    }

    fn failed(&self, error: io::Error) -> KernelError {
        KernelError::Flow { flow: self.name.clone(), what: self.plan.name.clone(), error }
    }

    fn start(&mut self) -> io::Result<()> {
        let process = Process::start(&self.plan.words, None, &self.plan.folder, "client")?;
        let end = process.end()?;
        self.client = Some((process, end));
        Ok(())
    }

    /// Record of the client's end; None while it runs.
    fn ended(&mut self) -> io::Result<Option<Record>> {
        let flow = self.flow as u32;
        let Some((client, _)) = &mut self.client else { return Ok(None) };
        let Some(status) = client.ended()? else { return Ok(None) };
        if status.success() {
            return Ok(Some(Record::Ended { flow, at_ns: clock::monotonic_ns() }));
        }
        Ok(Some(Record::Lost { flow, text: told(status, &client.words()) }))
    }
}

/// All of them.
pub(super) struct ProgramEnds(Vec<ProgramEnd>);

impl ProgramEnds {
    /// Starts the servers of `plan`, and waits until they listen.
    ///
    /// # Errors
    /// The flow whose server does not begin to listen; the kernel's.
    pub fn open(plan: &ReceivePlan, names: &[String]) -> Result<ProgramEnds, KernelError> {
        ProgramEnd::open(plan, names).map(ProgramEnds)
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &ProgramEnd> {
        self.0.iter()
    }

    /// The client of a program begins at `at_ns`.
    pub fn begin(&mut self, flow: u32, at_ns: u64) {
        if let Some(program) = self.0.iter_mut().find(|p| p.flow == flow as usize && !p.plan.serves) {
            program.due_ns = Some(at_ns);
        }
    }

    /// Time until something is due, ns.
    pub fn due(&self, now: u64) -> u64 {
        let due = |p: &ProgramEnd| (p.looked_ns + LOOK.0).min(p.due_ns.unwrap_or(u64::MAX)).saturating_sub(now);
        self.0.iter().map(due).min().unwrap_or(u64::MAX)
    }

    /// Starts clients that are due, and looks at the connections when it is time to.
    ///
    /// # Errors
    /// A client is not there; the kernel's.
    pub fn tend(&mut self, now: u64, link: Option<&mut ReportLink>, poll: &Poll) -> Result<(), KernelError> {
        for (number, program) in self.0.iter_mut().enumerate() {
            if program.due_ns.take_if(|due| *due <= now).is_some() {
                program.start().map_err(|error| program.failed(error))?;
                if let Some((_, end)) = &program.client {
                    poll.add_program(end, number).map_err(|error| KernelError::machine("epoll", error))?;
                }
            }
        }
        if self.0.iter().any(|program| program.looked_ns + LOOK.0 <= now) {
            self.look(false, link)?;
        }
        Ok(())
    }

    /// Reads the connections of all programs, unless that may wait and is too early, and tells of what has changed.
    ///
    /// # Errors
    /// The kernel's.
    pub fn look(&mut self, at_once: bool, mut link: Option<&mut ReportLink>) -> Result<(), KernelError> {
        for program in &mut self.0 {
            let live = if at_once { program.connections.look() } else { program.connections.look_at_leisure() };
            let live = live.map_err(|error| KernelError::machine("sock_diag", error))?;
            let (now, flow) = (clock::monotonic_ns(), program.flow as u32);
            program.looked_ns = now;
            let Some(link) = link.as_deref_mut() else { continue };
            let told = (program.received(), live);
            if told.0 != program.told.0 {
                link.queue(&Record::Delivered { flow, bytes: told.0, at_ns: now });
            }
            // The last data goes before the word that no connection is left.
            if told.1 != program.told.1 || (told.0 > 0 && program.told.0 == 0) {
                link.queue(&Record::Talks { flow, live: live.into() });
            }
            program.told = told;
        }
        Ok(())
    }

    /// A client has ended: its last data is told of before.
    ///
    /// # Errors
    /// The kernel's.
    pub fn handle_end(&mut self, number: usize, mut link: Option<&mut ReportLink>) -> Result<(), KernelError> {
        let program = &mut self.0[number];
        let Some(ended) = program.ended().map_err(|error| program.failed(error))? else { return Ok(()) };
        self.look(true, link.as_deref_mut())?;
        if let Some(link) = link {
            link.queue(&ended);
        }
        Ok(())
    }

    /// An error with the words of the servers here, which may be the reason that the other agent has gone.
    pub fn with_words(&self, error: KernelError) -> KernelError {
        let KernelError::Peer(text) = error else { return error };
        let words = self.0.iter().filter_map(|p| Some((p.plan.name.as_str(), p.server.as_ref()?.words())));
        let said =
            words.filter(|(_, words)| !words.is_empty()).map(|(name, words)| format!("; {name}'s server: {words}"));
        KernelError::Peer(text + &said.collect::<String>())
    }
}
