//! The receiving end of a program's flow: connections of this machine, what a program over UDP has written here, or
//! another agent's connections that tells of them.

use super::far_end::FarCounters;
use super::program_connections::Connections;
use super::written::Written;
use std::io;

pub(crate) enum ProgramFarEnd {
    Here(Connections),
    /// Its data goes over UDP.
    Written(Written),
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
    /// Reads the connections again, where they are here; returns true if one lives. Without connections none does.
    ///
    /// # Errors
    /// The kernel's.
    pub fn look(&mut self) -> io::Result<bool> {
        match self {
            ProgramFarEnd::Here(connections) => connections.look(),
            ProgramFarEnd::Written(written) => written.look().map(|()| false),
            ProgramFarEnd::There(told) => Ok(told.is_live),
        }
    }

    /// Payload that the receiving program has read, bytes.
    pub fn received(&self) -> u64 {
        match self {
            ProgramFarEnd::Here(connections) => connections.received(),
            ProgramFarEnd::Written(written) => written.bytes(),
            ProgramFarEnd::There(told) => told.counters.map_or(told.received, |counters| counters.bytes),
        }
    }

    /// Returns true once a connection has come, or data without one.
    pub fn came(&self) -> bool {
        match self {
            ProgramFarEnd::Here(connections) => !connections.is_empty(),
            ProgramFarEnd::Written(written) => written.bytes() > 0,
            ProgramFarEnd::There(told) => told.came,
        }
    }

    /// Its counters; None if there never was a connection.
    pub fn counters(&self) -> Option<FarCounters> {
        match self {
            ProgramFarEnd::Here(connections) => connections.counters(),
            ProgramFarEnd::Written(_) => None,
            ProgramFarEnd::There(told) => told.counters,
        }
    }

    /// Returns true if there are no connections to see: the data goes over UDP.
    pub fn is_over_udp(&self) -> bool {
        matches!(self, ProgramFarEnd::Written(_))
    }

    /// Knowledge of another agent's end; None where it is here.
    pub fn told(&mut self) -> Option<&mut Told> {
        match self {
            ProgramFarEnd::Here(_) | ProgramFarEnd::Written(_) => None,
            ProgramFarEnd::There(told) => Some(told),
        }
    }
}
