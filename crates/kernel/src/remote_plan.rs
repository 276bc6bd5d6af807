//! The plan of one end of a run between two hosts.

use crate::program_end_plan::ProgramEndPlan;
use crate::socket_plan::SocketPlan;
use crate::token::Token;
use std::net::IpAddr;
use units::Span;

/// Of the host that receives.
#[derive(Clone, Debug)]
pub struct ReceivePlan {
    /// Own address, to listen on.
    pub local: IpAddr,
    /// Address that connections may come from.
    pub peer: IpAddr,
    /// First and last port to listen on; zeroes: the kernel chooses.
    pub ports: [u16; 2],
    /// Secret of the run.
    pub token: Token,
    /// Options of the receiving socket of each flow.
    pub flows: Vec<SocketPlan>,
    /// The program's end here of each flow that one carries.
    pub programs: Vec<Option<ProgramEndPlan>>,
    /// Time in which the sending agent has to come.
    pub connect: Span,
}

/// Of the host that sends.
#[derive(Clone, Debug)]
pub struct SendPlan {
    /// Own address, to connect from.
    pub local: IpAddr,
    /// Address of the receiving host.
    pub peer: IpAddr,
    /// Port of the connection of reports.
    pub report_port: u16,
    /// Port of each flow.
    pub ports: Vec<u16>,
    /// Secret of the run.
    pub token: Token,
    /// Options of the sending socket of each flow.
    pub flows: Vec<SocketPlan>,
    /// The program's end here of each flow that one carries.
    pub programs: Vec<Option<ProgramEndPlan>>,
    /// Time in which the connection of reports has to be made.
    pub connect: Span,
}
