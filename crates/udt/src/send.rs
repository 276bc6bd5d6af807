//! The sending half of an end: data written, data in flight, and when the next packet may go.

use crate::config::{Config, Version, PROBE_INTERVAL, SYN};
use crate::loss_list::LossList;
use crate::period::Feedback;
use crate::rate_control::RateControl;
use crate::segment::{Ack, Data, Nak};
use std::collections::VecDeque;
use tcp::Stats;
use units::{Size, Span, Time};

/// Picoseconds in a nanosecond.
const PS_PER_NS: u64 = 1_000;
/// First values of the smoothed arrival speed and capacity, packets/s (libudt: 16 and 1).
const FIRST_RECEIVE_RATE: u64 = 16;
const FIRST_CAPACITY: u64 = 1;

#[derive(Clone, Debug)]
pub(crate) struct Send {
    version: Version,
    payload: u32,
    buffer: Option<Size>,
    control: RateControl,
    /// Bytes taken, sent for the first time, and acknowledged.
    written: u64,
    sent: u64,
    acknowledged: u64,
    /// The largest number sent.
    current: u64,
    /// The next number that the receiver expects, by the last acknowledgment and by the last that was no light one.
    expected: u64,
    fully_expected: u64,
    /// Payload of the packets from `fully_expected` on.
    in_flight: VecDeque<u16>,
    /// Packets that the receiver has room for, from `expected` on.
    flow_window: u64,
    lost: LossList,
    /// A packet may go at `next_send`. Else neither window nor data allowed one: an event starts it again.
    scheduled: bool,
    next_send: Time,
    /// Part of a nanosecond that `next_send` is early, ps.
    early_ps: u64,
    receive_rate: u64,
    capacity: u64,
    /// Since the last SYN: packets sent, packets reported lost.
    sent_in_syn: u64,
    lost_in_syn: u64,
    next_syn: Time,
}

impl Send {
    pub(crate) fn new(config: &Config, now: Time) -> Send {
        let receive_rate = match config.version {
            Version::Udt2003 => 0,
            Version::Udt4 => FIRST_RECEIVE_RATE,
        };
        Send {
            version: config.version,
            payload: config.payload(),
            buffer: config.send_buffer,
            control: RateControl::new(config, now),
            written: 0,
            sent: 0,
            acknowledged: 0,
            current: 0,
            expected: 1,
            fully_expected: 1,
            in_flight: VecDeque::new(),
            flow_window: 0,
            lost: LossList::default(),
            scheduled: false,
            next_send: now,
            early_ps: 0,
            receive_rate,
            capacity: FIRST_CAPACITY,
            sent_in_syn: 0,
            lost_in_syn: 0,
            next_syn: now + SYN,
        }
    }

    pub(crate) fn control(&self) -> &RateControl {
        &self.control
    }

    /// The connection is there; the other end takes `window_packets`.
    pub(crate) fn open(&mut self, now: Time, window_packets: u32) {
        self.flow_window = u64::from(window_packets);
        self.next_syn = now + SYN;
        self.start(now);
    }

    /// Sends at once if it does not already wait for its time.
    fn start(&mut self, now: Time) {
        if !self.scheduled {
            (self.scheduled, self.next_send) = (true, now);
        }
    }

    pub(crate) fn write(&mut self, now: Time, bytes: u64) -> u64 {
        let taken = bytes.min(self.free());
        self.written += taken;
        if taken > 0 && self.flow_window > 0 {
            self.start(now);
        }
        taken
    }

    pub(crate) fn free(&self) -> u64 {
        let limit = self.buffer.map_or(u64::MAX, |size| size.0);
        limit.saturating_sub(self.written - self.acknowledged).min(u64::MAX - self.written)
    }

    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    pub(crate) fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    pub(crate) fn unacknowledged(&self) -> u64 {
        self.written - self.acknowledged
    }

    pub(crate) fn in_flight_bytes(&self) -> u64 {
        self.sent - self.acknowledged
    }

    pub(crate) fn lost_packets(&self) -> u64 {
        self.lost.packets()
    }

    pub(crate) fn discard_unsent(&mut self) {
        self.written = self.sent;
    }

    /// Packets in flight at most.
    pub(crate) fn window(&self) -> u64 {
        self.control.window().min(self.flow_window)
    }

    #[inline]
    pub(crate) fn is_scheduled(&self) -> bool {
        self.scheduled
    }

    /// Returns true if [`Sender::poll`] would find a packet.
    pub(crate) fn has_packet(&self, now: Time) -> bool {
        self.scheduled && now >= self.next_send && (!self.lost.is_empty() || self.may_send_new())
    }

    /// Returns true if the window has room for a new packet, and there is data for it.
    fn may_send_new(&self) -> bool {
        self.current + 1 - self.expected < self.window() && self.unsent() > 0
    }

    /// The next packet, if it is its time.
    pub(crate) fn poll(&mut self, now: Time, stats: &mut Stats) -> Option<Data> {
        if !self.scheduled || now < self.next_send {
            return None;
        }
        let mut probes = false;
        let data = if let Some(number) = self.lost.pop_first() {
            let bytes = u32::from(self.in_flight[(number - self.fully_expected) as usize]);
            stats.retransmitted_segments += 1;
            stats.retransmitted_bytes += u64::from(bytes);
            Data { number, bytes }
        } else {
            if !self.may_send_new() {
                self.scheduled = false;
                return None;
            }
            let bytes = u64::from(self.payload).min(self.unsent()) as u32;
            self.current += 1;
            self.sent += u64::from(bytes);
            self.in_flight.push_back(bytes as u16);
            probes = self.current.is_multiple_of(PROBE_INTERVAL);
            Data { number: self.current, bytes }
        };
        stats.data_segments_sent += 1;
        if self.sent_in_syn == 0 {
            // The timer runs on while nothing is sent; no rate is controlled then.
            self.next_syn = self.next_syn.max(now + Span(1));
        }
        self.sent_in_syn += 1;
        if !probes {
            self.wait_a_period(now);
        }
        Some(data)
    }

    fn wait_a_period(&mut self, now: Time) {
        let due = self.control.period_ps() + self.early_ps;
        self.early_ps = due % PS_PER_NS;
        self.next_send = now + Span(due / PS_PER_NS);
        if self.control.take_pause() {
            self.next_send += SYN;
        }
    }

    /// A light acknowledgment opens the window. It wakes no sender that the window stopped (libudt).
    pub(crate) fn handle_light_ack(&mut self, expected: u64) {
        if expected > self.expected {
            self.flow_window = self.flow_window.saturating_sub(expected - self.expected);
            self.expected = expected;
        }
    }

    /// Returns true if it brought news. `rtt_us` is the smoothed round-trip time with that of the acknowledgment.
    pub(crate) fn handle_ack(&mut self, now: Time, ack: &Ack, rtt_us: u64) -> bool {
        if ack.expected >= self.expected {
            self.flow_window = u64::from(ack.window_packets);
            self.expected = ack.expected;
        }
        if ack.expected <= self.fully_expected {
            return false;
        }
        let packets = (ack.expected - self.fully_expected) as usize;
        self.acknowledged += self.in_flight.drain(..packets).map(u64::from).sum::<u64>();
        self.fully_expected = ack.expected;
        self.lost.remove_below(ack.expected);
        self.start(now);
        let (rate, capacity) = ack.rates.map_or((0, 0), |(rate, capacity)| (u64::from(rate), u64::from(capacity)));
        if rate > 0 {
            self.receive_rate = (7 * self.receive_rate + rate) >> 3;
        }
        if capacity > 0 {
            self.capacity = (7 * self.capacity + capacity) >> 3;
        }
        self.control.handle_ack(
            now,
            &Feedback {
                expected: ack.expected,
                rtt_us,
                receive_rate: self.receive_rate,
                latest_rate: rate,
                capacity: self.capacity,
            },
        );
        true
    }

    pub(crate) fn handle_nak(&mut self, now: Time, nak: &Nak, stats: &mut Stats) {
        let Some(&(first, _)) = nak.ranges().first() else { return };
        if self.control.handle_loss(first, self.current) {
            stats.fast_retransmits += 1;
        }
        for &(first, last) in nak.ranges() {
            let first = first.max(self.expected);
            if first <= last {
                let lost = self.lost.insert(now, first, last.min(self.current));
                self.lost_in_syn += lost;
                stats.segments_marked_lost += lost;
            }
        }
        match self.version {
            Version::Udt2003 => self.start(now),
            // Lost packets go at once, before their time (libudt).
            Version::Udt4 => (self.scheduled, self.next_send) = (true, now),
        }
    }

    /// Nothing was heard of the receiver for long. Returns true if something is in flight.
    pub(crate) fn handle_timeout(&mut self, now: Time, stats: &mut Stats) -> bool {
        if self.unacknowledged() == 0 {
            return false;
        }
        if self.current + 1 != self.expected && self.lost.is_empty() {
            stats.segments_marked_lost += self.lost.insert(now, self.expected, self.current);
        }
        self.control.handle_timeout();
        stats.timeouts += 1;
        (self.scheduled, self.next_send) = (true, now);
        true
    }

    /// Rate control of 2003 has a timer of its own.
    pub(crate) fn handle_syn(&mut self, now: Time) {
        if now < self.poll_syn() {
            return;
        }
        if let RateControl::Udt2003(control) = &mut self.control {
            control.handle_syn(self.sent_in_syn, self.lost_in_syn);
        }
        (self.sent_in_syn, self.lost_in_syn) = (0, 0);
        self.next_syn = now + SYN;
    }

    fn poll_syn(&self) -> Time {
        let counts = self.version == Version::Udt2003 && self.sent_in_syn > 0;
        if counts {
            self.next_syn
        } else {
            Time::NEVER
        }
    }

    /// Returns the time at which there is something to send or to do.
    pub(crate) fn poll_timeout(&self) -> Time {
        let send = if self.scheduled { self.next_send } else { Time::NEVER };
        send.min(self.poll_syn())
    }
}
