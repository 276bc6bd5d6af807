//! The rules for a receiving end, which sees less: whether it is the limit itself.

use crate::counters::{mean, percentile};
use crate::sample::{Flow, Sample};
use crate::verdict::{Confidence, Limit};

/// Share of the room for data in which it waits to be read, on average, from which on the application is the limit.
const UNREAD: f64 = 0.1;

/// Goodput in a round trip, as a part of the window that is offered: near 1 where the window is the limit.
const WINDOW_USED: f64 = 0.75;

/// Returns the limit of a flow as its receiver sees it, or why there is none to name.
pub(crate) fn limit_of(flow: &Flow, goodput_bps: f64) -> Result<(Limit, Confidence, String), String> {
    let values = |of: fn(&Sample) -> Option<f64>| flow.samples.iter().filter_map(of).collect::<Vec<_>>();
    let windows = values(|s| s.rcv_wnd_bytes.map(|bytes| bytes as f64));
    if windows.is_empty() {
        return Err("this kernel does not tell the window that it offers (Linux 6.2 or later)".into());
    }
    let room = |s: &Sample| Some(s.unread_bytes as f64 / (s.unread_bytes + s.rcv_wnd_bytes?).max(1) as f64);
    let unread = mean(&values(room)).unwrap_or(0.0);
    let waiting = mean(&values(|s| Some(s.unread_bytes as f64))).unwrap_or(0.0).round();
    if unread >= UNREAD {
        let sure = if unread >= 2.0 * UNREAD { Confidence::Clear } else { Confidence::Likely };
        return Ok((Limit::ReceivingApplication, sure, format!("{waiting} bytes wait to be read, on average")));
    }
    // Its least value is without what waited in a queue.
    let rtt_us = values(|s| s.rcv_rtt_us.map(|us| us as f64)).into_iter().fold(f64::INFINITY, f64::min);
    let window = percentile(&windows, 0.9);
    let used = goodput_bps * rtt_us / 8e6 / window.max(1.0);
    if rtt_us.is_finite() && (WINDOW_USED..1.5).contains(&used) {
        let because =
            format!("a window of {window} bytes arrives in each round trip of {} ms", (rtt_us / 10.0).round() / 100.0);
        return Ok((Limit::ReceiveWindow, Confidence::Likely, because));
    }
    let [first, .., last] = &flow.samples[..] else { return Err("seen too briefly".into()) };
    let gaps = last.out_of_order.zip(first.out_of_order).map_or(0, |(now, then)| now.saturating_sub(then));
    Err(if gaps > 0 {
        format!(
            "not by this end: data is read, the window has room; {gaps} segments came behind a gap: watch the sender"
        )
    } else {
        "not by this end: data is read, and the window has room: watch the sender".into()
    })
}
