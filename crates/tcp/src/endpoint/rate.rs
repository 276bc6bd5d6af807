//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation; Linux tcp_rate.c).

use super::ack_state::{flag, AckState};
use super::Endpoint;
use crate::scoreboard::{tag, Entry, SentRate};
use congestion::RateSample;

impl Endpoint {
    /// Fills in what an entry remembers from the time it was sent (tcp_rate_skb_sent).
    #[inline]
    pub(crate) fn rate_sent(&mut self, entry: &mut Entry) -> SentRate {
        let now_us = self.now_us;
        let rated = self.ring.is_rated();
        let s = self.cc.sock_mut();
        if s.packets_out == 0 {
            s.first_tx_mstamp_us = now_us;
            s.delivered_mstamp_us = now_us;
        }
        entry.delivered = s.delivered;
        entry.flags &= !(tag::APP_LIMITED | tag::RATED);
        if s.app_limited != 0 {
            entry.flags |= tag::APP_LIMITED;
        }
        if !rated {
            return SentRate::default();
        }
        SentRate {
            since_delivered_us: u32::try_from(now_us - s.delivered_mstamp_us).unwrap_or(u32::MAX),
            since_first_tx_us: u32::try_from(now_us.saturating_sub(s.first_tx_mstamp_us)).unwrap_or(u32::MAX),
        }
    }

    /// The sample of an ACK (tcp_rate_gen). `prior_delivered_ce` is taken from before the ACK: entries do not keep it.
    #[inline]
    pub(crate) fn rate_sample(&mut self, a: &AckState) -> RateSample {
        let now_us = self.now_us;
        let min_rtt = self.rtt.min_us();
        let s = self.cc.sock_mut();
        let delivered = s.delivered.wrapping_sub(a.prior_delivered);
        if s.app_limited != 0 && (s.delivered.wrapping_sub(s.app_limited) as i32) > 0 {
            s.app_limited = 0;
        }
        let mut rs = RateSample {
            delivered: -1,
            interval_us: -1,
            rtt_us: a.ca_rtt_us,
            losses: s.lost.wrapping_sub(a.prior_lost) as i32,
            acked_sacked: delivered,
            prior_in_flight: a.prior_in_flight,
            prior_delivered_ce: a.prior_delivered_ce,
            is_ack_delayed: u8::from(a.flag & flag::ACK_MAYBE_DELAYED != 0),
            ..RateSample::default()
        };
        if a.newest.valid {
            let (e, rate) = (&a.newest.entry, &a.newest.rate);
            let tx_us = e.tx_ns / crate::consts::NS_PER_US;
            s.first_tx_mstamp_us = tx_us;
            rs.prior_delivered = e.delivered;
            rs.prior_mstamp_us = tx_us.saturating_sub(u64::from(rate.since_delivered_us));
            rs.is_app_limited = u8::from(e.flags & tag::APP_LIMITED != 0);
            rs.is_retrans = u8::from(e.flags & (tag::EVER_RETRANS | tag::RETRANS) != 0);
            rs.last_end_seq = e.end() as u32;
            rs.snd_interval_us = rate.since_first_tx_us;
            rs.delivered = s.delivered.wrapping_sub(e.delivered) as i32;
            rs.delivered_ce = s.delivered_ce.wrapping_sub(a.prior_delivered_ce) as i32;
            let ack_us = now_us - rs.prior_mstamp_us;
            rs.rcv_interval_us = u32::try_from(ack_us).unwrap_or(u32::MAX);
            rs.interval_us = i64::from(rs.snd_interval_us).max(ack_us as i64);
            if rs.interval_us < i64::from(min_rtt) {
                rs.interval_us = -1;
            }
        }
        if delivered > 0 {
            s.delivered_mstamp_us = now_us;
        }
        rs
    }

    /// Marks the start of a bubble when the application has less to send than the window allows
    /// (tcp_rate_check_app_limited).
    pub(crate) fn check_app_limited(&mut self) {
        let unsent = self.bytes_unsent();
        let mss = u64::from(self.mss);
        let s = self.sock();
        if unsent < mss && s.in_flight() < s.snd_cwnd && s.lost_out <= s.retrans_out {
            s.app_limited = s.delivered.wrapping_add(s.in_flight()).max(1);
        }
    }
}
