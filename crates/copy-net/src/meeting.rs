//! Both ends meet, work, and part: connections are made, greetings exchanged, threads run; the calling thread watches.

use crate::control::{read_all, read_message, write_all};
use crate::error::{CopyError, ErrorKind};
use crate::links::{Links, StreamUser};
use crate::run_control::Control;
use crate::session::{lock, peer_error, wait, CpuCount, Session, GLANCE};
use crate::transport::{Connection, Dialer, Listener};
use crate::transports;
use copy::{plural, EndSpec, Event, Message, Role, Side, SourcesShape, Steering, StreamProgress, WireError, PROTOCOL};
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{sync_channel, Receiver as Events, RecvTimeoutError};
use std::sync::{Condvar, Mutex, OnceLock};
use std::thread::Scope;
use std::time::Duration;

/// Between two looks at the stop flag.
const TICK: Duration = Duration::from_millis(20);
/// A silent end says something at least so often.
const PING_NS: u64 = 2_000_000_000;

/// The work of one role once the ends have met.
pub(crate) trait RoleWork: StreamUser + Send + Sync {
    /// Takes a message of the other end.
    fn handle(&self, message: Message) -> Result<(), WireError>;
    /// Starts its own threads.
    fn start<'scope, 'env: 'scope>(&'env self, scope: &'scope Scope<'scope, 'env>);
    /// Takes another rate or number of streams.
    fn steer(&self, steering: Steering);
}

/// The other end's word on itself.
pub(crate) struct Greeting {
    pub shape: SourcesShape,
    resumed: u64,
}

/// An attempt as it begins.
pub(crate) struct Meeting<'a> {
    pub spec: &'a EndSpec,
    pub control: &'a Control,
    pub session: &'a Session,
    pub token: [u8; 32],
}

enum Door {
    Listen(Box<dyn Listener>),
    Connect(Box<dyn Dialer>),
}

impl Meeting<'_> {
    /// Runs the attempt to its end; how it ended is the session's. `open` makes this end's work, with bytes that are
    /// there from earlier attempts.
    ///
    /// # Errors
    /// Those found before the ends can meet; later ones are the session's.
    pub fn run<U: RoleWork>(
        &self,
        user: &OnceLock<U>,
        shape: Option<SourcesShape>,
        open: impl FnOnce(&Greeting) -> Result<(U, u64), CopyError> + Send,
        told_events: &Events<Event>,
        told: &mut dyn FnMut(Event),
    ) -> Result<(), CopyError> {
        let links = Links::new(self.token, self.spec.peer, self.spec.streams);
        let door = match self.spec.side {
            Side::Listen => Door::Listen(transports::listener(self.spec, self.session)?),
            Side::Connect => Door::Connect(transports::dialer(self.spec, self.session)?),
        };
        if let Door::Listen(listener) = &door {
            told(Event::Listening { port: listener.port() });
        }
        let has_met = AtomicBool::new(false);
        let run = || {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let _cpu = CpuCount(self.session);
                    if let Err(error) = self.meet(scope, &links, &door, user, shape, open, &has_met) {
                        self.session.fail(error);
                    }
                });
                self.watch(user, &links, &has_met, told_events, told);
            });
        };
        // A scope panics when one of its threads did; the session has the error by now.
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            self.session.fail(CopyError { kind: ErrorKind::Io, text: "a thread of this end has panicked".into() });
        }
        while let Ok(event) = told_events.try_recv() {
            told(event);
        }
        if links.refused() > 0 {
            told(Event::Refused { connections: links.refused() });
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "all of it is the meeting's own state")]
    fn meet<'scope, 'env: 'scope, U: RoleWork>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        links: &'env Links,
        door: &'env Door,
        user: &'env OnceLock<U>,
        shape: Option<SourcesShape>,
        open: impl FnOnce(&Greeting) -> Result<(U, u64), CopyError>,
        has_met: &AtomicBool,
    ) -> Result<(), CopyError> {
        let session = self.session;
        let mut connection = match door {
            Door::Listen(listener) => {
                let (give, take) = sync_channel(1);
                scope.spawn(move || links.accept(scope, session, &**listener, user, give));
                loop {
                    match take.recv_timeout(GLANCE) {
                        Ok(connection) => break connection,
                        Err(_) if session.is_over() => return Ok(()),
                        Err(RecvTimeoutError::Timeout) => {}
                        // The listener has failed, and the session with it.
                        Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    }
                }
            }
            Door::Connect(dialer) => match self.connect(links, &**dialer, shape)? {
                Some(connection) => connection,
                None => return Ok(()),
            },
        };
        session.set_control(connection.handle.clone());
        let begin_ns = path_net::monotonic_ns();
        let (work, resumed) = self.greet(&mut connection, shape, open)?;
        let measured_s = (path_net::monotonic_ns() - begin_ns) as f64 / 1e9;
        let rtt_s = connection.handle.facts().rtt_s.unwrap_or(measured_s);
        session.event(Event::Connected { streams: self.spec.streams, rtt_s, resumed_bytes: resumed });
        session.heard();
        has_met.store(true, Relaxed);
        let user = user.get_or_init(|| work);
        let Connection { mut reader, mut writer, .. } = connection;
        scope.spawn(move || {
            let _cpu = CpuCount(session);
            read_all(session, &mut *reader, &|message| match message {
                Message::Streams(count) if self.spec.role == Role::Receive => {
                    links.want(count);
                    Ok(())
                }
                message => user.handle(message),
            });
        });
        scope.spawn(move || {
            let _cpu = CpuCount(session);
            write_all(session, &mut *writer);
        });
        user.start(scope);
        if let Door::Connect(dialer) = door {
            links.keep(scope, session, &**dialer, user);
        }
        Ok(())
    }

    /// Makes the connection for messages; the other end may not listen yet. A sender's greeting is in its first bytes.
    /// None: the copy is over.
    fn connect(
        &self,
        links: &Links,
        dialer: &dyn Dialer,
        shape: Option<SourcesShape>,
    ) -> Result<Option<Connection>, CopyError> {
        let mut first = vec![];
        if self.spec.role == Role::Send {
            self.hello(shape, 0).encode(&mut first);
        }
        let mut id = [0; 8];
        rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| CopyError { kind: ErrorKind::Io, text: format!("random numbers: {error}") })?;
        let end_ns = path_net::monotonic_ns() + (self.spec.connect_s * 1e9) as u64;
        loop {
            let left_ns = end_ns.saturating_sub(path_net::monotonic_ns());
            let time = Duration::from_nanos(left_ns.max(1_000_000));
            let place =
                format!("{} port {}", self.spec.peer.map_or("-".into(), |peer| peer.to_string()), self.spec.port);
            let error = match links.connect_control(self.session, dialer, u64::from_be_bytes(id), &first, time) {
                Ok(Some(connection)) => return Ok(Some(connection)),
                Ok(None) => {
                    let text = format!("{place}: the other end refuses the token: it runs another copy");
                    return Err(CopyError { kind: ErrorKind::Token, text });
                }
                Err(error) => error,
            };
            if self.session.is_over() {
                return Ok(None);
            }
            let text = format!("{place}: {error}");
            match error.kind() {
                io::ErrorKind::InvalidData => return Err(CopyError { kind: ErrorKind::Protocol, text }),
                io::ErrorKind::InvalidInput => return Err(CopyError { kind: ErrorKind::Input, text }),
                _ if path_net::monotonic_ns() >= end_ns => return Err(CopyError { kind: ErrorKind::Peer, text }),
                _ => drop(wait(&Condvar::new(), lock(&Mutex::new(())), GLANCE)),
            }
        }
    }

    fn options(&self) -> String {
        serde_json::to_string(&self.spec.options).unwrap_or_default()
    }

    fn hello(&self, shape: Option<SourcesShape>, resumed_bytes: u64) -> Message {
        Message::Hello {
            protocol: PROTOCOL,
            copy: self.spec.copy.clone(),
            is_sender: self.spec.role == Role::Send,
            options: self.options(),
            shape,
            resumed_bytes,
        }
    }

    /// Exchanges greetings: the sender's first, so that the receiver can open its destination before it answers. A
    /// sender that connected has sent its own.
    fn greet<U>(
        &self,
        connection: &mut Connection,
        shape: Option<SourcesShape>,
        open: impl FnOnce(&Greeting) -> Result<(U, u64), CopyError>,
    ) -> Result<(U, u64), CopyError> {
        let options = self.options();
        if self.spec.role == Role::Send {
            if self.spec.side == Side::Listen {
                say(connection, &self.hello(shape, 0))?;
            }
            let greeting = self.hear(connection, &options)?;
            let (work, _) = open(&greeting)?;
            return Ok((work, greeting.resumed));
        }
        let greeting = self.hear(connection, &options)?;
        match open(&greeting) {
            Ok((work, resumed)) => {
                say(connection, &self.hello(shape, resumed))?;
                Ok((work, resumed))
            }
            Err(error) => {
                let kind = crate::session::kind_number(error.kind);
                let _ = say(connection, &Message::Abort { kind, text: error.text.clone() });
                Err(error)
            }
        }
    }

    fn hear(&self, connection: &mut Connection, options: &str) -> Result<Greeting, CopyError> {
        let protocol = |text: String| CopyError { kind: ErrorKind::Protocol, text };
        let message = read_message(&mut *connection.reader, &mut vec![]).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => protocol(format!("the other end sent {error}")),
            _ => gone(&error),
        })?;
        match message {
            Message::Hello { protocol: version, .. } if version != PROTOCOL => {
                Err(protocol(format!("the other end speaks version {version} of the protocol, not {PROTOCOL}")))
            }
            Message::Hello { copy, is_sender, options: theirs, shape, resumed_bytes, .. } => {
                let input = |text: &str| Err(CopyError { kind: ErrorKind::Input, text: text.into() });
                if copy != self.spec.copy {
                    return input("copy: the other end runs another copy");
                }
                if is_sender == (self.spec.role == Role::Send) {
                    return input("role: both ends have the same");
                }
                if theirs != options {
                    return input("options: the other end has others");
                }
                if is_sender && shape.is_none() {
                    return Err(protocol("the other end does not say what it sends".into()));
                }
                Ok(Greeting { shape: shape.unwrap_or(SourcesShape::Tree), resumed: resumed_bytes })
            }
            Message::Abort { kind, text } => Err(peer_error(kind, &text)),
            _ => Err(protocol("the other end does not greet".into())),
        }
    }

    /// The calling thread: tells events, and sees to stop, silence, steering.
    fn watch<U: RoleWork>(
        &self,
        user: &OnceLock<U>,
        links: &Links,
        has_met: &AtomicBool,
        told_events: &Events<Event>,
        told: &mut dyn FnMut(Event),
    ) {
        let begin_ns = path_net::monotonic_ns();
        let (connect_ns, silence_ns) = ((self.spec.connect_s * 1e9) as u64, (self.spec.silence_s * 1e9) as u64);
        let progress_ns = self.spec.progress_ms.max(10) * 1_000_000;
        let mut next_progress_ns = begin_ns + progress_ns;
        let mut next_ping_ns = begin_ns + PING_NS;
        let mut done_ns = None;
        while !self.session.is_over() {
            match told_events.recv_timeout(TICK) {
                Ok(event) => {
                    told(event);
                    told_events.try_iter().take(1000).for_each(&mut *told);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if self.control.stop.load(Relaxed) {
                self.session.fail(CopyError { kind: ErrorKind::Stopped, text: "it was asked to stop".into() });
                break;
            }
            let now_ns = path_net::monotonic_ns();
            if !has_met.load(Relaxed) {
                // The other end may take its time to open what it was given, once it has connected.
                if now_ns - begin_ns > connect_ns + silence_ns || self.nobody_came(now_ns - begin_ns > connect_ns) {
                    let mut text = format!("the other end did not come within {} s", self.spec.connect_s);
                    if links.refused() > 0 {
                        let refused = plural(links.refused(), "connection");
                        text += &format!("; refused {refused} without the token");
                    }
                    self.session.fail(CopyError { kind: ErrorKind::Peer, text });
                }
                continue;
            }
            if self.session.is_handling.load(Relaxed) {
                self.session.heard();
            }
            // All is said, and the other end goes on talking.
            done_ns = done_ns.or_else(|| self.session.is_done().then_some(now_ns));
            if done_ns.is_some_and(|done_ns| now_ns - done_ns > silence_ns) {
                self.session.succeed();
            }
            let heard_ns = self.session.heard_ns.load(Relaxed);
            if now_ns.saturating_sub(heard_ns) > silence_ns {
                let text = format!("the other end is silent since {} s", self.spec.silence_s);
                self.session.fail(CopyError { kind: ErrorKind::Peer, text });
            }
            if now_ns >= next_ping_ns {
                next_ping_ns = now_ns + PING_NS.min(silence_ns / 4);
                self.session.say(&Message::Ping);
            }
            let steering = std::mem::take(&mut *lock(&self.control.steering));
            if let (Some(user), true) = (user.get(), steering != Steering::default()) {
                user.steer(steering);
                if let (Some(streams), Role::Send) = (steering.streams, self.spec.role) {
                    links.want(streams);
                }
            }
            if now_ns >= next_progress_ns {
                next_progress_ns = now_ns + progress_ns;
                told(self.progress(now_ns - begin_ns));
            }
        }
        if has_met.load(Relaxed) {
            told(self.progress(path_net::monotonic_ns() - begin_ns));
        }
    }

    fn nobody_came(&self, is_late: bool) -> bool {
        is_late && !self.session.has_control()
    }

    fn progress(&self, now_ns: u64) -> Event {
        let counters = &self.session.counters;
        let bytes_total = counters.bytes_total.load(Relaxed);
        let streams = lock(&self.session.streams)
            .values()
            .map(|stream| {
                let facts = stream.handle.facts();
                StreamProgress {
                    sent_bytes: stream.sent_bytes.load(Relaxed),
                    rtt_s: facts.rtt_s,
                    window_bytes: facts.window_bytes,
                    retransmitted: facts.retransmitted,
                    active: stream.is_active,
                }
            })
            .collect();
        Event::Progress {
            now_s: now_ns as f64 / 1e9,
            files_done: counters.files_done.load(Relaxed),
            files_total: counters.files_total.load(Relaxed),
            // Chunks that were sent twice count twice until the end.
            bytes_done: counters.bytes_done.load(Relaxed).min(bytes_total),
            bytes_total,
            durable_bytes: counters.durable_bytes.load(Relaxed),
            wanted_bytes: counters.wanted_bytes.load(Relaxed),
            sent_bytes: counters.sent_bytes.load(Relaxed),
            reused_bytes: counters.reused_bytes.load(Relaxed),
            streams,
        }
    }
}

fn gone(error: &io::Error) -> CopyError {
    CopyError { kind: ErrorKind::Peer, text: format!("the other end has gone: {error}") }
}

fn say(connection: &mut Connection, message: &Message) -> Result<(), CopyError> {
    let mut bytes = vec![];
    message.encode(&mut bytes);
    connection.writer.write_all(&bytes).and_then(|()| connection.writer.flush()).map_err(|error| gone(&error))
}
