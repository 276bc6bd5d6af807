//! Bursts as Linux makes them: a packet of several segments goes to the device, which cuts it (TSO). Its length follows
//! from the pacing rate (TSO autosizing), and one that would be short waits for the next ACK to make it longer.

use super::burst_state::Deferral;
use super::Endpoint;
use crate::consts::*;
use crate::scoreboard::Entry;
use congestion::CaState;

/// Room of a sender.
#[derive(Clone, Copy)]
struct Room {
    now: u64,
    /// Of the congestion window, segments; at least 1.
    cwnd: u32,
    /// Of the peer's window, bytes.
    peer_bytes: u64,
    /// Data that was written and not sent, bytes; at least 1.
    unsent_bytes: u64,
    /// Segments that go now and are not on the scoreboard yet.
    sent: u32,
}

/// Decision on new data.
enum Burst {
    /// So many segments go.
    Segments(u32),
    /// Nothing goes.
    Deferred(Deferral),
}

impl Endpoint {
    /// Returns whether a burst goes now to which further segments belong.
    #[inline]
    pub(super) fn is_burst_open(&self) -> bool {
        self.bursts.is_open(self.now)
    }

    /// Returns whether a segment at `seq` belongs to the burst that goes now.
    #[inline]
    pub(super) fn is_in_burst(&self, seq: u64) -> bool {
        self.is_burst_open() && self.bursts.end == seq
    }

    /// Returns whether new data may go now: it belongs to the burst, or begins one, or there are none. The congestion
    /// window has room.
    #[inline]
    pub(super) fn may_go_on(&mut self) -> bool {
        self.bursts.max_bytes == 0 || self.burst_room() > 0
    }

    /// Segments of the burst to which new data that goes now belongs; 0: it waits for an ACK. The congestion window has
    /// room.
    #[inline]
    pub(super) fn burst_room(&mut self) -> u32 {
        if self.is_in_burst(self.nxt) {
            return self.bursts.left;
        }
        if self.bursts.deferred != Deferral::None {
            return 0;
        }
        let s = self.cc.sock();
        let room = Room {
            now: self.now,
            // A FIN alone, or on a first duplicate ACK, goes beyond the window.
            cwnd: s.snd_cwnd.saturating_sub(s.in_flight()).max(1),
            peer_bytes: self.wnd_end.saturating_sub(self.nxt),
            unsent_bytes: self.write_seq.saturating_sub(self.nxt),
            sent: 0,
        };
        match self.next_burst(room) {
            Burst::Segments(segments) => {
                self.bursts.next = segments;
                segments
            }
            Burst::Deferred(deferral) => {
                self.bursts.deferred = deferral;
                0
            }
        }
    }

    /// Full segments that go on an ACK at `now`, of which the congestion window has room for `room.0` and both windows
    /// for `room.1`, and whether the congestion window is the limit. `send` gets the length of each burst. None: a
    /// burst is not over.
    #[inline]
    pub(super) fn bursts_of_ack(
        &mut self,
        now: u64,
        room: (u32, u32),
        mut send: impl FnMut(u32),
    ) -> Option<(u32, bool)> {
        if self.bursts.is_open(now) {
            return None;
        }
        let (cwnd, most) = room;
        let mss = u64::from(self.mss);
        let mut sent = 0;
        while sent < most {
            let seq = self.nxt + u64::from(sent) * mss;
            let room = Room {
                now,
                cwnd: cwnd - sent,
                peer_bytes: self.una + self.snd_wnd - seq,
                unsent_bytes: self.write_seq - seq,
                sent,
            };
            match self.next_burst(room) {
                Burst::Segments(segments) => {
                    let segments = segments.min(most - sent);
                    self.bursts.next = segments;
                    self.burst_sent(now, seq, seq + u64::from(segments) * mss, segments);
                    send(segments);
                    sent += segments;
                }
                Burst::Deferred(deferral) => {
                    self.bursts.deferred = deferral;
                    return Some((sent, deferral == Deferral::Cwnd));
                }
            }
        }
        Some((sent, most == cwnd))
    }

    /// Longest burst at the present pacing rate, segments: the data of a millisecond, and on a path of less than 16 ms
    /// a part of the longest packet beside it (Linux tcp_tso_autosize, tcp_tso_segs).
    #[inline]
    fn burst_limit(&mut self) -> u32 {
        let least = self.cc.min_tso_segs().unwrap_or(MIN_TSO_SEGMENTS);
        let most = self.bursts.max_bytes;
        let near = self.cc.sock().min_rtt_us >> TSO_RTT_SHIFT;
        let more = if near < u32::BITS { most >> near } else { 0 };
        let bytes = (self.paced_rate() >> PACING_SHIFT).saturating_add(u64::from(more)).min(u64::from(most));
        (bytes as u32 / self.mss).max(least)
    }

    /// Decides how many segments of new data go as the next packet (Linux tcp_write_xmit, tcp_tso_should_defer).
    #[inline]
    fn next_burst(&mut self, room: Room) -> Burst {
        let limit = self.burst_limit();
        let s = self.cc.sock();
        let mss = u64::from(self.mss);
        let quota = room.cwnd.min(limit).min((s.snd_cwnd >> 1).max(1));
        // A packet that is shorter than what may go takes data from the one behind it (tcp_grow_skb).
        let packet = u64::from(self.packet_left().max(quota)) * mss;
        let is_last = room.unsent_bytes <= packet;
        let packet = packet.min(room.unsent_bytes);
        let cwnd = u64::from(room.cwnd) * mss;
        let both = cwnd.min(room.peer_bytes);
        let goes = packet <= mss
            || both >= u64::from(limit) * mss
            || (both >= packet && !is_last)
            || both * TSO_WIN_DIVISOR >= self.snd_wnd.min(u64::from(s.snd_cwnd) * mss)
            || s.ca_state >= CaState::Recovery as u8
            || room.now > self.last_burst_ns() + NS_PER_MS
            || !self.ack_comes_soon(&room);
        if goes {
            let peer = if room.peer_bytes < cwnd { (room.peer_bytes / mss).max(1) as u32 } else { u32::MAX };
            return Burst::Segments(quota.min(peer));
        }
        let is_cwnd = cwnd < room.peer_bytes && cwnd <= packet;
        Burst::Deferred(if is_cwnd { Deferral::Cwnd } else { Deferral::Other })
    }

    /// Returns whether an ACK is expected within a millisecond, or half the RTT if that is less.
    ///
    /// The second segment in flight makes it due. Linux looks at the first, which is as old: its receiver acknowledges
    /// the end of each packet at once (PSH, tcp_measure_rcv_mss since 6.7), where ours leaves an odd segment to the
    /// next one or to the delayed ACK's timer.
    #[inline]
    fn ack_comes_soon(&self, room: &Room) -> bool {
        let (head, tail) = (self.ring.head(), self.ring.tail());
        let sent_ns = match tail - head {
            0 if room.sent == 0 => return false,
            1 if room.sent == 0 => self.ring.get(head).tx_ns,
            0 | 1 => room.now,
            _ => self.ring.get(head + 1).tx_ns,
        };
        let srtt = u64::from(self.rtt.srtt_us8()) * (NS_PER_US / 8);
        sent_ns + srtt <= room.now + (srtt >> 1).min(NS_PER_MS)
    }

    /// Segments of a whole packet in the write queue.
    #[inline]
    fn whole_packet(&self) -> u32 {
        (self.bursts.max_bytes / self.mss).max(1)
    }

    /// Segments left of the packet in the write queue.
    #[inline]
    fn packet_left(&self) -> u32 {
        match self.bursts.packet_left {
            0 => self.whole_packet(),
            left => left,
        }
    }

    /// Time at which the last packet left, ns (Linux tcp_wstamp_ns).
    #[inline]
    fn last_burst_ns(&self) -> u64 {
        if self.is_pacing() {
            self.bursts.begun_ns.max(self.pace_next_ns)
        } else {
            self.bursts.begun_ns
        }
    }

    /// Counts `segments` of new data from `seq` to `end` that go at `now`; the burst that they begin is taken from the
    /// packet in the write queue.
    #[inline]
    pub(super) fn burst_sent(&mut self, now: u64, seq: u64, end: u64, segments: u32) {
        if self.bursts.max_bytes == 0 {
            return;
        }
        let Some(length) = self.bursts.add(now, seq, end, segments) else { return };
        let left = self.packet_left();
        // Segments that it took from the packet behind it are missing there.
        self.bursts.packet_left =
            if length <= left { left - length } else { self.whole_packet().saturating_sub(length - left) };
    }

    /// Counts a segment that is sent again. Segments that follow each other go as one packet.
    #[inline]
    pub(super) fn burst_sent_again(&mut self, entry: &Entry) {
        if self.bursts.max_bytes == 0 {
            return;
        }
        if !self.is_in_burst(entry.seq) {
            self.bursts.next = 1;
            if self.is_pacing() {
                let limit = self.burst_limit();
                let s = self.cc.sock();
                self.bursts.next = limit.min(s.snd_cwnd.saturating_sub(s.in_flight()) + 1);
            }
        }
        self.bursts.add(self.now, entry.seq, entry.end(), 1);
    }
}
