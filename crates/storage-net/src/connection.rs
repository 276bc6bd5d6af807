//! One connection: bytes between its socket and the core, operations on the file.

use crate::adaptive_poll::AdaptivePoll;
use crate::clock;
use crate::pdu_reader::{NextPdu, PduReader};
use crate::shared::{ready_connections, Shared};
use crate::waker::Waker;
use std::io::{self, IoSlice, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use storage::iscsi::{ConnectionId, Work};
use units::Span;
use wire::iscsi::Outgoing;

/// Bytes that wait for the socket, above which no more PDUs are made.
const OUT_BYTES: usize = 1 << 20;
/// Longest wait: a connection that a timeout of the core closes notices it by then.
const WAIT_MS: i64 = 1000;
/// Longest time for a closing connection to send its queue.
const CLOSE_TIMEOUT: Span = Span::from_secs(5);
/// Slices of one writev.
const SLICES: usize = 32;
/// Most operations taken at once.
const BATCH: usize = 16;

/// The outcome of a step.
#[derive(PartialEq)]
enum Step {
    Progress,
    Idle,
}

struct Connection<'a> {
    shared: &'a Shared,
    id: ConnectionId,
    socket: &'a TcpStream,
    reader: PduReader,
    outgoing: Outgoing,
    /// Bytes sent and not yet reported to the core.
    sent: u64,
}

/// Serves a connection to its end; returns the reason of the end.
pub(crate) fn run(shared: &Shared, id: ConnectionId, socket: &TcpStream, waker: &Waker) -> String {
    let (reader, outgoing) = (PduReader::default(), Outgoing::default());
    let mut connection = Connection { shared, id, socket, reader, outgoing, sent: 0 };
    let mut last_progress = clock::now();
    let mut poll = AdaptivePoll::default();
    loop {
        if shared.stop.load(Ordering::Relaxed) {
            return "the target was stopped".to_owned();
        }
        match connection.step() {
            Ok(Step::Progress) => last_progress = clock::now(),
            Ok(Step::Idle) => {
                if clock::now().since(last_progress) > CLOSE_TIMEOUT && shared.target().is_closing(id) {
                    return "it was to be closed, and took no more data".to_owned();
                }
                let read = shared.target().takes_input(id);
                let write = !connection.outgoing.is_empty();
                poll.wait(&shared.spinners, waker, socket.as_fd(), read, write, WAIT_MS);
            }
            Err(why) => return why,
        }
    }
}

impl Connection<'_> {
    fn step(&mut self) -> Result<Step, String> {
        let mut progress = self.work();
        progress |= self.collect()?;
        progress |= self.write()?;
        progress |= self.read()?;
        Ok(if progress { Step::Progress } else { Step::Idle })
    }

    /// Performs the core's operations on the medium, outside of its lock, or hands them to I/O threads.
    fn work(&self) -> bool {
        let mut any = false;
        loop {
            let batch: Vec<Work> = {
                let mut target = self.shared.target();
                std::iter::from_fn(|| target.poll_work()).take(BATCH).collect()
            };
            if batch.is_empty() {
                return any;
            }
            any = true;
            for work in batch {
                let Some((id, outcome)) = self.shared.begin(work) else { continue };
                let ready = {
                    let mut target = self.shared.target();
                    target.handle_work(id, outcome);
                    ready_connections(&mut target)
                };
                self.shared.wake(&ready, Some(self.id));
            }
        }
    }

    /// Takes PDUs to send from the core.
    fn collect(&mut self) -> Result<bool, String> {
        let mut target = self.shared.target();
        let mut any = false;
        if self.sent > 0 {
            target.handle_sent(clock::now(), self.id, std::mem::take(&mut self.sent));
        }
        while self.outgoing.len() < OUT_BYTES {
            let Some(outbound) = target.poll_pdu(self.id) else { break };
            self.outgoing.push(&outbound.framing, &outbound.pdu);
            any = true;
        }
        if self.outgoing.is_empty() || target.is_aborted(self.id) {
            if let Some(why) = target.poll_close(self.id) {
                return Err(why.to_owned());
            }
        }
        // Sent data made room for waiting commands.
        let ready = ready_connections(&mut target);
        drop(target);
        self.shared.wake(&ready, Some(self.id));
        Ok(any)
    }

    fn write(&mut self) -> Result<bool, String> {
        let mut any = false;
        while !self.outgoing.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.outgoing.slices(&mut slices);
            match (&mut &*self.socket).write_vectored(&slices[..count]) {
                Ok(sent) => {
                    self.outgoing.consume(sent);
                    self.sent += sent as u64;
                    any = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(any)
    }

    fn read(&mut self) -> Result<bool, String> {
        if !self.shared.target().takes_input(self.id) {
            return Ok(false);
        }
        let got = match self.reader.receive(self.socket) {
            Ok(0) => return Err("the initiator closed the connection".to_owned()),
            Ok(got) => got,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(false);
            }
            Err(error) => return Err(error.to_string()),
        };
        let mut target = self.shared.target();
        let now = clock::now();
        target.handle_received(now, self.id, got as u64);
        loop {
            // Digests and limits change with the PDU that ends the login.
            let framing = target.framing(self.id);
            match self.reader.next(&framing).map_err(|error| error.to_string())? {
                NextPdu::Complete(received) if received.intact => target.handle_pdu(now, self.id, received.pdu),
                NextPdu::Complete(received) => target.handle_damaged(now, self.id, &received.pdu),
                NextPdu::LargeHeader(header, bytes) => match target.handle_head(self.id, &header, bytes)? {
                    true => self.reader.take(&framing),
                    false => self.reader.skip(&framing),
                },
                NextPdu::Incomplete => break,
            }
        }
        let ready = ready_connections(&mut target);
        drop(target);
        self.shared.wake(&ready, Some(self.id));
        Ok(true)
    }
}
