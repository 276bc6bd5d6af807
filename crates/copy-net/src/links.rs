//! Connections of a session: made or taken, shown to have the token, and handed to those who use them.

use crate::error::{CopyError, ErrorKind};
use crate::handshakes::{Handshake, Handshakes, HANDSHAKE};
use crate::session::{lock, wait, CpuCount, Session, GLANCE};
use crate::transport::{Connection, Dialer, Incoming, Listener};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, OnceLock};
use std::thread::Scope;
use std::time::Duration;

/// Token, kind, session, stream: the first bytes of a connection.
const GREETING_BYTES: usize = 32 + 1 + 8 + 4;
/// The answer to the first bytes of a connection for messages, and to a wrong token.
const ACCEPTED: u8 = 1;
const REFUSED: u8 = 0;
/// Data streams of one copy (`EndSpec::streams`).
pub(crate) const STREAMS_MAX: u32 = 256;
/// Between attempts to make a stream: doubled up to the second.
const RETRY_MS: (u64, u64) = (100, 2000);

/// User of data streams.
pub(crate) trait StreamUser: Sync {
    /// Runs a stream until it is lost or the copy is over.
    fn run_stream(&self, id: u32, connection: Connection);
}

/// Greeting of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Greeting {
    is_data: bool,
    session: u64,
    stream: u32,
}

impl Greeting {
    /// Sends it, with the first bytes after it.
    fn send(self, token: &[u8; 32], first: &[u8], writer: &mut dyn Write) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(GREETING_BYTES + first.len());
        bytes.extend_from_slice(token);
        bytes.push(u8::from(self.is_data));
        bytes.extend_from_slice(&self.session.to_be_bytes());
        bytes.extend_from_slice(&self.stream.to_be_bytes());
        bytes.extend_from_slice(first);
        writer.write_all(&bytes)?;
        writer.flush()
    }

    /// None: the token is wrong. The comparison takes the same time wherever they differ.
    fn receive(token: &[u8; 32], reader: &mut dyn Read) -> io::Result<Option<Greeting>> {
        let mut bytes = [0; GREETING_BYTES];
        reader.read_exact(&mut bytes)?;
        let difference = bytes.iter().zip(token).fold(0_u8, |sum, (a, b)| sum | (a ^ b));
        if std::hint::black_box(difference) != 0 || bytes[32] > 1 {
            return Ok(None);
        }
        let mut session = [0; 8];
        session.copy_from_slice(&bytes[33..41]);
        let mut stream = [0; 4];
        stream.copy_from_slice(&bytes[41..]);
        Ok(Some(Greeting {
            is_data: bytes[32] == 1,
            session: u64::from_be_bytes(session),
            stream: u32::from_be_bytes(stream),
        }))
    }
}

/// State that all connections of a session share.
pub(crate) struct Links {
    pub token: [u8; 32],
    pub peer: Option<IpAddr>,
    /// Data streams that should be open; the connecting end makes them.
    pub wanted: AtomicU32,
    /// Streams that are open or being made.
    alive: AtomicU32,
    next_stream: AtomicU32,
    session: AtomicU64,
    has_control: Mutex<bool>,
    /// Numbers of data streams that came: each is used once.
    came: Mutex<BTreeSet<u32>>,
    handshakes: Handshakes,
    /// Streams that could not be made, in a row.
    failures: AtomicU32,
    changed: (Mutex<()>, Condvar),
}

impl Links {
    pub fn new(token: [u8; 32], peer: Option<IpAddr>, streams: u32) -> Links {
        Links {
            token,
            peer: peer.map(|peer| peer.to_canonical()),
            wanted: AtomicU32::new(streams),
            alive: AtomicU32::new(0),
            next_stream: AtomicU32::new(0),
            session: AtomicU64::new(0),
            has_control: Mutex::new(false),
            came: Mutex::new(BTreeSet::new()),
            handshakes: Handshakes::new(),
            failures: AtomicU32::new(0),
            changed: (Mutex::new(()), Condvar::new()),
        }
    }

    /// Another number of streams.
    pub fn want(&self, streams: u32) {
        self.wanted.store(streams.clamp(1, STREAMS_MAX), Relaxed);
        self.changed.1.notify_all();
    }

    /// Connections without the token that were refused.
    pub fn refused(&self) -> u64 {
        self.handshakes.refused()
    }

    /// Takes connections until the copy is over, and then closes those in a handshake.
    pub fn accept<'scope, 'env: 'scope, U: StreamUser + Send>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        session: &'env Session,
        listener: &'env dyn Listener,
        user: &'env OnceLock<U>,
        control: SyncSender<Connection>,
    ) {
        self.accept_all(scope, session, listener, user, &control);
        self.handshakes.close();
    }

    fn accept_all<'scope, 'env: 'scope, U: StreamUser + Send>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        session: &'env Session,
        listener: &'env dyn Listener,
        user: &'env OnceLock<U>,
        control: &SyncSender<Connection>,
    ) {
        while !session.is_over() {
            self.handshakes.handle_timeout();
            if !self.handshakes.has_room() {
                continue;
            }
            let incoming = match listener.next(GLANCE) {
                Ok(Some(incoming)) => incoming,
                Ok(None) => continue,
                Err(error) => {
                    session
                        .fail(CopyError { kind: ErrorKind::Port, text: format!("the port cannot be used: {error}") });
                    return;
                }
            };
            // Dropped, and so closed, without an answer.
            if self.peer.is_some_and(|peer| peer != incoming.peer()) {
                self.handshakes.count_refused();
                continue;
            }
            if self.alive.load(Relaxed) > STREAMS_MAX {
                continue;
            }
            let handshake = self.handshakes.begin(incoming.peer(), incoming.handle());
            let control = control.clone();
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
                let _cpu = CpuCount(session);
                match self.greeted(session, incoming, handshake) {
                    Some((greeting, connection)) if greeting.is_data => match self.met(session, user) {
                        Some(user) => self.run(session, user, greeting.stream, connection),
                        // The copy is over.
                        None => connection.handle.close(),
                    },
                    Some((_, connection)) => {
                        let _ = control.try_send(connection);
                    }
                    None => {}
                }
            });
            // Out of threads or memory: the connection is closed, and the other end makes another.
            if thread.is_err() {
                session.wait_over(GLANCE);
            }
        }
    }

    /// The user of data streams. The other end may make the first ones a moment before this end has it.
    fn met<'a, U>(&self, session: &Session, user: &'a OnceLock<U>) -> Option<&'a U> {
        while user.get().is_none() && !session.is_over() {
            drop(wait(&self.changed.1, lock(&self.changed.0), Duration::from_millis(1)));
        }
        user.get()
    }

    /// Handshake and greeting of an incoming connection. The failure of a handshake is never an error of the copy: any
    /// host that reaches the port can cause it.
    fn greeted(
        &self,
        session: &Session,
        incoming: Box<dyn Incoming>,
        handshake: Handshake<'_>,
    ) -> Option<(Greeting, Connection)> {
        let greeted = self.greet(incoming, &handshake);
        if let Err(is_stranger) = greeted {
            // A connection that its peer closed may be the other end's, which needs it no more.
            if !session.is_over() && (is_stranger || !handshake.is_pending()) {
                self.handshakes.count_refused();
            }
        }
        let greeted = greeted.ok();
        let (greeting, mut connection) = greeted?;
        let is_right = if greeting.is_data {
            // A second stream of the same number would take the place of the first, which nobody could close any more.
            *lock(&self.has_control)
                && greeting.session == self.session.load(Relaxed)
                && lock(&self.came).insert(greeting.stream)
        } else {
            let mut has_control = lock(&self.has_control);
            let is_first = !*has_control;
            if is_first {
                self.session.store(greeting.session, Relaxed);
                *has_control = true;
            }
            is_first
        };
        if !is_right {
            connection.handle.close();
            return None;
        }
        connection.handle.trust();
        if !greeting.is_data {
            // A connection that is lost by now fails at its first message.
            let _ = connection.writer.write_all(&[ACCEPTED]).and_then(|()| connection.writer.flush());
        }
        Some((greeting, connection))
    }

    /// The handshake of TLS or QUIC, and the token. An error: it failed, or another connection took its place; true if
    /// the peer is certainly not the other end.
    fn greet(&self, incoming: Box<dyn Incoming>, handshake: &Handshake<'_>) -> Result<(Greeting, Connection), bool> {
        let accepted = incoming.accept(Duration::from_nanos(HANDSHAKE.0));
        let mut connection = accepted.map_err(|error| error.kind() == io::ErrorKind::InvalidData)?;
        if let Some(greeting) = Greeting::receive(&self.token, &mut connection.reader).map_err(|_| false)? {
            return if handshake.authenticate() { Ok((greeting, connection)) } else { Err(false) };
        }
        handshake.refuse();
        // The peer closes once it has read the answer; closed earlier, TCP would reset and lose it.
        let _ = connection.writer.write_all(&[REFUSED]).and_then(|()| connection.writer.flush());
        while matches!(connection.reader.read(&mut [0; 4096]), Ok(1..)) {}
        Err(true)
    }

    fn run(&self, session: &Session, user: &dyn StreamUser, id: u32, connection: Connection) {
        self.alive.fetch_add(1, Relaxed);
        user.run_stream(id, connection);
        self.alive.fetch_sub(1, Relaxed);
        session.remove_stream(id);
        self.changed.1.notify_all();
    }

    /// Makes the connection for messages; `first` follows the greeting. None: the other end refuses the token.
    ///
    /// # Errors
    /// `InvalidData`: another certificate. Others: network, or the other end closed the connection before it had read
    /// the token, since too many strangers connect to its port.
    pub fn connect_control(
        &self,
        session: &Session,
        dialer: &dyn Dialer,
        session_id: u64,
        first: &[u8],
        time: Duration,
    ) -> io::Result<Option<Connection>> {
        let end_ns = path_net::monotonic_ns() + time.as_nanos() as u64;
        self.session.store(session_id, Relaxed);
        let mut connection = dialer.connect(time)?;
        let greeting = Greeting { is_data: false, session: session_id, stream: 0 };
        let deadline = Deadline { session, handle: connection.handle.clone(), end_ns, met: Default::default() };
        let mut answer = [REFUSED];
        let answered = std::thread::scope(|scope| {
            scope.spawn(|| deadline.watch());
            let answered = greeting
                .send(&self.token, first, &mut connection.writer)
                .and_then(|()| connection.reader.read_exact(&mut answer));
            deadline.met();
            answered
        });
        answered.map_err(|error| {
            io::Error::new(
                io::ErrorKind::ConnectionAborted,
                format!("the other end closed the connection before it had read the token: {error}"),
            )
        })?;
        if answer[0] != ACCEPTED {
            connection.handle.close();
            return Ok(None);
        }
        Ok(Some(connection))
    }

    /// Keeps as many streams open as are wanted, until the copy is over.
    pub fn keep<'scope, 'env: 'scope, U: StreamUser + Send>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        session: &'env Session,
        dialer: &'env dyn Dialer,
        user: &'env U,
    ) {
        while !session.is_over() {
            let failed = self.failures.load(Relaxed);
            if failed > 0 {
                // Each round after a failure waits; a success ends that.
                let wait_ms = (RETRY_MS.0 << failed.min(8)).min(RETRY_MS.1);
                let rounds = wait_ms.div_ceil(GLANCE.as_millis() as u64);
                for _ in 0..rounds {
                    if !session.is_over() {
                        drop(wait(&self.changed.1, lock(&self.changed.0), GLANCE));
                    }
                }
            }
            while !session.is_over() && self.alive.load(Relaxed) < self.wanted.load(Relaxed) {
                self.alive.fetch_add(1, Relaxed);
                let id = self.next_stream.fetch_add(1, Relaxed);
                scope.spawn(move || {
                    let _cpu = CpuCount(session);
                    match self.dial(dialer, id) {
                        Ok(connection) => {
                            self.failures.store(0, Relaxed);
                            user.run_stream(id, connection);
                            session.remove_stream(id);
                        }
                        Err(error) => {
                            if self.failures.fetch_add(1, Relaxed) == 0 && !session.is_over() {
                                session.retry(format!("a stream cannot be made: {error}"));
                            }
                        }
                    }
                    self.alive.fetch_sub(1, Relaxed);
                    self.changed.1.notify_all();
                });
                if failed > 0 {
                    break;
                }
            }
            drop(wait(&self.changed.1, lock(&self.changed.0), GLANCE));
        }
    }

    fn dial(&self, dialer: &dyn Dialer, id: u32) -> io::Result<Connection> {
        let mut connection = dialer.connect(Duration::from_nanos(HANDSHAKE.0))?;
        let session = self.session.load(Relaxed);
        Greeting { is_data: true, session, stream: id }.send(&self.token, &[], &mut connection.writer)?;
        Ok(connection)
    }
}

/// Closes a connection whose peer does not answer in time, or when the copy is over.
struct Deadline<'a> {
    session: &'a Session,
    handle: std::sync::Arc<dyn crate::transport::Handle>,
    end_ns: u64,
    met: (Mutex<bool>, Condvar),
}

impl Deadline<'_> {
    fn met(&self) {
        *lock(&self.met.0) = true;
        self.met.1.notify_all();
    }

    fn watch(&self) {
        let mut met = lock(&self.met.0);
        while !*met {
            if self.session.is_over() || path_net::monotonic_ns() > self.end_ns {
                self.handle.close();
                return;
            }
            met = wait(&self.met.1, met, GLANCE);
        }
    }
}
