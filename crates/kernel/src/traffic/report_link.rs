//! The connection of reports, at either end: records in and out, without blocking.

use super::record::Record;
use super::socket::Socket;
use crate::clock;
use std::io;
use units::Span;

/// Bytes of one read.
const PIECE: usize = 64 << 10;

/// Time without a word from the other agent, which speaks every second, after which it counts as gone.
pub(crate) const SILENCE: Span = Span::from_secs(10);

/// Between two pings.
pub(crate) const PING_INTERVAL: Span = Span::from_secs(1);

pub(crate) struct ReportLink {
    socket: Socket,
    received: Vec<u8>,
    to_send: Vec<u8>,
    /// CLOCK_MONOTONIC when the other agent was heard last, ns.
    heard_ns: u64,
}

impl ReportLink {
    /// Over `socket`, which is connected and has shown or seen the preamble.
    pub fn new(socket: Socket) -> ReportLink {
        ReportLink { socket, received: vec![], to_send: vec![], heard_ns: clock::monotonic_ns() }
    }

    /// The connection, to wait on.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Puts a record behind those that wait; [`ReportLink::flush`] sends them.
    pub fn queue(&mut self, record: &Record) {
        record.write(&mut self.to_send);
    }

    /// Bytes that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.to_send.len()
    }

    /// Sends what waits, as far as there is room.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.to_send.len() {
            match self.socket.send_bytes(&self.to_send[sent..])? {
                0 => break,
                more => sent += more,
            }
        }
        self.to_send.drain(..sent);
        Ok(())
    }

    /// Takes what has come into `records`. False at the connection's end.
    ///
    /// # Errors
    /// The connection is lost; the bytes are no records.
    pub fn take(&mut self, records: &mut Vec<Record>) -> io::Result<bool> {
        let mut goes_on = true;
        loop {
            let begin = self.received.len();
            self.received.resize(begin + PIECE, 0);
            let got = self.socket.read(&mut self.received[begin..]);
            self.received.truncate(begin + got.as_ref().map_or(0, |got| got.unwrap_or(0)));
            match got? {
                None => break,
                Some(0) => {
                    goes_on = false;
                    break;
                }
                Some(_) => self.heard_ns = clock::monotonic_ns(),
            }
        }
        let mut read = 0;
        while let Some((record, length)) = Record::parse(&self.received[read..]).map_err(io::Error::other)? {
            records.push(record);
            read += length;
        }
        self.received.drain(..read);
        Ok(goes_on)
    }

    /// Returns true if nothing has come for too long.
    pub fn is_silent(&self) -> bool {
        clock::monotonic_ns().saturating_sub(self.heard_ns) > SILENCE.0
    }
}
