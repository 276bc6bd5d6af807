//! A run of ACKs, each of which lets full segments go: nearly all the work of a sender that has much to send.
//!
//! The same steps in the same order as in `fast_path`, `train` and `output`. Conditions that stay true from one ACK to
//! the next are checked once, and steps that only repeat are left out. A test compares with one call per segment.

use super::timer_state::Pending;
use super::{Arrival, Endpoint, Output, Phase, Rexmit};
use crate::config::Recovery;
use crate::consts::{ecn, NS_PER_US};
use crate::scoreboard::{tag, Entry, Popped};
use crate::segment::Segment;
use congestion::{ack_flags, AckSample, CaState};
use units::Time;

/// The part of an ACK that is written only after the last of several.
#[derive(Clone, Copy, Default)]
struct Last {
    at: u64,
    ts_val: u32,
    ts_ecr: u32,
    /// Transmission of the last entry that it took, ns, and its end.
    tx_ns: u64,
    end: u64,
}

impl Endpoint {
    /// Returns whether ACKs may be taken by [`Endpoint::take_acks`]: this end sends, nothing is SACKed, lost or sent
    /// again, and every segment tells the peer the same.
    #[inline]
    pub(super) fn may_take_acks(&self) -> bool {
        #[cfg(test)]
        if self.slow_path_only {
            return false;
        }
        let s = self.cc.sock();
        self.phase == Phase::Open
            && self.una < self.nxt
            && s.ca_state == CaState::Open as u8
            && s.sacked_out | s.lost_out | s.retrans_out == 0
            // Without fast retransmit RACK has no probe.
            && (self.fast_retransmit || self.recovery != Recovery::Rack)
            && !self.cc.has_cong_control()
            && self.tlp_high_seq == 0
            && self.una >= self.retrans_end
            && self.rack.keeps_reo_wnd()
            && self.rexmit == Rexmit::None
            && !(self.tlp_probe | self.probe_pending | self.fin_queued | self.nospace)
            && self.rx.owes_nothing()
            && self.timers.delack == u64::MAX
            && self.timers.rto_shift == 0
    }

    /// Returns whether the sender is one of [`Endpoint::take_acks`] with `LINUX`: by RACK, which always has a probe
    /// pending, and with Linux's growth.
    #[inline]
    pub(super) fn acts_as_linux(&self) -> bool {
        self.recovery == Recovery::Rack && !self.old_growth
    }

    /// See [`Endpoint::handle_run`]. Without `LINUX` any other growth, and any other recovery, whose timer is the RTO:
    /// what both have in common is compiled for each, since an ACK looks at nothing that stays as it is.
    #[inline]
    pub(super) fn take_acks<const LINUX: bool>(
        &mut self,
        until: Time,
        arrivals: impl Iterator<Item = Arrival>,
        mut output: impl Output,
    ) -> usize {
        let plain_flags = self.plain_flags();
        let peer = self.rx.nxt;
        let mut seg =
            Segment { ack: peer, window: self.rx.wnd as u32, flags: plain_flags, len: self.mss, ..Segment::default() };
        let mss = u64::from(self.mss);
        let mut taken = 0;
        let mut last = Last::default();
        for a in arrivals {
            let plain = a.flags == plain_flags
                && a.len == 0
                && a.sack_count == 0
                && a.seq == peer
                && u64::from(a.window) == self.snd_wnd
                && a.ack > self.una
                // One that acknowledges all leaves nothing to which a timer could belong.
                && a.ack < self.nxt;
            if !plain || a.at >= until || a.at.0 >= self.timers.wake {
                break;
            }
            debug_assert!(a.at.0 >= self.now.max(last.at), "time goes back");
            let Some((room, popped)) = self.take_ack::<LINUX>(&a) else { break };
            taken += 1;
            self.bursts.end_deferral();
            last = Last { at: a.at.0, ts_val: a.ts_val, ts_ecr: a.ts_ecr, tx_ns: popped.last_tx_ns, end: popped.end };
            let mut segments = room;
            if self.nxt + u64::from(room) * mss > a.ack + self.snd_wnd.min(self.write_seq - 1 - a.ack) {
                self.settle::<LINUX>(&last);
                segments = self.segments_of_window();
            }
            seg.seq = self.nxt;
            if self.timestamps {
                seg.ts_val = Self::timestamp_at(a.at.0);
                seg.ts_ecr = a.ts_val;
            }
            if self.bursts.max_bytes > 0 && segments > 0 {
                let bursts = self.bursts_of_ack(a.at.0, (room, segments), |segments| {
                    output.send(a.at, &seg, segments);
                    seg.seq += u64::from(segments) * mss;
                });
                match bursts {
                    Some((0, limited)) => self.defer_after_ack(a.at.0, limited),
                    Some((sent, limited)) => {
                        self.append_train::<LINUX>(a.at.0, sent, limited, popped.next_tx_ns);
                    }
                    None => segments = 0,
                }
                if bursts.is_some() {
                    continue;
                }
            }
            if segments == 0 {
                self.settle::<LINUX>(&last);
                if self.recovery == Recovery::Rack {
                    self.arm_after_ack();
                }
                if !self.transmit_and_go_on(a.at, &mut output) {
                    return taken;
                }
                continue;
            }
            self.append_train::<LINUX>(a.at.0, segments, segments == room, popped.next_tx_ns);
            output.send(a.at, &seg, segments);
        }
        if taken > 0 {
            self.settle::<LINUX>(&last);
        }
        taken
    }

    /// Writes the part that only the last ACK of several leaves behind.
    #[inline(never)]
    fn settle<const LINUX: bool>(&mut self, last: &Last) {
        self.now = last.at;
        self.now_us = last.at / NS_PER_US;
        self.last_ecr = 0;
        if self.timestamps {
            self.rx.ts_recent = last.ts_val;
            self.last_ecr = last.ts_ecr;
        }
        self.retransmits = 0;
        self.snd_wl1 = self.rx.nxt;
        self.wnd_end = self.una + self.snd_wnd;
        self.mark_cursor = self.mark_cursor.max(self.ring.head());
        if LINUX || self.recovery == Recovery::Rack {
            self.rack.advanced = true;
            self.rack.rtt_ns = last.at - last.tx_ns;
            if last.tx_ns >= self.rack.xmit_ns {
                self.rack.xmit_ns = last.tx_ns;
                self.rack.end_seq = last.end;
            }
        }
        self.burst = false;
    }

    /// Takes an ACK (see `handle_fast_path_ack`) but for what [`Endpoint::settle`] does and the probe; returns the
    /// segments that the congestion window has room for, or 0 where more than that is to be looked at, and the entries
    /// that it took. None, and nothing is changed, where it ends within the oldest segment.
    // Once per ACK. What bounds its speed is the number of stores.
    #[inline(always)]
    fn take_ack<const LINUX: bool>(&mut self, a: &Arrival) -> Option<(u32, Popped)> {
        let popped = self.ring.pop_some(a.ack)?;
        let now = a.at.0;
        let now_us = now / NS_PER_US;
        self.una = a.ack;
        let s = self.cc.sock_mut();
        let in_flight = s.packets_out;
        s.tcp_mstamp_us = now_us;
        s.snd_una = a.ack as u32;
        self.cc.in_ack_event(ack_flags::WIN_UPDATE);

        let newest_us = (now - popped.last_tx_ns) / NS_PER_US;
        let rtt_us = (now - popped.first_tx_ns) / NS_PER_US;
        self.rtt.sample_min(now_us, newest_us);
        self.rtt.sample(rtt_us, a.ack, self.nxt);
        self.stats.rtt_sample(rtt_us);
        let (srtt, min) = (self.rtt.srtt_us8(), self.rtt.min_us());
        let s = self.cc.sock_mut();
        s.packets_out = in_flight - popped.count;
        s.delivered = s.delivered.wrapping_add(popped.count);
        s.srtt_us = srtt;
        s.min_rtt_us = min;
        if s.app_limited != 0 && (s.delivered.wrapping_sub(s.app_limited) as i32) > 0 {
            s.app_limited = 0;
        }
        s.first_tx_mstamp_us = popped.last_tx_ns / NS_PER_US;
        let sample =
            AckSample { pkts_acked: popped.count, rtt_us: i32::try_from(newest_us).unwrap_or(i32::MAX), in_flight };
        self.cc.pkts_acked(&sample);
        self.sock().delivered_mstamp_us = now_us;
        if LINUX {
            self.cc.cong_avoid(a.ack as u32, popped.count);
            self.clamp_cwnd();
        } else {
            if self.recovery != Recovery::Rack {
                // See `set_xmit_timer`; nothing that is sent moves it.
                self.timers.arm_xmit(Pending::Retrans, now + self.rtt.rto_ns());
            }
            self.grow(a.ack, popped.count);
        }
        self.refresh_pacing_rate();
        let s = self.cc.sock();
        let goes = s.packets_out < s.snd_cwnd && s.ecn_flags & ecn::OK == 0 && !self.is_pacing();
        Some((if goes { s.snd_cwnd - s.packets_out } else { 0 }, popped))
    }

    /// Arms the probe after an ACK (see `set_xmit_timer`).
    fn arm_after_ack(&mut self) {
        let deadline = self.now + self.wait_after_ack();
        self.timers.arm_xmit(Pending::LossProbe, deadline);
    }

    /// Leaves new data to a later ACK: what `end_burst` and the ACK do then.
    #[inline]
    fn defer_after_ack(&mut self, now: u64, limited: bool) {
        if limited {
            self.note_limited_window(now);
        }
        let deadline = now + self.wait_after_ack();
        self.timers.arm_xmit(Pending::LossProbe, deadline);
    }

    /// The congestion window is the limit (see `cwnd_validate`).
    #[inline(always)]
    fn note_limited_window(&mut self, now: u64) {
        let nxt = self.nxt;
        let s = self.cc.sock_mut();
        s.is_cwnd_limited = 1;
        s.max_packets_out = s.packets_out;
        self.cwnd_usage_seq = nxt;
        self.cwnd_used = 0;
        self.cwnd_stamp_ns = now;
    }

    #[inline]
    fn wait_after_ack(&self) -> u64 {
        let (rto, wait) = (self.rtt.rto_ns(), self.probe_wait());
        if rto > 0 {
            wait.min(rto)
        } else {
            wait
        }
    }

    /// Full segments for which the peer's window, and not the congestion window, is the limit; 0 where something else
    /// is.
    #[inline(never)]
    fn segments_of_window(&self) -> u32 {
        if self.wnd_end >= self.write_seq {
            return 0;
        }
        // Fewer than the congestion window has room for, hence in 32 bits.
        (self.wnd_end.saturating_sub(self.nxt) / u64::from(self.mss)) as u32
    }

    /// Puts `segments` on the scoreboard, after which nothing more can be sent: the congestion window is full
    /// (`limited`), or the peer's (see `transmit_train` and `end_burst`). Arms the probe, also for the ACK before.
    #[inline(always)]
    fn append_train<const LINUX: bool>(&mut self, now: u64, segments: u32, limited: bool, head_tx_ns: u64) {
        let seq = self.nxt;
        let nxt = seq + u64::from(segments) * u64::from(self.mss);
        self.nxt = nxt;
        let probes = LINUX || self.recovery == Recovery::Rack;
        if probes && self.cc.sock().packets_out == 1 {
            // Only then the ACK may have armed the probe for an earlier time than the train does.
            self.timers.wake = self.timers.wake.min(now + self.wait_after_ack());
        }
        let s = self.cc.sock_mut();
        s.lsndtime_us = s.tcp_mstamp_us;
        s.snd_nxt = nxt as u32;
        s.packets_out += segments;
        let entry = Entry {
            seq,
            tx_ns: now,
            delivered: s.delivered,
            len: self.mss as u16,
            flags: if s.app_limited != 0 { tag::APP_LIMITED } else { 0 },
            retrans: 0,
        };
        self.ring.push_plain(entry, segments);
        self.stats.data_segments_sent += u64::from(segments);
        self.stats.segments_sent += u64::from(segments);
        if limited {
            self.note_limited_window(now);
        } else {
            self.cwnd_validate(false);
        }
        if probes {
            self.rearm_probe(now, head_tx_ns);
        }
    }

    /// Sends by [`Endpoint::poll_train`]; returns whether a further ACK may be taken.
    #[inline(never)]
    fn transmit_and_go_on(&mut self, now: Time, output: &mut impl Output) -> bool {
        self.transmit_all(now, &mut Segment::default(), output);
        self.may_take_acks()
    }
}
