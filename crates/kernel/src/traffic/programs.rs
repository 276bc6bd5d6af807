//! Events of flows that programs carry.

use super::socket::Failed;
use super::Traffic;
use crate::error::KernelError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use units::Time;

impl Traffic<'_> {
    pub(super) fn start_program(&mut self, number: usize) -> Result<(), KernelError> {
        let program = &mut self.programs[number];
        let flow = program.flow;
        let started = program.start().and_then(|end| match end {
            Some(end) => self.poll.add_program(end, number).map_err(|error| ("waiting for its end".to_owned(), error)),
            None => Ok(()),
        });
        started.map_err(|failed| self.failed(flow, failed))
    }

    pub(super) fn handle_program_end(&mut self, now: Time, number: usize) -> Result<(), KernelError> {
        let program = &mut self.programs[number];
        let flow = program.flow;
        program.handle_end(now).map_err(|failed| self.failed(flow, failed))
    }

    /// Reads the progress of all of them.
    pub(super) fn look_at_programs(&mut self, now: Time, progress: &Arc<[AtomicU64]>) -> Result<(), KernelError> {
        let mut done = 0;
        let mut looked = Ok(());
        for program in self.programs.iter_mut().filter(|p| p.is_alive()) {
            looked = looked.and_then(|()| program.look(now).map_err(|failed| (program.flow, failed)));
            progress[program.flow].store(program.received(), Ordering::Relaxed);
            done += usize::from(program.is_done());
        }
        self.unfinished -= done;
        looked.map_err(|(flow, failed)| self.failed(flow, failed))
    }

    pub(super) fn failed(&self, flow: usize, (what, error): Failed) -> KernelError {
        KernelError::Flow { flow: self.spec.flows[flow].name.clone(), what, error }
    }
}
