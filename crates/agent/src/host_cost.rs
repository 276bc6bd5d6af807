//! The CPU time that one TCP connection takes at each end, for packets of one size: a measurement of a host's time per
//! packet and per byte takes it for several sizes. CPU time tells it also where the line is the limit.

use crate::cpu::{self, IdleTimes};
use crate::error::{AgentError, Kind};
use crate::hex;
use crate::output::Output;
use admission::{Limits, Pending};
use kernel::{monotonic_ns, SegmentCounts};
use rustix::thread::Timespec;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::{Span, Time, NS_PER_S};

/// Bytes of a call of read(2) or write(2), as of iperf3 (128 KiB), which a copy's buffers come close to.
const CALL_BYTES: usize = 128 << 10;

/// Longest wait, so that a stop is noticed.
const NAP: Duration = Duration::from_millis(20);

/// Time between two looks.
const STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// Time that the sender goes on after its window, so that the receiver's, which begins at another moment, ends.
const TAIL_NS: u64 = NS_PER_S / 5;

/// Time for the connection and its token.
const CONNECT: Duration = Duration::from_secs(5);

/// Connections from the peer's address that have yet to show the token.
const ARRIVALS: Limits = Limits { total: 64, per_address: 64, time: Span::from_secs(5) };

/// Longest of the three times, ms.
const LONGEST_MS: u64 = 600_000;

const NS_PER_MS: u64 = 1_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    Send,
    Receive,
}

/// Keys of the request `cost`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    role: Role,
    /// Own address.
    local: IpAddr,
    /// The other agent's.
    peer: IpAddr,
    /// Secret, 32 hex digits.
    token: String,
    /// Receive: first and last port; zeroes: the kernel chooses.
    #[serde(default)]
    ports: [u16; 2],
    /// Send: of the event `listening`.
    #[serde(default)]
    port: u16,
    /// Receive: largest segment that it announces (`TCP_MAXSEG`); absent = the kernel's.
    max_segment_bytes: Option<u32>,
    /// Send: most bit/s (`SO_MAX_PACING_RATE`).
    max_pacing_bps: Option<u64>,
    /// Time before the connection, in which others' work is seen, ms.
    idle_ms: u64,
    /// Time from the connection to the window, ms.
    warm_up_ms: u64,
    /// Time that is measured, ms.
    window_ms: u64,
}

/// One transfer, as one of its ends saw it.
#[derive(Serialize)]
struct Sample {
    /// Length of the window.
    window_s: f64,
    /// Data packets on the wire, whatever the adapter cut or joined.
    packets: u64,
    /// Their payload.
    payload_bytes: u64,
    /// Headers of each, from the IP header on.
    header_bytes: u32,
    /// CPU time of all cores in the window.
    cpu_s: f64,
    /// That of the core that worked most.
    busiest_core_s: f64,
    /// CPU time of this connection's own thread: system calls.
    thread_s: f64,
    /// CPU time per second of all cores before the connection.
    idle_cpu_per_s: f64,
    /// Cores that were counted.
    cores: usize,
    /// Least round-trip time; absent where this end has had no sample of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_min_s: Option<f64>,
    /// Two ends with one id are one machine, whose CPU time is that of both.
    boot_id: String,
}

/// A connection that has yet to show the token.
struct Arrival {
    connection: TcpStream,
    shown: [u8; 16],
    length: usize,
}

/// Counters at one moment.
struct Moment {
    at_ns: u64,
    thread_ns: u64,
    idle: IdleTimes,
}

impl Moment {
    fn now() -> Result<Moment, AgentError> {
        let idle = IdleTimes::now().ok_or_else(|| AgentError::kernel("/proc/stat", "no line of a core"))?;
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let thread_ns = used.tv_sec as u64 * NS_PER_S + used.tv_nsec as u64;
        Ok(Moment { at_ns: monotonic_ns(), thread_ns, idle })
    }

    /// Seconds since `earlier`, and those that each core worked.
    fn since(&self, earlier: &Moment) -> (f64, Vec<f64>) {
        let elapsed_s = (self.at_ns - earlier.at_ns) as f64 / NS_PER_S as f64;
        (elapsed_s, self.idle.busy_s(&earlier.idle, elapsed_s, cpu::ticks_per_s()))
    }
}

/// The measured window of a connection, from its begin to its end.
struct Window {
    begin_ns: u64,
    length_ns: u64,
    first: Option<(Moment, SegmentCounts)>,
    last: Option<(Moment, SegmentCounts)>,
}

impl Window {
    fn new(cost: &Cost) -> Window {
        let begin_ns = monotonic_ns() + cost.warm_up_ms * NS_PER_MS;
        Window { begin_ns, length_ns: cost.window_ms * NS_PER_MS, first: None, last: None }
    }

    /// Takes the counters where it is time to.
    fn turn(&mut self, connection: RawFd) -> Result<(), AgentError> {
        let now = monotonic_ns();
        let told = || SegmentCounts::of(connection).map_err(|error| AgentError::kernel("TCP_INFO", error));
        match (&self.first, &self.last) {
            (None, _) if now >= self.begin_ns => self.first = Some((Moment::now()?, told()?)),
            (Some((first, _)), None) if now >= first.at_ns + self.length_ns => {
                self.last = Some((Moment::now()?, told()?));
            }
            _ => {}
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.last.is_some()
    }

    fn sample(&self, idle: (f64, Vec<f64>), cost: &Cost) -> Result<Sample, AgentError> {
        let (Some((first, before)), Some((last, after))) = (&self.first, &self.last) else {
            return Err(AgentError::new(Kind::Peer, "the connection ended before the time that was to be measured"));
        };
        let (window_s, cores) = last.since(first);
        let (packets, payload_bytes) = match cost.role {
            Role::Send => after.sent_since(before),
            Role::Receive => after.received_since(before),
        };
        let (idle_s, idle_cores) = idle;
        // RFC 791 and RFC 8200, without options.
        let ip_header_bytes = if cost.peer.to_canonical().is_ipv4() { 20 } else { 40 };
        Ok(Sample {
            window_s,
            packets,
            payload_bytes,
            header_bytes: after.tcp_header_bytes + ip_header_bytes,
            cpu_s: cores.iter().sum(),
            busiest_core_s: cores.iter().copied().fold(0.0, f64::max),
            thread_s: (last.thread_ns - first.thread_ns) as f64 / NS_PER_S as f64,
            idle_cpu_per_s: idle_cores.iter().sum::<f64>() / idle_s,
            cores: cores.len(),
            rtt_min_s: after.min_rtt_us.map(|us| us as f64 / 1e6),
            boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned(),
        })
    }
}

impl Cost {
    /// Carries one connection, and tells what it took here.
    ///
    /// # Errors
    /// A value that makes no sense; no port, no connection; stopped.
    pub fn execute(&self, id: u64, output: &Output, stop: &AtomicBool) -> Result<Value, AgentError> {
        let token = hex::token(&self.token)?;
        let times = [self.idle_ms, self.warm_up_ms, self.window_ms];
        if times.iter().any(|ms| !(1..=LONGEST_MS).contains(ms)) {
            let text = format!("cost: idle_ms, warm_up_ms, window_ms: 1 to {LONGEST_MS}");
            return Err(AgentError::input(text));
        }
        match self.role {
            Role::Send => self.send(token, stop),
            Role::Receive => self.receive(token, id, output, stop),
        }
        .map(|sample| json!(sample))
    }

    /// Waits while others' work is seen; returns its length and what each core did in it.
    fn idle(&self, stop: &AtomicBool) -> Result<(f64, Vec<f64>), AgentError> {
        let before = Moment::now()?;
        while monotonic_ns() < before.at_ns + self.idle_ms * NS_PER_MS {
            let _ = rustix::thread::nanosleep(&STEP);
            is_stopped(stop)?;
        }
        Ok(Moment::now()?.since(&before))
    }

    fn send(&self, token: [u8; 16], stop: &AtomicBool) -> Result<Sample, AgentError> {
        let idle = self.idle(stop)?;
        let to = SocketAddr::new(self.peer, self.port);
        let failed = |error: io::Error| AgentError::new(Kind::Peer, format_args!("TCP {to}: {error}"));
        let mut connection = TcpStream::connect_timeout(&to, CONNECT).map_err(failed)?;
        connection.set_write_timeout(Some(NAP)).map_err(failed)?;
        if let Some(bps) = self.max_pacing_bps {
            // In bytes; a kernel before Linux 4.20 takes 32 bits.
            set(&connection, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, (bps / 8).max(1))
                .map_err(|error| AgentError::kernel("SO_MAX_PACING_RATE", error))?;
        }
        let mut data = vec![0; CALL_BYTES];
        data[..token.len()].copy_from_slice(&token);
        let mut rest = &data[..];
        let mut window = Window::new(self);
        loop {
            match connection.write(rest) {
                // Behind the token the data may be anything.
                Ok(written) => rest = if written < rest.len() { &rest[written..] } else { &data[..] },
                Err(error) if is_late(&error) => {}
                Err(error) => return Err(failed(error)),
            }
            window.turn(connection.as_raw_fd())?;
            is_stopped(stop)?;
            if window.last.as_ref().is_some_and(|(last, _)| monotonic_ns() > last.at_ns + TAIL_NS) {
                return window.sample(idle, self);
            }
        }
    }

    fn receive(&self, token: [u8; 16], id: u64, output: &Output, stop: &AtomicBool) -> Result<Sample, AgentError> {
        let listener = self.listen()?;
        let failed = |error: io::Error| AgentError::kernel("a connection", error);
        if let Some(bytes) = self.max_segment_bytes {
            set(&listener, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes)
                .map_err(|error| AgentError::input(format_args!("max_segment_bytes: {bytes}: {error}")))?;
        }
        listener.set_nonblocking(true).map_err(failed)?;
        output.event(id, "listening", json!({"port": listener.local_addr().map_or(0, |address| address.port())}));
        let idle = self.idle(stop)?;
        let mut connection = self.accept(&listener, token, stop)?;
        connection.set_read_timeout(Some(NAP)).map_err(failed)?;
        let mut data = vec![0; CALL_BYTES];
        let mut window = Window::new(self);
        // Until the sender has closed: its window is another one.
        loop {
            match connection.read(&mut data) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if is_late(&error) => {}
                // Data that waits when it closes makes it a reset.
                Err(_) if window.has_ended() => break,
                Err(error) => return Err(AgentError::new(Kind::Peer, format_args!("from {}: {error}", self.peer))),
            }
            window.turn(connection.as_raw_fd())?;
            is_stopped(stop)?;
        }
        window.sample(idle, self)
    }

    fn listen(&self) -> Result<TcpListener, AgentError> {
        let [first, last] = self.ports;
        let mut fault = None;
        for port in first..=last.max(first) {
            match TcpListener::bind((self.local, port)) {
                Ok(listener) => return Ok(listener),
                Err(error) => fault = Some(format!("TCP {}, port {port}: {error}", self.local)),
            }
        }
        Err(AgentError::new(Kind::Port, fault.unwrap_or_default()))
    }

    /// The connection of the peer that shows the token. Others at its address may be strangers: each has its own time,
    /// and none keeps the right one waiting.
    fn accept(&self, listener: &TcpListener, token: [u8; 16], stop: &AtomicBool) -> Result<TcpStream, AgentError> {
        let until = monotonic_ns() + CONNECT.as_nanos() as u64 * 2;
        let mut seed = [0; 8];
        // Without random numbers an attacker may know whom a new connection displaces, and no more.
        let _ = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
        let mut pending = Pending::new(ARRIVALS, u64::from_ne_bytes(seed));
        let mut arrivals: BTreeMap<u64, Arrival> = BTreeMap::new();
        let mut next = 0;
        while monotonic_ns() < until {
            is_stopped(stop)?;
            let now = Time(monotonic_ns());
            for late in pending.expire(now) {
                arrivals.remove(&late);
            }
            for _ in 0..ARRIVALS.total {
                let Ok((connection, from)) = listener.accept() else { break };
                if from.ip().to_canonical() != self.peer.to_canonical() || connection.set_nonblocking(true).is_err() {
                    continue;
                }
                let shown = |number: &u64| arrivals.get(number).map_or(0, |arrival| arrival.length);
                if let Some(displaced) = pending.admit(now, next, from.ip(), shown) {
                    arrivals.remove(&displaced);
                }
                arrivals.insert(next, Arrival { connection, shown: [0; 16], length: 0 });
                next += 1;
            }
            for number in arrivals.keys().copied().collect::<Vec<_>>() {
                let Some(arrival) = arrivals.get_mut(&number) else { continue };
                let ended = match arrival.connection.read(&mut arrival.shown[arrival.length..]) {
                    Ok(0) => true,
                    Ok(more) => {
                        arrival.length += more;
                        arrival.length == token.len() && arrival.shown != token
                    }
                    Err(error) => !is_late(&error),
                };
                if arrival.length == token.len() && !ended && arrival.connection.set_nonblocking(false).is_ok() {
                    return arrivals
                        .remove(&number)
                        .map(|arrival| arrival.connection)
                        .ok_or_else(|| self.none(listener));
                }
                if ended {
                    arrivals.remove(&number);
                    pending.remove(&number);
                }
            }
            let _ = rustix::thread::nanosleep(&STEP);
        }
        Err(self.none(listener))
    }

    /// No connection has shown the token.
    fn none(&self, listener: &TcpListener) -> AgentError {
        let port = listener.local_addr().map_or(0, |address| address.port());
        let text = format!("no connection from {} came to TCP port {port}: a firewall must let it through", self.peer);
        AgentError::new(Kind::Peer, text)
    }
}

fn set<T>(socket: &impl AsRawFd, level: i32, option: i32, value: T) -> io::Result<()> {
    let (at, length) = (std::ptr::from_ref(&value).cast(), std::mem::size_of::<T>() as libc::socklen_t);
    // SAFETY: the value is valid for its length.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, at, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn is_stopped(stop: &AtomicBool) -> Result<(), AgentError> {
    if stop.load(Ordering::Relaxed) {
        return Err(AgentError::new(Kind::Stopped, "the measurement was stopped before its end"));
    }
    Ok(())
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
