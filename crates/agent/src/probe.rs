//! A small flow of UDP datagrams that the other agent sends back: round trips and loss of a path, before a run and
//! beside it.

use crate::error::{AgentError, Kind};
use kernel::monotonic_ns;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::{Span, NS_PER_S};

/// Bytes of a datagram: token, number, time of sending.
const BYTES: usize = 32;

/// Time after which a probe without an answer is lost, at least.
const LOST: Span = Span::from_secs(1);

/// Latest probes that tell of the round trip, at most: 1 s of them at the usual interval. Loss needs more to be known.
const RTT_WINDOW: usize = 50;

/// Longest wait, so that a stop is noticed.
const NAP: Span = Span::from_millis(20);

/// Probes of which the outcome is kept.
const KEPT: usize = 10_000;

/// Bounds of a path's state, beyond which a run does harm.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Between two probes, ms.
    pub interval_ms: u64,
    /// Median of the round trips of the latest 50 probes, or of the window where that is shorter, ms; null = none.
    #[serde(default)]
    pub max_rtt_ms: Option<f64>,
    /// Lost probes in the window, parts per million; null = none.
    #[serde(default)]
    pub max_loss_ppm: Option<u64>,
    /// Probes that count: the latest. More lost ones than a window may have are harm before it is full.
    pub window: usize,
}

impl Bounds {
    /// # Errors
    /// A value that makes no sense.
    pub fn check(&self) -> Result<(), AgentError> {
        if !(1..=60_000).contains(&self.interval_ms) || !(1..=KEPT).contains(&self.window) {
            return Err(AgentError::input(format_args!("guard: interval_ms: 1 to 60000; window: 1 to {KEPT}")));
        }
        if self.max_rtt_ms.is_some_and(|ms| !(0.0..=60_000.0).contains(&ms)) {
            return Err(AgentError::input("guard: max_rtt_ms: 0 to 60000"));
        }
        Ok(())
    }

    /// Time after which a probe is lost: a bound of the round trip beyond it could never act.
    fn lost_after(&self) -> Span {
        let twice = Span((2e6 * self.max_rtt_ms.unwrap_or(0.0)) as u64);
        twice.max(LOST)
    }
}

/// Round trips and loss.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Found {
    /// Probes of which the outcome is known.
    pub probes: usize,
    /// Those without an answer.
    pub lost: usize,
    /// Their part, parts per million.
    pub loss_ppm: u64,
    /// s; absent where nothing was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_min_s: Option<f64>,
    /// s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_median_s: Option<f64>,
    /// s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_max_s: Option<f64>,
}

impl Found {
    fn of<'a>(outcomes: impl Iterator<Item = &'a Option<Span>>) -> Found {
        let all: Vec<_> = outcomes.collect();
        let mut answered: Vec<Span> = all.iter().filter_map(|outcome| **outcome).collect();
        answered.sort_unstable();
        let (probes, lost) = (all.len(), all.len() - answered.len());
        let seconds = |span: Option<&Span>| span.map(|span| span.as_secs_f64());
        Found {
            probes,
            lost,
            loss_ppm: (lost as u64 * 1_000_000).checked_div(probes as u64).unwrap_or(0),
            rtt_min_s: seconds(answered.first()),
            rtt_median_s: seconds(answered.get(answered.len() / 2)),
            rtt_max_s: seconds(answered.last()),
        }
    }
}

/// Sends back the datagrams of one peer that show the token.
pub struct Echo {
    socket: UdpSocket,
    peer: IpAddr,
    token: [u8; 16],
}

impl Echo {
    /// Listens on a port of `local`; 0: the kernel chooses.
    ///
    /// # Errors
    /// The port is taken.
    pub fn open(local: IpAddr, port: u16, peer: IpAddr, token: [u8; 16]) -> Result<Echo, AgentError> {
        let to = SocketAddr::new(local, port);
        let failed = |error: io::Error| AgentError::new(Kind::Port, format_args!("UDP {to}, for probes: {error}"));
        let socket = UdpSocket::bind(to).map_err(failed)?;
        socket.set_read_timeout(Some(Duration::from_nanos(NAP.0))).map_err(failed)?;
        Ok(Echo { socket, peer, token })
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.socket.local_addr().map_or(0, |address| address.port())
    }

    /// Answers until `stop`, or for as long as `until` says.
    pub fn serve(&self, stop: &AtomicBool, mut goes_on: impl FnMut() -> bool) {
        let mut bytes = [0; BYTES + 1];
        while !stop.load(Ordering::Relaxed) && goes_on() {
            let Ok((length, from)) = self.socket.recv_from(&mut bytes) else { continue };
            let is_ours = length == BYTES && from.ip().to_canonical() == self.peer.to_canonical();
            if is_ours && bytes[..16] == self.token {
                // A full buffer loses it, as the path may.
                let _ = self.socket.send_to(&bytes[..BYTES], from);
            }
        }
    }
}

/// Asks, and keeps what became of it.
pub struct Pinger {
    socket: UdpSocket,
    token: [u8; 16],
    interval: Span,
    /// Time after which a probe is lost.
    lost_after: Span,
    /// Probes on their way: number, time of sending.
    pending: VecDeque<(u64, u64)>,
    /// Outcomes, latest last: round trip, None = lost.
    outcomes: VecDeque<Option<Span>>,
    next_number: u64,
    next_ns: u64,
}

impl Pinger {
    /// Towards `to`.
    ///
    /// # Errors
    /// The kernel refuses the socket, or has no route.
    pub fn open(local: IpAddr, to: SocketAddr, token: [u8; 16], interval_ms: u64) -> Result<Pinger, AgentError> {
        let failed = |error: io::Error| AgentError::new(Kind::Peer, format_args!("probes to UDP {to}: {error}"));
        let socket = UdpSocket::bind(SocketAddr::new(local, 0)).map_err(failed)?;
        socket.connect(to).map_err(failed)?;
        Ok(Pinger {
            socket,
            token,
            interval: Span::from_millis(interval_ms),
            lost_after: LOST,
            pending: VecDeque::new(),
            outcomes: VecDeque::new(),
            next_number: 0,
            next_ns: monotonic_ns(),
        })
    }

    /// Beside a run with `bounds`: waits until a probe is answered.
    ///
    /// # Errors
    /// None is answered for `time`, as behind a firewall: nothing could guard the run. Stopped.
    pub fn begin(&mut self, bounds: &Bounds, time: Span, stop: &AtomicBool) -> Result<(), AgentError> {
        self.lost_after = bounds.lost_after();
        let until = monotonic_ns() + time.max(self.lost_after).0;
        while self.outcomes.iter().all(Option::is_none) {
            if stop.load(Ordering::Relaxed) {
                return Err(AgentError::new(Kind::Stopped, "the run was stopped before its begin"));
            }
            if monotonic_ns() > until {
                let to = self.socket.peer_addr().map_or_else(|_| String::new(), |to| format!(" from {to}"));
                let text = format!(
                    "no probe of the harm guard (UDP) has an answer{to}: a firewall must let it through, or the run \
                     goes without a guard"
                );
                return Err(AgentError::new(Kind::Peer, text));
            }
            self.turn();
        }
        self.outcomes.clear();
        Ok(())
    }

    /// Sends what is due, takes what comes within a while, and settles what is lost. At most 20 ms.
    pub fn turn(&mut self) {
        let now = monotonic_ns();
        if now >= self.next_ns {
            let mut bytes = [0; BYTES];
            bytes[..16].copy_from_slice(&self.token);
            bytes[16..24].copy_from_slice(&self.next_number.to_be_bytes());
            // Refused, as when nobody listens: it counts as lost.
            let _ = self.socket.send(&bytes);
            self.pending.push_back((self.next_number, now));
            self.next_number += 1;
            // Missed ones are skipped.
            self.next_ns = (self.next_ns + self.interval.0).max(now);
        }
        let wait = self.next_ns.saturating_sub(now).clamp(100_000, NAP.0);
        let _ = self.socket.set_read_timeout(Some(Duration::from_nanos(wait)));
        let mut bytes = [0; BYTES + 1];
        if let Ok(BYTES) = self.socket.recv(&mut bytes) {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[16..24]);
            let number = u64::from_be_bytes(number);
            let found = self.pending.iter().position(|&(sent, _)| sent == number && bytes[..16] == self.token);
            if let Some((_, sent_ns)) = found.and_then(|place| self.pending.remove(place)) {
                self.settle(Some(Span(monotonic_ns().saturating_sub(sent_ns))));
            }
        }
        let late = monotonic_ns().saturating_sub(self.lost_after.0);
        while self.pending.front().is_some_and(|&(_, sent_ns)| sent_ns < late) {
            self.pending.pop_front();
            self.settle(None);
        }
    }

    fn settle(&mut self, outcome: Option<Span>) {
        if self.outcomes.len() == KEPT {
            self.outcomes.pop_front();
        }
        self.outcomes.push_back(outcome);
    }

    /// Probes of which the outcome is known, all of them but those of long ago.
    pub fn found(&self) -> Found {
        Found::of(self.outcomes.iter())
    }

    /// The reason that the path is worse than `bounds` allow; None: it is not, or too little is known.
    pub fn harm(&self, bounds: &Bounds) -> Option<(String, Found)> {
        let latest = Found::of(self.outcomes.iter().rev().take(bounds.window));
        if let Some(most) = bounds.max_loss_ppm {
            if latest.lost as u128 * 1_000_000 > u128::from(most) * bounds.window as u128 {
                let (lost, all) = (latest.lost, latest.probes);
                let text =
                    format!("{lost} of the latest {all} probes were lost: at most {most} per million are allowed");
                return Some((text, latest));
            }
        }
        let latest = Found::of(self.outcomes.iter().rev().take(bounds.window.min(RTT_WINDOW)));
        let most = bounds.max_rtt_ms.filter(|_| latest.probes >= bounds.window.min(RTT_WINDOW))?;
        let Some(median_s) = latest.rtt_median_s else {
            let text = format!("none of the latest {} probes was answered", latest.probes);
            return Some((text, latest));
        };
        let ms = median_s * 1e3;
        (ms > most).then(|| (format!("the round trip of probes is {ms:.1} ms: at most {most} ms are allowed"), latest))
    }
}

/// Keys of the request `probe`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// True: answer until stopped, for `wait_s` at most; false: ask.
    #[serde(default)]
    pub answers: bool,
    /// Own address.
    pub local: IpAddr,
    /// The other agent's.
    pub peer: IpAddr,
    /// Of the one that answers; there 0: the kernel chooses.
    #[serde(default)]
    pub port: u16,
    /// Secret, 32 hex digits.
    pub token: String,
    /// Probes to send.
    #[serde(default = "count")]
    pub count: u64,
    /// Between two of them, ms.
    #[serde(default = "interval_ms")]
    pub interval_ms: u64,
    /// Longest time to answer, s.
    #[serde(default = "wait_s")]
    pub wait_s: u64,
}

fn count() -> u64 {
    10
}

fn interval_ms() -> u64 {
    20
}

fn wait_s() -> u64 {
    60
}

impl Probe {
    /// Sends its probes, and returns what became of them.
    ///
    /// # Errors
    /// The kernel refuses the socket; stopped.
    pub fn ask(&self, token: [u8; 16], stop: &AtomicBool) -> Result<Found, AgentError> {
        if !(1..=KEPT as u64).contains(&self.count) || !(1..=60_000).contains(&self.interval_ms) || self.port == 0 {
            let text = format!("probe: count: 1 to {KEPT}; interval_ms: 1 to 60000; port: of the event listening");
            return Err(AgentError::input(text));
        }
        let mut pinger = Pinger::open(self.local, SocketAddr::new(self.peer, self.port), token, self.interval_ms)?;
        while (pinger.outcomes.len() as u64) < self.count {
            if stop.load(Ordering::Relaxed) {
                return Err(AgentError::new(Kind::Stopped, "the probe was stopped before its end"));
            }
            if pinger.next_number == self.count {
                pinger.next_ns = u64::MAX;
            }
            pinger.turn();
        }
        Ok(pinger.found())
    }

    /// Answers probes until `stop` or the end of its time.
    pub fn answer(&self, echo: &Echo, stop: &AtomicBool) {
        let until = monotonic_ns() + self.wait_s.min(86_400) * NS_PER_S;
        echo.serve(stop, || monotonic_ns() < until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinger(outcomes: &[Option<u64>]) -> Pinger {
        let to = SocketAddr::new(IpAddr::from([127, 0, 0, 1]), 9);
        let mut pinger = Pinger::open(IpAddr::from([127, 0, 0, 1]), to, [0; 16], 10).unwrap();
        outcomes.iter().for_each(|ms| pinger.settle(ms.map(Span::from_millis)));
        pinger
    }

    const BOUNDS: Bounds = Bounds { interval_ms: 10, max_rtt_ms: Some(50.0), max_loss_ppm: Some(400_000), window: 4 };

    #[test]
    fn only_the_latest_probes_tell_of_harm_and_not_before_there_are_enough() {
        assert_eq!(pinger(&[Some(99); 3]).harm(&BOUNDS), None, "too few");
        assert_eq!(pinger(&[Some(99), Some(99), Some(9), Some(9), Some(9), Some(9)]).harm(&BOUNDS), None);
        let (text, found) = pinger(&[Some(9), Some(99), Some(99), Some(99)]).harm(&BOUNDS).unwrap();
        assert_eq!((text.as_str(), found.lost), ("the round trip of probes is 99.0 ms: at most 50 ms are allowed", 0));
        let (text, found) = pinger(&[Some(9), None, None, Some(9)]).harm(&BOUNDS).unwrap();
        assert!(text.starts_with("2 of the latest 4 probes were lost"), "{text}");
        assert_eq!(found.loss_ppm, 500_000);
        let none = Bounds { max_rtt_ms: None, max_loss_ppm: None, ..BOUNDS };
        assert_eq!(pinger(&[None; 9]).harm(&none), None);
        let (text, _) = pinger(&[None; 4]).harm(&Bounds { max_loss_ppm: None, ..BOUNDS }).unwrap();
        assert_eq!(text, "none of the latest 4 probes was answered");
    }

    #[test]
    fn a_long_window_of_loss_delays_neither_the_round_trip_nor_many_losses() {
        let long = Bounds { max_loss_ppm: Some(300), window: 10_000, ..BOUNDS };
        assert_eq!(pinger(&[Some(99); 49]).harm(&long), None, "too few");
        let (text, _) = pinger(&[Some(99); 50]).harm(&long).unwrap();
        assert_eq!(text, "the round trip of probes is 99.0 ms: at most 50 ms are allowed");
        // 300 per million of 10,000 are 3.
        assert_eq!(pinger(&[None, None, None, Some(9)]).harm(&long), None);
        let (text, _) = pinger(&[None, None, None, None]).harm(&long).unwrap();
        assert_eq!(text, "4 of the latest 4 probes were lost: at most 300 per million are allowed");
    }

    #[test]
    fn a_bound_of_seconds_waits_for_answers_that_long() {
        let bounds = Bounds { max_rtt_ms: Some(1500.0), ..BOUNDS };
        assert_eq!((bounds.lost_after(), BOUNDS.lost_after()), (Span::from_secs(3), Span::from_secs(1)));
        assert!(Bounds { max_rtt_ms: Some(f64::INFINITY), ..BOUNDS }.check().is_err());
    }

    #[test]
    fn probes_come_back_to_whom_shows_the_token_alone() {
        let (here, stop) = (IpAddr::from([127, 0, 0, 1]), AtomicBool::new(false));
        let echo = Echo::open(here, 0, here, [7; 16]).unwrap();
        let to = SocketAddr::new(here, echo.port());
        std::thread::scope(|scope| {
            scope.spawn(|| echo.serve(&stop, || true));
            let (mut right, mut wrong) =
                (Pinger::open(here, to, [7; 16], 1).unwrap(), Pinger::open(here, to, [8; 16], 1).unwrap());
            while right.outcomes.len() < 20 {
                right.turn();
                wrong.turn();
            }
            stop.store(true, Ordering::Relaxed);
            assert_eq!(right.found().lost, 0);
            assert!(right.found().rtt_min_s.unwrap() < 1.0);
            assert!(wrong.outcomes.iter().all(Option::is_none));
        });
    }
}
