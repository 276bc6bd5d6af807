//! Connections at the port whose peers have not shown the token: each has a thread, a time limit, and a place that a
//! new connection may take.

use crate::session::{lock, wait, GLANCE};
use crate::transport::Handle;
use admission::{Limits, Pending};
use rustix::process::{getrlimit, Resource};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use units::{Span, Time};

/// Handshakes at once: twice the 257 connections that the other end opens at once. They may take a quarter of the
/// process's descriptors, since files need the others.
const HANDSHAKES_MAX: usize = 512;
const HANDSHAKES_MIN: usize = 16;
/// Time for TLS and the token.
pub(crate) const HANDSHAKE: Span = Span::from_secs(10);
/// Time for a peer with a wrong token to read the refusal.
const REFUSAL: Span = Span::from_secs(1);

struct State {
    pending: Pending<u64>,
    handles: BTreeMap<u64, Arc<dyn Handle>>,
    next: u64,
    /// Threads, those of displaced connections included.
    threads: usize,
}

/// See the module.
pub(crate) struct Handshakes {
    state: Mutex<State>,
    ended: Condvar,
    max: usize,
    refused: AtomicU64,
}

impl Handshakes {
    pub fn new() -> Handshakes {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let max = usize::try_from(descriptors / 4).unwrap_or(usize::MAX).clamp(HANDSHAKES_MIN, HANDSHAKES_MAX);
        let mut seed = [0; 8];
        // Without random numbers an attacker may know whom a new connection displaces, and no more.
        let _ = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
        let limits = Limits { total: max, per_address: max, time: HANDSHAKE };
        Handshakes {
            state: Mutex::new(State {
                pending: Pending::new(limits, u64::from_ne_bytes(seed)),
                handles: BTreeMap::new(),
                next: 0,
                threads: 0,
            }),
            ended: Condvar::new(),
            max,
            refused: AtomicU64::new(0),
        }
    }

    /// Connections without the token that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Counts a connection that did not authenticate.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// Closes connections whose time is over.
    pub fn handle_timeout(&self) {
        let state = &mut *lock(&self.state);
        for late in state.pending.expire(now()) {
            abort(state.handles.remove(&late));
        }
    }

    /// Closes all: the copy is over, and threads of handshakes end.
    pub fn close(&self) {
        let state = &mut *lock(&self.state);
        for handle in state.handles.values() {
            handle.abort();
        }
    }

    /// True if another connection may be accepted; waits briefly while threads of displaced connections end.
    pub fn has_room(&self) -> bool {
        let mut state = lock(&self.state);
        if state.threads >= 2 * self.max {
            state = wait(&self.ended, state, GLANCE);
        }
        state.threads < 2 * self.max
    }

    /// Admits a connection in place of another if need be; the caller runs its handshake in a thread.
    pub fn begin(&self, peer: IpAddr, handle: Arc<dyn Handle>) -> Handshake<'_> {
        let state = &mut *lock(&self.state);
        let number = state.next;
        state.next += 1;
        state.threads += 1;
        state.handles.insert(number, handle);
        if let Some(displaced) = state.pending.admit(now(), number, peer, |_| ()) {
            abort(state.handles.remove(&displaced));
        }
        Handshake { all: self, number }
    }
}

fn abort(handle: Option<Arc<dyn Handle>>) {
    if let Some(handle) = handle {
        handle.abort();
    }
}

fn now() -> Time {
    Time(path_net::monotonic_ns())
}

/// A handshake in progress. Dropped without [`Handshake::authenticate`], it has failed and its connection is closed.
pub(crate) struct Handshake<'a> {
    all: &'a Handshakes,
    number: u64,
}

impl Handshake<'_> {
    /// The peer has shown the token. False: its place was taken before, and its connection closed.
    pub fn authenticate(&self) -> bool {
        let state = &mut *lock(&self.all.state);
        state.handles.remove(&self.number);
        state.pending.remove(&self.number)
    }

    /// False: it was closed here, since it was late or made room for another.
    pub fn is_pending(&self) -> bool {
        lock(&self.all.state).handles.contains_key(&self.number)
    }

    /// The token is wrong: the peer has little time left.
    pub fn refuse(&self) {
        lock(&self.all.state).pending.shorten(now(), &self.number, REFUSAL);
    }
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        let state = &mut *lock(&self.all.state);
        state.pending.remove(&self.number);
        state.threads -= 1;
        abort(state.handles.remove(&self.number));
        self.all.ended.notify_all();
    }
}
