//! Use of a congestion window: whether it is the limit (RFC 7661), and what an idle time leaves of it (RFC 5681, 4.1).

use congestion::CcSock;

/// Notes whether the window or the application is the limit (Linux tcp_cwnd_validate). `usage_end`: end of the data for
/// which the last note holds; returns that of the new one, `sent` where there is one.
#[inline]
#[must_use]
pub fn note_window_use(s: &mut CcSock, una: u64, sent: u64, usage_end: u64, limited: bool) -> u64 {
    if una >= usage_end || limited || (s.is_cwnd_limited == 0 && s.packets_out > s.max_packets_out) {
        s.is_cwnd_limited = u8::from(limited);
        s.max_packets_out = s.packets_out;
        return sent;
    }
    usage_end
}

/// Halves the window for each RTO of an idle time, `initial` segments being the least (RFC 2861, 2; Linux
/// tcp_cwnd_restart).
pub fn halve_per_idle_rto(s: &mut CcSock, idle_us: u64, rto_us: u64, initial: u32) {
    let (least, mut idle) = (initial.min(s.snd_cwnd), idle_us);
    while idle > rto_us && s.snd_cwnd > least {
        idle -= rto_us;
        s.snd_cwnd >>= 1;
    }
    s.snd_cwnd = s.snd_cwnd.max(least);
}
