//! One end of a connection.

use crate::config::{Config, Version, SYN};
use crate::period::PS_PER_S;
use crate::receive::{Receive, RoundTrip};
use crate::segment::{Handshake, HandshakeStep, Segment};
use crate::send::Send;
use std::collections::VecDeque;
use tcp::{Stats, Train};
use units::{Rate, Span, Time};

/// Time after which a handshake packet is sent again (libudt: 250 ms).
const HANDSHAKE_RETRY: Span = Span::from_millis(250);
/// Handshake packets are sent for so long (libudt: 3 s).
const HANDSHAKE_LIMIT: Span = Span::from_secs(3);
/// Least time without a packet of the other end that counts (libudt 4.11: 300 ms).
const LEAST_EXPIRATION: Span = Span::from_millis(300);
/// A connection is broken after so many such times in a row (libudt: 16), the last of 5 s (libudt: 5 s).
const EXPIRATIONS: u64 = 16;
const BROKEN_AFTER: Span = Span::from_secs(5);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// A client that was not told to connect.
    Closed,
    /// A server that waits.
    Listen,
    /// A client in the handshake.
    Connecting(HandshakeStep),
    Established,
    /// Ended, or given up.
    Over,
}

/// One end of a connection. After every call that takes the time, send what [`Endpoint::poll_train`] has, then call
/// [`Endpoint::handle_timeout`] at [`Endpoint::poll_timeout`].
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: Config,
    phase: Phase,
    was_established: bool,
    /// No more will be written.
    ends: bool,
    send: Send,
    receive: Receive,
    round_trip: RoundTrip,
    has_sample: bool,
    out: VecDeque<Segment>,
    began: Time,
    retry_at: Time,
    /// The last time that something was heard of the other end, or given up on.
    heard: Time,
    expirations: u64,
    stats: Stats,
}

impl Endpoint {
    /// The end that opens the connection.
    pub fn new_client(config: Config, now: Time) -> Endpoint {
        Endpoint::new(config, now, Phase::Closed)
    }

    /// The end that waits for one.
    pub fn new_server(config: Config, now: Time) -> Endpoint {
        Endpoint::new(config, now, Phase::Listen)
    }

    fn new(config: Config, now: Time, phase: Phase) -> Endpoint {
        Endpoint {
            send: Send::new(&config, now),
            receive: Receive::new(&config, now),
            round_trip: RoundTrip::new(config.version),
            has_sample: false,
            config,
            phase,
            was_established: false,
            ends: false,
            out: VecDeque::new(),
            began: now,
            retry_at: Time::NEVER,
            heard: now,
            expirations: 1,
            stats: Stats::default(),
        }
    }

    /// Opens the connection. Does nothing on a server or a second time.
    pub fn connect(&mut self, now: Time) {
        if self.phase == Phase::Closed {
            // UDT of 2003 has no cookies.
            let step = match self.config.version {
                Version::Udt2003 => HandshakeStep::Request,
                Version::Udt4 => HandshakeStep::AskCookie,
            };
            self.began = now;
            self.ask(now, step);
        }
    }

    fn ask(&mut self, now: Time, step: HandshakeStep) {
        self.phase = Phase::Connecting(step);
        self.retry_at = now + HANDSHAKE_RETRY;
        self.shake(step);
    }

    fn shake(&mut self, step: HandshakeStep) {
        let window_packets = self.config.window_packets;
        self.out.push_back(Segment::Handshake(Handshake { step, window_packets }));
    }

    fn establish(&mut self, now: Time, handshake: &Handshake) {
        self.phase = Phase::Established;
        self.was_established = true;
        self.retry_at = Time::NEVER;
        // The clocks of both halves run from here.
        let (written, ended) = (self.send.written(), self.receive.delivered());
        debug_assert!(ended == 0, "data came before the connection");
        self.send = Send::new(&self.config, now);
        self.send.write(now, written);
        self.receive = Receive::new(&self.config, now);
        self.send.open(now, handshake.window_packets);
    }

    /// Ends the connection at once.
    pub fn abort(&mut self, _now: Time) {
        if self.phase == Phase::Established {
            self.out.push_back(Segment::Shutdown);
        }
        self.phase = Phase::Over;
    }

    /// Takes up to `bytes` to send; returns how many were taken.
    pub fn write(&mut self, now: Time, bytes: u64) -> u64 {
        if self.phase == Phase::Over || self.ends {
            return 0;
        }
        self.send.write(now, bytes)
    }

    /// No more will be written: the connection ends when all is acknowledged.
    pub fn close(&mut self, now: Time) {
        self.ends = true;
        self.end_if_done(now);
    }

    fn end_if_done(&mut self, _now: Time) {
        if self.ends && self.phase == Phase::Established && self.send.unacknowledged() == 0 {
            self.out.push_back(Segment::Shutdown);
            self.phase = Phase::Over;
        }
    }

    /// Takes back data that was never sent.
    pub fn discard_unsent(&mut self, now: Time) {
        self.send.discard_unsent();
        self.end_if_done(now);
    }

    /// `segment` has come.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        if let Segment::Handshake(handshake) = segment {
            return self.handle_handshake(now, handshake);
        }
        if self.phase != Phase::Established {
            return;
        }
        (self.heard, self.expirations) = (now, 1);
        self.receive.hear(now);
        match segment {
            Segment::Data(data) => self.receive.handle_data(now, data, &mut self.out, &mut self.stats),
            Segment::Ack(ack) => {
                self.out.push_back(Segment::Ack2 { ack_number: ack.ack_number });
                let mut round_trip = self.round_trip;
                round_trip.sample(ack.rtt_us);
                if self.send.handle_ack(now, ack, round_trip.srtt_us) {
                    self.round_trip = round_trip;
                }
                if let Some(us) = ack.sample_us {
                    self.count_sample(us);
                }
                self.end_if_done(now);
            }
            Segment::LightAck { expected } => self.send.handle_light_ack(*expected),
            Segment::Ack2 { ack_number } => {
                if let Some(us) = self.receive.handle_ack2(now, *ack_number) {
                    self.round_trip.sample(us);
                    self.has_sample = true;
                }
            }
            Segment::Nak(nak) => self.send.handle_nak(now, nak, &mut self.stats),
            Segment::Shutdown => self.phase = Phase::Over,
            Segment::KeepAlive | Segment::Handshake(_) => {}
        }
        self.run_timers(now);
    }

    fn count_sample(&mut self, us: u64) {
        self.has_sample = true;
        let stats = &mut self.stats;
        stats.rtt_samples += 1;
        stats.rtt_sum_us += us;
        stats.rtt_min_us = Some(stats.rtt_min_us.map_or(us, |least| least.min(us)));
        stats.rtt_max_us = stats.rtt_max_us.max(us);
    }

    fn handle_handshake(&mut self, now: Time, handshake: &Handshake) {
        (self.heard, self.expirations) = (now, 1);
        match (self.phase, handshake.step) {
            (Phase::Listen, HandshakeStep::AskCookie) => self.shake(HandshakeStep::GiveCookie),
            (Phase::Listen, HandshakeStep::Request) => {
                self.establish(now, handshake);
                self.shake(HandshakeStep::Accept);
            }
            // The answer was lost.
            (Phase::Established, HandshakeStep::Request) => self.shake(HandshakeStep::Accept),
            (Phase::Connecting(HandshakeStep::AskCookie), HandshakeStep::GiveCookie) => {
                self.ask(now, HandshakeStep::Request);
            }
            (Phase::Connecting(HandshakeStep::Request), HandshakeStep::Accept) => {
                self.establish(now, handshake);
                self.end_if_done(now);
            }
            _ => {}
        }
    }

    /// The time of [`Endpoint::poll_timeout`] has come, or an earlier one.
    pub fn handle_timeout(&mut self, now: Time) {
        match self.phase {
            Phase::Connecting(step) if now >= self.retry_at => {
                if now.since(self.began) > HANDSHAKE_LIMIT {
                    self.phase = Phase::Over;
                } else {
                    self.stats.syn_retransmits += 1;
                    self.ask(now, step);
                }
            }
            Phase::Established => self.run_timers(now),
            _ => {}
        }
    }

    fn run_timers(&mut self, now: Time) {
        if self.phase != Phase::Established {
            return;
        }
        self.receive.handle_timeout(now, &self.round_trip, &mut self.out, &mut self.stats);
        self.send.handle_syn(now);
        if now >= self.expires_at() {
            self.expire(now);
        }
    }

    fn expires_at(&self) -> Time {
        let wait = Span(self.expirations * self.round_trip.longest().0 + SYN.0);
        self.heard + wait.max(Span(self.expirations * LEAST_EXPIRATION.0))
    }

    fn expire(&mut self, now: Time) {
        if self.expirations > EXPIRATIONS && now.since(self.heard) > BROKEN_AFTER {
            self.phase = Phase::Over;
            return;
        }
        if !self.send.handle_timeout(now, &mut self.stats) {
            self.out.push_back(Segment::KeepAlive);
        }
        self.expirations += 1;
        self.heard = now;
    }

    /// Puts the next packet to be sent into `segment`.
    pub fn poll_train(&mut self, now: Time, segment: &mut Segment) -> Train {
        if let Some(control) = self.out.pop_front() {
            *segment = control;
        } else {
            let data = match self.phase {
                Phase::Established => self.send.poll(now, &mut self.stats),
                _ => None,
            };
            let Some(data) = data else { return Train { segments: 0, more: false } };
            *segment = Segment::Data(data);
        }
        self.stats.segments_sent += 1;
        Train { segments: 1, more: true }
    }

    /// Returns true if [`Endpoint::poll_train`] would find a packet now.
    pub fn has_to_transmit(&self, now: Time) -> bool {
        !self.out.is_empty() || (self.phase == Phase::Established && self.send.has_packet(now))
    }

    /// Returns true if [`Endpoint::poll_train`] would find nothing. May be false at any time.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.out.is_empty() && !self.send.is_scheduled()
    }

    /// Returns the latest time for a call of [`Endpoint::handle_timeout`]; packets may go then.
    pub fn poll_timeout(&self) -> Time {
        match self.phase {
            Phase::Connecting(_) => self.retry_at,
            Phase::Established => self.send.poll_timeout().min(self.receive.poll_timeout()).min(self.expires_at()),
            _ => Time::NEVER,
        }
    }

    /// Payload that the application has received in order, bytes. A full acknowledgment hands it over.
    pub fn bytes_received(&self) -> u64 {
        self.receive.delivered()
    }

    /// Bytes taken so far and not taken back.
    pub fn bytes_written(&self) -> u64 {
        self.send.written()
    }

    /// Bytes written that were never sent.
    pub fn bytes_unsent(&self) -> u64 {
        self.send.unsent()
    }

    /// Bytes written and not acknowledged.
    pub fn bytes_unacknowledged(&self) -> u64 {
        self.send.unacknowledged()
    }

    /// Bytes sent and not acknowledged.
    pub fn in_flight_bytes(&self) -> u64 {
        self.send.in_flight_bytes()
    }

    /// Bytes that the send buffer would take.
    pub fn send_queue_free(&self) -> u64 {
        self.send.free()
    }

    /// Returns true if the connection is there.
    pub fn is_established(&self) -> bool {
        self.phase == Phase::Established
    }

    /// Returns true if there ever was a connection.
    pub fn was_established(&self) -> bool {
        self.was_established
    }

    /// Returns true if the connection is over or was given up.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Returns true if no loss and no full window has ended slow start yet.
    pub fn is_in_slow_start(&self) -> bool {
        self.send.control().is_in_slow_start()
    }

    /// Rate at which IP packets go out, bit/s: full ones at the present period.
    pub fn sending_rate(&self) -> Rate {
        let bits = u128::from(self.config.mtu) * 8 * u128::from(PS_PER_S);
        Rate(u64::try_from(bits / u128::from(self.send.control().period_ps())).unwrap_or(u64::MAX))
    }

    /// Packets in flight at most: the lesser of rate control's window and the receiver's.
    pub fn window_packets(&self) -> u64 {
        self.send.window()
    }

    /// Packets reported lost that wait to be sent again.
    pub fn lost_packets(&self) -> u64 {
        self.send.lost_packets()
    }

    /// Smoothed round-trip time; None before the first sample.
    pub fn srtt(&self) -> Option<Span> {
        self.has_sample.then(|| Span::from_micros(self.round_trip.srtt_us))
    }

    /// Counters. Acknowledgments are all control packets of a receiver; fast retransmits are episodes of losses.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}
