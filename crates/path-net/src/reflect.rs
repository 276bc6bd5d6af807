//! A STAMP reflector for many senders, in one thread.

use crate::clock::{clock_quality, monotonic_ns, unix_ns, ClockQuality};
use crate::error::PathError;
use crate::socket::{wait, Outgoing, Room, TestSocket, BATCH};
use path_test::reflector::{Arrival, Reflector, ReflectorClock, ReflectorConfig, ReflectorCounts};
use rustix::fd::AsFd;
use std::net::{IpAddr, SocketAddr};

/// Longest sleep, so that a stop is noticed, ns.
const NAP_NS: u64 = 50_000_000;
/// Time between two questions about the clock's quality, ns.
const QUALITY_NS: u64 = 10_000_000_000;
/// Batches of one socket before the other one has its turn.
const TURNS: usize = 16;

/// A reflector on sockets.
pub struct ReflectorServer {
    sockets: Vec<TestSocket>,
    core: Reflector,
    room: Room,
    replies: Vec<Vec<u8>>,
    quality: ClockQuality,
    asked_ns: u64,
}

impl ReflectorServer {
    /// Listens on each of `addresses`. One port is the same for all: port 0 of the first is the kernel's choice.
    ///
    /// # Errors
    /// A port is taken, or needs rights.
    pub fn open(addresses: &[SocketAddr], config: ReflectorConfig) -> Result<ReflectorServer, PathError> {
        let mut sockets: Vec<TestSocket> = vec![];
        let mut port = 0;
        for address in addresses {
            let mut address = *address;
            if address.port() == 0 {
                address.set_port(port);
            }
            let failed = || PathError::io(format_args!("UDP {address}, to reflect").to_string());
            let socket = match TestSocket::bind(address) {
                // A host without IPv6 has no socket of it, nor senders by it.
                Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) && !sockets.is_empty() => continue,
                made => made.map_err(failed())?,
            };
            socket.stamp_received().map_err(failed())?;
            socket.hold_bursts();
            port = socket.local().map_err(failed())?.port();
            sockets.push(socket);
        }
        Ok(ReflectorServer {
            sockets,
            core: Reflector::new(config),
            room: Room::new(BATCH),
            replies: vec![vec![]; BATCH],
            quality: clock_quality(),
            asked_ns: monotonic_ns(),
        })
    }

    /// Address that it listens on.
    pub fn local(&self) -> Vec<SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.local().ok()).collect()
    }

    /// Counts of its work.
    pub fn counts(&self) -> ReflectorCounts {
        self.core.counts()
    }

    /// Answers until `stop` says true, which is asked every 50 ms.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn serve(&mut self, mut stop: impl FnMut() -> bool) -> Result<(), PathError> {
        while !stop() {
            let end_ns = monotonic_ns() + NAP_NS;
            while monotonic_ns() < end_ns {
                let fds: Vec<_> = self.sockets.iter().map(AsFd::as_fd).collect();
                wait(&fds, end_ns.saturating_sub(monotonic_ns())).map_err(PathError::io("waiting for packets"))?;
                self.turn();
            }
        }
        Ok(())
    }

    /// Answers what has come.
    fn turn(&mut self) {
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.asked_ns) > QUALITY_NS {
            self.asked_ns = now_ns;
            self.quality = clock_quality();
        }
        for socket in &self.sockets {
            for _ in 0..TURNS {
                let mut answers: [Option<(SocketAddr, Option<IpAddr>, u8)>; BATCH] = [None; BATCH];
                let mut made = 0;
                let (core, replies, quality) = (&mut self.core, &mut self.replies, self.quality);
                let got = self.room.receive(socket, |packet, facts| {
                    let arrival = Arrival {
                        peer: facts.from,
                        packet,
                        ttl: facts.ttl,
                        traffic_class: facts.traffic_class,
                        at_ns: facts.at_unix_ns,
                    };
                    let clock = ReflectorClock {
                        now_ns: unix_ns(),
                        error_ns: quality.error_ns,
                        is_synchronized: quality.is_synchronized,
                        is_hardware: false,
                    };
                    if let Ok(class) = core.handle_packet(&arrival, clock, &mut replies[made]) {
                        answers[made] = Some((facts.from, facts.local, class));
                        made += 1;
                    }
                });
                // An error of the socket is that of an earlier reply, whose sender has gone.
                let got = got.unwrap_or(0);
                let outgoing: Vec<Outgoing<'_>> = replies[..made]
                    .iter()
                    .zip(answers.iter().flatten())
                    .map(|(reply, &(to, from, traffic_class))| Outgoing {
                        parts: [reply, &[]],
                        to: Some(to),
                        from,
                        traffic_class,
                    })
                    .collect();
                let mut left = &outgoing[..];
                while !left.is_empty() {
                    // A reply that the kernel refuses, or has no room for, is lost as on the path.
                    let sent = socket.send(left).unwrap_or(1);
                    left = &left[sent.min(left.len())..];
                }
                if got < BATCH {
                    break;
                }
            }
        }
    }
}
