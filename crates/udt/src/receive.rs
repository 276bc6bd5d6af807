//! The receiving half of an end: what has arrived, what is missing, and when to say so.

use crate::arrivals::Arrivals;
use crate::config::{Config, Version, SYN};
use crate::loss_list::LossList;
use crate::segment::{Ack, Data, Nak, Segment, MAX_RANGES};
use std::collections::VecDeque;
use tcp::Stats;
use units::{Span, Time};

/// Packets between two light acknowledgments (libudt: m_iSelfClockInterval).
const LIGHT_ACK_PACKETS: u64 = 64;
/// Acknowledgments whose times are kept, to measure the round trip (libudt: 1024).
const ACK_HISTORY: usize = 1024;

#[derive(Clone, Debug)]
pub(crate) struct Receive {
    version: Version,
    payload: u32,
    buffer_packets: u64,
    arrivals: Arrivals,
    /// The largest number that has arrived.
    current: u64,
    /// The first number that has not.
    base: u64,
    /// Payload of packets from `base` on; 0: it has not arrived.
    waiting: VecDeque<u16>,
    /// Payload of all packets before `base`.
    bytes_at_base: u64,
    /// Payload that the application has: a full acknowledgment hands it over.
    delivered: u64,
    missing: LossList,
    /// The number that the last full acknowledgment expected, and the one that the sender is known to know.
    last_ack: u64,
    last_ack_ack: u64,
    last_ack_time: Time,
    ack_number: u64,
    history: VecDeque<(u64, u64, Time)>,
    next_ack: Time,
    /// The last time that a packet of any kind came.
    heard: Time,
    packets_since_ack: u64,
    light_acks: u64,
    next_nak: Time,
    sample_us: Option<u64>,
}

/// The round-trip time as an end has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    /// Smoothed, us.
    pub(crate) srtt_us: u64,
    /// Mean deviation, us.
    pub(crate) var_us: u64,
    /// Returns true before the first sample.
    is_first: bool,
}

impl RoundTrip {
    /// Before the first sample: ten SYN, and half of it (libudt); one SYN in 2003.
    pub(crate) fn new(version: Version) -> RoundTrip {
        let srtt_us = match version {
            Version::Udt2003 => SYN.as_micros(),
            Version::Udt4 => 10 * SYN.as_micros(),
        };
        RoundTrip { srtt_us, var_us: srtt_us / 2, is_first: version == Version::Udt2003 }
    }

    pub(crate) fn sample(&mut self, us: u64) {
        self.var_us = (3 * self.var_us + us.abs_diff(self.srtt_us)) >> 2;
        self.srtt_us = if std::mem::take(&mut self.is_first) { us } else { (7 * self.srtt_us + us) >> 3 };
    }

    /// A round trip at most, as far as one can tell: the mean and four deviations.
    pub(crate) fn longest(&self) -> Span {
        Span::from_micros(self.srtt_us + 4 * self.var_us)
    }
}

impl Receive {
    pub(crate) fn new(config: &Config, now: Time) -> Receive {
        Receive {
            version: config.version,
            payload: config.payload(),
            buffer_packets: u64::from(config.window_packets),
            arrivals: Arrivals::new(config.version, now),
            current: 0,
            base: 1,
            waiting: VecDeque::new(),
            bytes_at_base: 0,
            delivered: 0,
            missing: LossList::default(),
            last_ack: 1,
            last_ack_ack: 1,
            last_ack_time: now,
            ack_number: 0,
            history: VecDeque::new(),
            next_ack: now + SYN,
            heard: now,
            packets_since_ack: 0,
            light_acks: 1,
            next_nak: now + SYN,
            sample_us: None,
        }
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns true if the sender does not know of all that has arrived.
    fn has_news(&self) -> bool {
        self.base != self.last_ack_ack
    }

    /// The number that an acknowledgment expects: the first lost one, or the one after the last.
    fn expected(&self) -> u64 {
        self.base
    }

    /// A packet of any kind has come.
    pub(crate) fn hear(&mut self, now: Time) {
        self.heard = now;
    }

    pub(crate) fn handle_data(&mut self, now: Time, data: &Data, out: &mut VecDeque<Segment>, stats: &mut Stats) {
        if !self.has_news() {
            self.wind_ack_timer(now);
        }
        self.arrivals.add(now, data.number);
        self.packets_since_ack += 1;
        // The buffer has an empty slot, and what arrived before the last full acknowledgment has left it.
        let fits = data.number >= self.last_ack && data.number - self.last_ack < self.buffer_packets - 1;
        let slot = data.number.checked_sub(self.base).filter(|_| fits);
        let Some(slot) = slot.filter(|&slot| self.waiting.get(slot as usize).is_none_or(|&bytes| bytes == 0)) else {
            stats.duplicate_segments_received += 1;
            return self.acknowledge_if_due(now, out, stats);
        };
        if slot as usize >= self.waiting.len() {
            self.waiting.resize(slot as usize + 1, 0);
        }
        self.waiting[slot as usize] = data.bytes as u16;
        stats.data_segments_received += 1;
        if data.number > self.current + 1 {
            stats.out_of_order_segments += 1;
            let (first, last) = (self.current + 1, data.number - 1);
            if self.missing.is_empty() {
                self.next_nak = self.next_nak.max(now + SYN);
            }
            self.missing.insert(now, first, last);
            out.push_back(Segment::Nak(Nak::of(first, last)));
            stats.acks_sent += 1;
        }
        if data.bytes != self.payload && self.version == Version::Udt4 {
            // It ends a message.
            self.next_ack = now;
        }
        if data.number > self.current {
            self.current = data.number;
        } else {
            self.missing.remove(data.number);
        }
        while let Some(bytes) = self.waiting.front().copied().filter(|&bytes| bytes > 0) {
            self.waiting.pop_front();
            self.base += 1;
            self.bytes_at_base += u64::from(bytes);
        }
        self.acknowledge_if_due(now, out, stats);
    }

    /// The timer runs on while there is nothing to say: it fires at a multiple of SYN.
    fn wind_ack_timer(&mut self, now: Time) {
        let late = now.since(self.next_ack).0;
        if self.next_ack <= now {
            self.next_ack += Span((late / SYN.0 + 1) * SYN.0);
        }
    }

    fn acknowledge_if_due(&mut self, now: Time, out: &mut VecDeque<Segment>, stats: &mut Stats) {
        if now >= self.next_ack {
            return;
        }
        if self.version == Version::Udt4 && self.packets_since_ack >= LIGHT_ACK_PACKETS * self.light_acks {
            self.light_acks += 1;
            if self.has_news() {
                out.push_back(Segment::LightAck { expected: self.expected() });
                stats.acks_sent += 1;
            }
        }
    }

    /// Does what is due at `now`.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Time,
        round_trip: &RoundTrip,
        out: &mut VecDeque<Segment>,
        stats: &mut Stats,
    ) {
        let looks = self.heard == now || now >= self.looks_at();
        if self.has_news() && now >= self.next_ack && looks {
            self.next_ack = now + SYN;
            (self.packets_since_ack, self.light_acks) = (0, 1);
            self.acknowledge(now, round_trip, out, stats);
        }
        if self.reports_again() && now >= self.next_nak {
            self.next_nak = now + Span::from_micros(round_trip.srtt_us).max(SYN);
            self.report_missing(now, round_trip, out, stats);
        }
    }

    /// libudt looks at its timers when a packet comes, and where none has come for a SYN; in 2003 it looked all the
    /// time.
    fn looks_at(&self) -> Time {
        match self.version {
            Version::Udt2003 => self.next_ack,
            Version::Udt4 => self.heard + SYN,
        }
    }

    fn acknowledge(&mut self, now: Time, round_trip: &RoundTrip, out: &mut VecDeque<Segment>, stats: &mut Stats) {
        let expected = self.expected();
        if expected > self.last_ack {
            self.last_ack = expected;
            self.delivered = self.bytes_at_base;
        } else {
            let wait = match self.version {
                Version::Udt2003 => Span::from_micros(2 * round_trip.srtt_us),
                Version::Udt4 => round_trip.longest(),
            };
            if now.since(self.last_ack_time) < wait {
                return;
            }
        }
        self.ack_number += 1;
        let with_rates = self.version == Version::Udt2003 || now.since(self.last_ack_time) >= SYN;
        if with_rates {
            self.last_ack_time = now;
        }
        let rates = with_rates.then(|| (self.arrivals.speed(), self.arrivals.capacity()));
        out.push_back(Segment::Ack(Ack {
            ack_number: self.ack_number,
            expected,
            rtt_us: round_trip.srtt_us,
            window_packets: u32::try_from(self.buffer_packets - 1).unwrap_or(u32::MAX),
            rates,
            sample_us: self.sample_us.take(),
        }));
        stats.acks_sent += 1;
        if self.history.len() == ACK_HISTORY {
            self.history.pop_front();
        }
        self.history.push_back((self.ack_number, expected, now));
    }

    /// Loss reports are repeated by a timer in 2003; in UDT4 the sender's time-out stands for that.
    fn reports_again(&self) -> bool {
        self.version == Version::Udt2003 && !self.missing.is_empty()
    }

    fn report_missing(&mut self, now: Time, round_trip: &RoundTrip, out: &mut VecDeque<Segment>, stats: &mut Stats) {
        let mut nak = Nak::of(0, 0);
        nak.count = 0;
        self.missing.report(now, Span::from_micros(round_trip.srtt_us), MAX_RANGES, |first, last| {
            nak.ranges[usize::from(nak.count)] = (first, last);
            nak.count += 1;
        });
        if nak.count > 0 {
            out.push_back(Segment::Nak(nak));
            stats.acks_sent += 1;
        }
    }

    /// The sender has had acknowledgment `ack_number`; returns the round-trip time, us.
    pub(crate) fn handle_ack2(&mut self, now: Time, ack_number: u64) -> Option<u64> {
        let place = self.history.iter().position(|&(number, ..)| number == ack_number)?;
        let (_, expected, sent) = self.history[place];
        self.history.drain(..=place);
        self.last_ack_ack = self.last_ack_ack.max(expected);
        self.sample_us = Some(now.since(sent).as_micros());
        self.sample_us.filter(|&us| us > 0)
    }

    /// Returns the time at which [`Receive::handle_timeout`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Time {
        let ack = if self.has_news() { self.next_ack.max(self.looks_at()) } else { Time::NEVER };
        let nak = if self.reports_again() { self.next_nak } else { Time::NEVER };
        ack.min(nak)
    }
}
