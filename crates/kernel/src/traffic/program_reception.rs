//! Ends of programs at the receiving host: started, watched, and told of to the sending agent.

use super::ends::EndReport;
use super::far_end::FarCounters;
use super::process::{told, Process};
use super::program_connections::Connections;
use super::reception::Reception;
use super::record::Record;
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
    /// Starts the servers of `plan`, and waits until they listen.
    ///
    /// # Errors
    /// The flow whose server does not begin to listen; the kernel's.
    pub fn open(plan: &ReceivePlan, names: &[String]) -> Result<Vec<ProgramEnd>, KernelError> {
        let mut made = vec![];
        for (flow, program) in plan.programs.iter().enumerate() {
            let Some(program) = program else { continue };
            let failed = |(what, error)| KernelError::Flow { flow: names[flow].clone(), what, error };
            let connections = Connections::open(None, plan.peer, program.connections());
            let mut connections = connections.map_err(|error| failed(("sock_diag".to_owned(), error)))?;
            let server = program
                .serves
                .then(|| connections.serve(&program.name, &program.words, None, &program.folder, program.port()));
            made.push(ProgramEnd {
                flow,
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
    pub fn end_report(&self, name: &str) -> Option<EndReport> {
        self.connections.end_report(name)
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

impl Reception {
    fn failed(&self, flow: usize, what: &str, error: io::Error) -> KernelError {
        KernelError::Flow { flow: self.names[flow].clone(), what: what.to_owned(), error }
    }

    /// The client of a program begins at `at_ns`.
    pub(super) fn begin_program(&mut self, flow: u32, at_ns: u64) {
        if let Some(program) = self.programs.iter_mut().find(|p| p.flow == flow as usize && !p.plan.serves) {
            program.due_ns = Some(at_ns);
        }
    }

    /// Time until something is due for programs, ns.
    pub(super) fn programs_due(&self, now: u64) -> u64 {
        let due = |p: &ProgramEnd| (p.looked_ns + LOOK.0).min(p.due_ns.unwrap_or(u64::MAX)).saturating_sub(now);
        self.programs.iter().map(due).min().unwrap_or(u64::MAX)
    }

    /// Starts clients that are due, and looks at the connections when it is time to.
    pub(super) fn tend_programs(&mut self, now: u64) -> Result<(), KernelError> {
        for number in 0..self.programs.len() {
            let program = &mut self.programs[number];
            if program.due_ns.take_if(|due| *due <= now).is_some() {
                let (flow, name) = (program.flow, program.plan.name.clone());
                program.start().map_err(|error| self.failed(flow, &name, error))?;
                if let Some((_, end)) = &self.programs[number].client {
                    self.poll.add_program(end, number).map_err(|error| KernelError::machine("epoll", error))?;
                }
            }
        }
        if self.programs.iter().any(|program| program.looked_ns + LOOK.0 <= now) {
            self.look_at_programs(false)?;
        }
        Ok(())
    }

    /// Reads the connections of all programs, unless that may wait and is too early, and tells of what has changed.
    pub(super) fn look_at_programs(&mut self, at_once: bool) -> Result<(), KernelError> {
        for program in &mut self.programs {
            let live = if at_once { program.connections.look() } else { program.connections.look_at_leisure() };
            let live = live.map_err(|error| KernelError::machine("sock_diag", error))?;
            let (now, flow) = (clock::monotonic_ns(), program.flow as u32);
            program.looked_ns = now;
            let Some(link) = &mut self.link else { continue };
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

    /// The client of a program has ended: its last data is told of before.
    pub(super) fn handle_program_end(&mut self, number: usize) -> Result<(), KernelError> {
        let program = &mut self.programs[number];
        let (flow, name) = (program.flow, program.plan.name.clone());
        let Some(ended) = program.ended().map_err(|error| self.failed(flow, &name, error))? else { return Ok(()) };
        self.look_at_programs(true)?;
        if let Some(link) = &mut self.link {
            link.queue(&ended);
        }
        Ok(())
    }

    /// An error with the words of the servers here, which may be the reason that the other agent has gone.
    pub(super) fn with_words(&self, error: KernelError) -> KernelError {
        let KernelError::Peer(text) = error else { return error };
        let words = self.programs.iter().filter_map(|p| Some((p.plan.name.as_str(), p.server.as_ref()?.words())));
        let said =
            words.filter(|(_, words)| !words.is_empty()).map(|(name, words)| format!("; {name}'s server: {words}"));
        KernelError::Peer(text + &said.collect::<String>())
    }
}
