//! Connections of a session: made or taken, shown to have the token, and handed to those who use them.

use crate::error::{CopyError, ErrorKind};
use crate::session::{lock, wait, CpuCount, Session, GLANCE};
use crate::transport::{Connection, Dialer, Incoming, Listener};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, OnceLock};
use std::thread::Scope;
use std::time::Duration;

/// Token, kind, session, stream: the first bytes of a connection.
const GREETING_BYTES: usize = 32 + 1 + 8 + 4;
/// Connections without the token that end the copy.
const WRONG_MAX: u32 = 5;
/// Handshakes at once, of one address and of all; more are closed, so that strangers who say nothing cost little. The
/// other end opens all of its streams at once, and a stranger elsewhere leaves it room.
const HANDSHAKES_MAX: (u32, u32) = (STREAMS_MAX + 1, 2 * STREAMS_MAX);
/// Data streams of one copy (`EndSpec::streams`).
pub(crate) const STREAMS_MAX: u32 = 256;
/// Time for one handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
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
    fn send(self, token: &[u8; 32], writer: &mut dyn Write) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(GREETING_BYTES);
        bytes.extend_from_slice(token);
        bytes.push(u8::from(self.is_data));
        bytes.extend_from_slice(&self.session.to_be_bytes());
        bytes.extend_from_slice(&self.stream.to_be_bytes());
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
    wrong: AtomicU32,
    /// By address, as far as there are any.
    handshakes: Mutex<BTreeMap<IpAddr, u32>>,
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
            wrong: AtomicU32::new(0),
            handshakes: Mutex::new(BTreeMap::new()),
            failures: AtomicU32::new(0),
            changed: (Mutex::new(()), Condvar::new()),
        }
    }

    /// Another number of streams.
    pub fn want(&self, streams: u32) {
        self.wanted.store(streams.clamp(1, STREAMS_MAX), Relaxed);
        self.changed.1.notify_all();
    }

    fn wrong(&self, session: &Session) {
        if self.wrong.fetch_add(1, Relaxed) + 1 >= WRONG_MAX {
            session.fail(CopyError {
                kind: ErrorKind::Token,
                text: format!("{WRONG_MAX} connections without the token of this copy: it ends"),
            });
        }
    }

    /// Takes connections until the copy is over.
    pub fn accept<'scope, 'env: 'scope, U: StreamUser + Send>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        session: &'env Session,
        listener: &'env dyn Listener,
        user: &'env OnceLock<U>,
        control: SyncSender<Connection>,
    ) {
        while !session.is_over() {
            let incoming = match listener.next(GLANCE) {
                Ok(Some(incoming)) => incoming,
                Ok(None) => continue,
                Err(error) => {
                    session
                        .fail(CopyError { kind: ErrorKind::Port, text: format!("the port cannot be used: {error}") });
                    return;
                }
            };
            // Dropped, and so closed, without a word.
            if self.peer.is_some_and(|peer| peer != incoming.peer()) || self.alive.load(Relaxed) > STREAMS_MAX {
                continue;
            }
            let peer = incoming.peer();
            if !self.begin_handshake(peer) {
                continue;
            }
            let control = control.clone();
            scope.spawn(move || {
                let _cpu = CpuCount(session);
                let greeted = self.greeted(session, incoming);
                self.end_handshake(peer);
                match greeted {
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
        }
    }

    /// The user of data streams. The other end may make the first ones a moment before this end has it.
    fn met<'a, U>(&self, session: &Session, user: &'a OnceLock<U>) -> Option<&'a U> {
        while user.get().is_none() && !session.is_over() {
            drop(wait(&self.changed.1, lock(&self.changed.0), Duration::from_millis(1)));
        }
        user.get()
    }

    /// False: there are too many.
    fn begin_handshake(&self, peer: IpAddr) -> bool {
        let mut handshakes = lock(&self.handshakes);
        let (own, all) = (handshakes.get(&peer).copied().unwrap_or(0), handshakes.values().sum::<u32>());
        let has_room = own < HANDSHAKES_MAX.0 && all < HANDSHAKES_MAX.1;
        if has_room {
            handshakes.insert(peer, own + 1);
        }
        has_room
    }

    fn end_handshake(&self, peer: IpAddr) {
        let mut handshakes = lock(&self.handshakes);
        match handshakes.get_mut(&peer) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(handshakes.remove(&peer)),
        }
    }

    /// Handshake and greeting of a connection that came in.
    fn greeted(&self, session: &Session, incoming: Box<dyn Incoming>) -> Option<(Greeting, Connection)> {
        let accepted = incoming.accept(HANDSHAKE);
        if matches!(&accepted, Err(error) if error.kind() == io::ErrorKind::InvalidData) {
            self.wrong(session);
        }
        let mut connection = accepted.ok()?;
        let deadline = Deadline::new(session, &connection);
        let greeting = std::thread::scope(|scope| {
            scope.spawn(|| deadline.watch());
            let greeting = Greeting::receive(&self.token, &mut connection.reader);
            deadline.met();
            greeting
        });
        let Some(greeting) = greeting.ok()? else {
            connection.handle.close();
            self.wrong(session);
            return None;
        };
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
        Some((greeting, connection))
    }

    fn run(&self, session: &Session, user: &dyn StreamUser, id: u32, connection: Connection) {
        self.alive.fetch_add(1, Relaxed);
        user.run_stream(id, connection);
        self.alive.fetch_sub(1, Relaxed);
        session.remove_stream(id);
        self.changed.1.notify_all();
    }

    /// Makes the connection for messages.
    ///
    /// # Errors
    /// Network, or another certificate.
    pub fn connect_control(&self, dialer: &dyn Dialer, session_id: u64, time: Duration) -> io::Result<Connection> {
        self.session.store(session_id, Relaxed);
        let mut connection = dialer.connect(time)?;
        Greeting { is_data: false, session: session_id, stream: 0 }.send(&self.token, &mut connection.writer)?;
        Ok(connection)
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
        let mut connection = dialer.connect(HANDSHAKE)?;
        let session = self.session.load(Relaxed);
        Greeting { is_data: true, session, stream: id }.send(&self.token, &mut connection.writer)?;
        Ok(connection)
    }
}

/// Closes a connection that does not greet in time, or when the copy is over.
struct Deadline<'a> {
    session: &'a Session,
    handle: std::sync::Arc<dyn crate::transport::Handle>,
    met: (Mutex<bool>, Condvar),
}

impl<'a> Deadline<'a> {
    fn new(session: &'a Session, connection: &Connection) -> Deadline<'a> {
        Deadline { session, handle: connection.handle.clone(), met: (Mutex::new(false), Condvar::new()) }
    }

    fn met(&self) {
        *lock(&self.met.0) = true;
        self.met.1.notify_all();
    }

    fn watch(&self) {
        let end_ns = path_net::monotonic_ns() + HANDSHAKE.as_nanos() as u64;
        let mut met = lock(&self.met.0);
        while !*met {
            if self.session.is_over() || path_net::monotonic_ns() > end_ns {
                self.handle.close();
                return;
            }
            met = wait(&self.met.1, met, GLANCE);
        }
    }
}
