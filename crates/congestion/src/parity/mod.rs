//! One source, two builds: calls that a BPF build answered, made again natively and compared, one by one.
//!
//! A recording is a sequence of [`HookCall`], each call once before and once after. It comes from the running kernel
//! (congestion/bpf/record.h), or its inputs from [`synthetic`] and its answers from BPF programs that are run one at a
//! time (congestion/bpf/step.h). Each call is replayed from the recorded state, so that one difference does not hide
//! the next; that the algorithm's own state is the same before a call as after the one before it is checked apart, and
//! with both the whole sequence is the same.

mod hook_call;
mod synthetic;

pub use hook_call::{HookCall, HOOKS, HOOK_CALL_BYTES};
pub use synthetic::synthetic;

use crate::controller::{Controller, ParamError};
use crate::descriptor::Algorithm;
use crate::sock::{MAX_PARAMS, PRIVATE_BYTES};
use hook_call::{call, SSTHRESH};
use std::collections::BTreeMap;

/// Differences that are kept in full; the rest are counted.
const KEPT: usize = 20;

/// Reductions of the window that are kept.
const REDUCTIONS: usize = 1000;

/// A value that the two builds do not agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Number of the call within the recording, from 1.
    pub step: u64,
    /// Number of its connection, from 1 in the order of their first calls.
    pub connection: u64,
    /// The hook.
    pub hook: &'static str,
    /// The value that differs: a field that algorithms write, "result", or "private[i]", the i-th 8 bytes of the state.
    pub field: String,
    /// As BPF left it.
    pub bpf: u64,
    /// As the native build does.
    pub native: u64,
}

/// A reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// Number of its connection.
    pub connection: u64,
    /// Window before, segments.
    pub cwnd: u32,
    /// The threshold that the BPF build returned, segments.
    pub ssthresh: u32,
}

/// The outcome of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Calls compared.
    pub steps: u64,
    /// Calls compared, by hook; in the order of [`HOOKS`].
    pub by_hook: [u64; HOOKS.len()],
    /// Connections in the recording.
    pub connections: u64,
    /// Records without their other half: the ring buffer was full.
    pub unpaired: u64,
    /// Calls before which the algorithm's state was not what the call before had left, although none is missing.
    pub breaks: u64,
    /// Calls during which the kernel's clock went on, so that `cc_idle_us` may have given either of two values.
    pub ticked: u64,
    /// Calls with a difference.
    pub differing: u64,
    /// The first of them, value by value.
    pub differences: Vec<Difference>,
    /// The first reductions of the window.
    pub reductions: Vec<Reduction>,
    /// Least and greatest window before a call, segments.
    pub cwnd_range: Option<(u32, u32)>,
}

/// The state of a connection.
struct Connection {
    number: u64,
    /// A call that has begun.
    begun: Option<HookCall>,
    /// The algorithm's state after the last call, unless one is missing.
    state: Option<[u64; PRIVATE_BYTES / 8]>,
}

/// Makes every call of `recording` natively, under `algorithm` with the parameters `values`, and compares.
///
/// # Errors
/// A parameter that the algorithm does not have, or a value outside its range.
pub fn replay(
    algorithm: &Algorithm,
    values: &BTreeMap<String, i64>,
    recording: &[u8],
) -> Result<Comparison, ParamError> {
    let mut control = Controller::new(algorithm, values)?;
    let params = control.sock().params;
    let mut found = Comparison::default();
    let mut connections: BTreeMap<u64, Connection> = BTreeMap::new();
    for one in recording.chunks_exact(HOOK_CALL_BYTES).map(HookCall::read) {
        let next = connections.len() as u64 + 1;
        let connection =
            connections.entry(one.connection).or_insert(Connection { number: next, begun: None, state: None });
        if one.after == 0 {
            if connection.begun.replace(one).is_some() {
                found.unpaired += 1;
                connection.state = None;
            }
            continue;
        }
        match connection.begun.take() {
            Some(before) if before.hook == one.hook => {
                found.compare(&mut control, &params, connection, &before, &one);
                connection.state = Some(one.sock.private);
            }
            other => {
                found.unpaired += 1 + u64::from(other.is_some());
                connection.state = None;
            }
        }
    }
    found.unpaired += connections.values().filter(|c| c.begun.is_some()).count() as u64;
    found.connections = connections.len() as u64;
    Ok(found)
}

impl Comparison {
    fn compare(
        &mut self,
        control: &mut Controller,
        params: &[i64; MAX_PARAMS],
        connection: &Connection,
        before: &HookCall,
        after: &HookCall,
    ) {
        self.steps += 1;
        if let Some(count) = self.by_hook.get_mut(before.hook as usize) {
            *count += 1;
        }
        let cwnd = before.sock.snd_cwnd;
        self.cwnd_range = Some(self.cwnd_range.map_or((cwnd, cwnd), |(a, b)| (a.min(cwnd), b.max(cwnd))));
        let fresh = before.sock.private == [0; PRIVATE_BYTES / 8];
        // The kernel gives a socket's memory to the next connection, with the state cleared.
        let goes_on = connection.state.is_none_or(|state| state == before.sock.private) || fresh;
        if !goes_on {
            self.breaks += 1;
        }
        if before.hook == SSTHRESH && self.reductions.len() < REDUCTIONS {
            self.reductions.push(Reduction { connection: connection.number, cwnd, ssthresh: after.result });
        }

        let mut differ = differing(control, params, before, before.sock.lsndtime_us, after);
        if before.ticks != after.ticks {
            self.ticked += 1;
            if !differ.is_empty() {
                let later = differing(control, params, before, after.sock.lsndtime_us, after);
                if later.is_empty() {
                    differ = later;
                }
            }
        }
        if differ.is_empty() {
            return;
        }
        self.differing += 1;
        let (step, connection, hook) = (self.steps, connection.number, before.hook_name());
        let room = KEPT.saturating_sub(self.differences.len());
        self.differences.extend(differ.into_iter().take(room).map(|(field, bpf, native)| Difference {
            step,
            connection,
            hook,
            field,
            bpf,
            native,
        }));
    }
}

/// The values that differ once the call has been made natively: field, as BPF left it, as the native build does.
fn differing(
    control: &mut Controller,
    params: &[i64; MAX_PARAMS],
    before: &HookCall,
    lsndtime_us: u64,
    after: &HookCall,
) -> Vec<(String, u64, u64)> {
    *control.sock_mut() = before.sock.clone();
    control.sock_mut().params = *params;
    control.sock_mut().lsndtime_us = lsndtime_us;
    let result = call(control, before);
    let (ours, theirs) = (control.sock(), &after.sock);
    let mut pairs = vec![
        ("snd_cwnd", u64::from(theirs.snd_cwnd), u64::from(ours.snd_cwnd)),
        ("snd_ssthresh", theirs.snd_ssthresh.into(), ours.snd_ssthresh.into()),
        ("snd_cwnd_cnt", theirs.snd_cwnd_cnt.into(), ours.snd_cwnd_cnt.into()),
        ("app_limited", theirs.app_limited.into(), ours.app_limited.into()),
        ("pacing_status", theirs.pacing_status.into(), ours.pacing_status.into()),
        ("ecn_flags", theirs.ecn_flags.into(), ours.ecn_flags.into()),
        ("pacing_rate", theirs.pacing_rate, ours.pacing_rate),
    ];
    if let Some(result) = result {
        pairs.push(("result", after.result.into(), result.into()));
    }
    let fields = pairs.into_iter().map(|(name, bpf, native)| (name.to_owned(), bpf, native));
    let words = (0..PRIVATE_BYTES / 8).map(|i| (format!("private[{i}]"), theirs.private[i], ours.private[i]));
    fields.chain(words).filter(|(_, bpf, native)| bpf != native).collect()
}

#[cfg(test)]
mod tests;
