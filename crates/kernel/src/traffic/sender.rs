//! The sending end of a connection, as the workloads write to it.

use super::info::Info;
use super::socket::Socket;
use experiment::SendingEnd;
use std::io;
use std::net::SocketAddr;
use units::{Span, Time};

/// Limit of a write, bytes, so that one flow does not keep the others waiting: half a ms at 5 Gbit/s.
const TURN: u64 = 256 << 10;

/// The state of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectionState {
    /// Not begun.
    Idle,
    /// The SYN is in flight.
    Connecting,
    /// Takes data.
    Open,
    /// The end of the stream was handed over.
    Ended,
    /// Lost.
    Lost,
}

/// A socket that sends.
pub(crate) struct Sender {
    pub socket: Socket,
    pub standing: ConnectionState,
    write_limit: u64,
    written: u64,
    /// The kernel had no room and will say when it has.
    blocked: bool,
    /// The turn was over before the data.
    pub wants_turn: bool,
    /// Error of a write.
    pub error: Option<io::Error>,
    /// The kernel's counters when the connection was made: the SYN and its repetitions, which are no data.
    pub at_start: Info,
}

impl Sender {
    /// `write_limit`: most bytes of a write.
    pub fn new(socket: Socket, write_limit: u64) -> Sender {
        Sender {
            socket,
            standing: ConnectionState::Idle,
            write_limit,
            written: 0,
            blocked: false,
            wants_turn: false,
            error: None,
            at_start: Info::default(),
        }
    }

    /// Begins to connect.
    pub fn connect(&mut self, to: SocketAddr) -> io::Result<()> {
        self.socket.connect(to)?;
        self.standing = ConnectionState::Connecting;
        Ok(())
    }

    /// The socket is writable: the connection was made or failed, or there is room again.
    pub fn handle_writable(&mut self) -> io::Result<()> {
        self.socket.take_error()?;
        self.blocked = false;
        if self.standing == ConnectionState::Connecting {
            self.at_start = self.socket.info()?;
            self.standing = ConnectionState::Open;
        }
        Ok(())
    }

    fn fail(&mut self, error: io::Error) {
        self.error = Some(error);
        self.standing = ConnectionState::Lost;
    }
}

impl SendingEnd for Sender {
    /// Before the connection is made it takes nothing: the workload keeps its data.
    fn write(&mut self, _now: Time, bytes: u64) -> u64 {
        self.wants_turn = false;
        if self.standing != ConnectionState::Open || self.blocked {
            return 0;
        }
        let mut taken = 0;
        while taken < bytes.min(TURN) {
            match self.socket.send((bytes - taken).min(self.write_limit)) {
                Ok(Some(sent)) => taken += sent,
                Ok(None) => {
                    self.blocked = true;
                    break;
                }
                Err(error) => {
                    self.fail(error);
                    break;
                }
            }
        }
        self.wants_turn = self.standing == ConnectionState::Open && !self.blocked && taken < bytes;
        self.written += taken;
        taken
    }

    fn close(&mut self, _now: Time) {
        if self.standing != ConnectionState::Open {
            return;
        }
        match self.socket.shut_down() {
            Ok(()) => self.standing = ConnectionState::Ended,
            Err(error) => self.fail(error),
        }
    }

    /// The kernel gives nothing back that it has taken. A flow that is to stop in the middle has had little unsent data
    /// in the kernel all along (`TCP_NOTSENT_LOWAT`); that little is still sent, and counted as written.
    fn discard_unsent(&mut self, _now: Time) {}

    fn bytes_written(&self) -> u64 {
        self.written
    }

    fn is_established(&self) -> bool {
        self.standing == ConnectionState::Open
    }

    /// Costs a system call. A socket that does not tell, because it is lost, takes nothing either.
    fn unacknowledged(&self) -> u64 {
        self.socket.unacknowledged().unwrap_or(0)
    }

    /// The kernel refuses data beyond its own limit of unsent bytes (`Socket::set_unsent_bound`).
    fn has_room(&self, _unsent: u64) -> bool {
        self.standing == ConnectionState::Open && !self.blocked
    }

    /// Costs a system call.
    fn round_trip(&self) -> Option<Span> {
        let info = self.socket.info().ok()?;
        info.min_rtt_us().map(Span::from_micros)
    }
}
