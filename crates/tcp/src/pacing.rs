//! The pacing rate that a window gives.

use crate::consts::{PACING_CA_PERCENT, PACING_SS_PERCENT};
use congestion::CcSock;

/// Rate by which the window would be used up in half an RTT in slow start, 5/6 of one otherwise, bytes/s (Linux
/// tcp_update_pacing_rate). `srtt_us` is not 0.
///
/// Product: mss 16 bit * 8e6 (23 bit) * 200 % * window 20 bit: 66 bit at the extreme, hence u128 beyond 2^64.
#[inline]
pub fn pacing_rate(s: &CcSock) -> u64 {
    let percent = if s.snd_cwnd < s.snd_ssthresh / 2 { PACING_SS_PERCENT } else { PACING_CA_PERCENT };
    let window = u64::from(s.snd_cwnd.max(s.packets_out));
    let bytes = window * u64::from(s.mss_cache);
    // srtt_us is 8 times the RTT: bytes * 8 * 10^6 / 100 * percent / srtt_us.
    match bytes.checked_mul(80_000 * percent) {
        Some(product) => product / u64::from(s.srtt_us),
        None => {
            let rate = u128::from(bytes) * u128::from(80_000 * percent) / u128::from(s.srtt_us);
            u64::try_from(rate).unwrap_or(u64::MAX)
        }
    }
}
