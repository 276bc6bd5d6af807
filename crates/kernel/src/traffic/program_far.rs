//! The receiving end of a program's flow: connections of this machine, or another agent's that tells of them.

use super::far_end::FarCounters;
use super::program_connections::Connections;
use std::io;

pub(crate) enum ProgramFarEnd {
    Here(Connections),
    There(Told),
}

/// Knowledge of connections that another agent watches.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Payload that the program there has read, bytes.
    pub received: u64,
    /// A connection lives there.
    pub is_live: bool,
    /// One has come.
    pub came: bool,
    /// At the run's end.
    pub counters: Option<FarCounters>,
}

impl ProgramFarEnd {
    /// Reads the connections again, where they are here; returns true if one lives.
    ///
    /// # Errors
    /// The kernel's.
    pub fn look(&mut self) -> io::Result<bool> {
        match self {
            ProgramFarEnd::Here(connections) => connections.look(),
            ProgramFarEnd::There(told) => Ok(told.is_live),
        }
    }

    /// Payload that the receiving program has read, bytes.
    pub fn received(&self) -> u64 {
        match self {
            ProgramFarEnd::Here(connections) => connections.received(),
            ProgramFarEnd::There(told) => told.counters.map_or(told.received, |counters| counters.bytes),
        }
    }

    /// Returns true once a connection has come.
    pub fn came(&self) -> bool {
        match self {
            ProgramFarEnd::Here(connections) => !connections.is_empty(),
            ProgramFarEnd::There(told) => told.came,
        }
    }

    /// Its counters; None if there never was a connection.
    pub fn counters(&self) -> Option<FarCounters> {
        match self {
            ProgramFarEnd::Here(connections) => connections.counters(),
            ProgramFarEnd::There(told) => told.counters,
        }
    }

    /// Knowledge of another agent's end; None where it is here.
    pub fn told(&mut self) -> Option<&mut Told> {
        match self {
            ProgramFarEnd::Here(_) => None,
            ProgramFarEnd::There(told) => Some(told),
        }
    }
}
