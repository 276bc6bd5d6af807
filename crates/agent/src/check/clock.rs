//! The host's clock, and how well it is kept: adjtimex(2).

use serde_json::{json, Value};
use units::NS_PER_S;

/// State of the clock that nobody keeps (include/uapi/linux/timex.h).
const TIME_ERROR: libc::c_int = 5;

/// Returns the time of day now, and the kernel's word on its error; bounds are in s.
pub fn answer() -> Value {
    // SAFETY: all zeros are valid, and modes = 0 changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is valid to read and to write.
    let status = unsafe { libc::adjtimex(&mut state) };
    if status < 0 {
        return json!({"time_ns": time_ns()});
    }
    let seconds = |us: libc::c_long| us as f64 / 1e6;
    json!({
        "time_ns": time_ns(),
        "synchronised": status != TIME_ERROR && state.status & libc::STA_UNSYNC == 0,
        "estimated_error_s": seconds(state.esterror),
        "max_error_s": seconds(state.maxerror),
    })
}

fn time_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}
