//! A function for each hook that stands in its place: it notes the call, and gives the hook a copy of the sender that
//! ends at a page without access.

use super::line::Line;
use super::slot::Slot;
use super::{signals, watchdog};
use crate::hooks::Hooks;
use crate::own::Sender;
use crate::sock::{AckSample, CcSock, RateSample};
use std::ffi::c_int;
use std::ptr;

/// The functions in place of those hooks that there are.
pub(crate) fn wrapped(hooks: &Hooks) -> Hooks {
    Hooks {
        ssthresh,
        undo_cwnd,
        cong_avoid: hooks.cong_avoid.map(|_| cong_avoid as _),
        pkts_acked: hooks.pkts_acked.map(|_| pkts_acked as _),
        cong_control: hooks.cong_control.map(|_| cong_control as _),
        in_ack_event: hooks.in_ack_event.map(|_| in_ack_event as _),
        cwnd_event: hooks.cwnd_event.map(|_| cwnd_event as _),
        set_state: hooks.set_state.map(|_| set_state as _),
        min_tso_segs: hooks.min_tso_segs.map(|_| min_tso_segs as _),
        init: hooks.init.map(|_| init as _),
        release: hooks.release.map(|_| release as _),
    }
}

/// # Safety
/// Here and below: `sk` points to a [`Sender`], whose first field it is.
unsafe fn call<R>(
    sk: *mut CcSock,
    name: &'static &'static str,
    hook: impl FnOnce(&Hooks, *mut CcSock) -> Option<R>,
) -> Option<R> {
    // SAFETY: as the caller promises.
    let own = unsafe { (*sk.cast::<Sender>()).own.as_deref() }?;
    let slot = Slot::of_thread().unwrap_or_else(begin);
    let copy = slot.sock.as_ptr();
    // SAFETY: the caller's sender; the copy is this thread's, and no hook calls another.
    let (sock, params, bound) = unsafe {
        ptr::copy_nonoverlapping(sk, copy, 1);
        (&*sk, (*sk).params, ((*sk).gso_max_bytes, (*sk).pad))
    };
    let marker = 0_u8;
    slot.enter(own.subject, name, sock, ptr::from_ref(&marker).addr());
    let result = hook(&own.hooks, copy);
    slot.leave();
    // SAFETY: a sender is numbers alone: whatever the hook has written is one.
    unsafe {
        if (*copy).params != params || ((*copy).gso_max_bytes, (*copy).pad) != bound {
            if let Some(call) = slot.call() {
                let mut line = Line::of(&call);
                line.push("writes outside of its state, over the sender's fields beside it");
                line.end();
            }
        }
        ptr::copy_nonoverlapping(copy, sk, 1);
    }
    result
}

/// Puts this thread under the guard; the first thread also installs the guard of the process.
#[cold]
fn begin() -> &'static Slot {
    let slot = Slot::make();
    signals::install();
    watchdog::start();
    slot
}

unsafe extern "C" fn ssthresh(sk: *mut CcSock) -> u32 {
    // SAFETY: here and below: see `call`; the hook has this signature.
    unsafe { call(sk, &"ssthresh", |hooks, sk| Some((hooks.ssthresh)(sk))) }.unwrap_or(0)
}

unsafe extern "C" fn undo_cwnd(sk: *mut CcSock) -> u32 {
    // SAFETY: see `ssthresh`.
    unsafe { call(sk, &"undo_cwnd", |hooks, sk| Some((hooks.undo_cwnd)(sk))) }.unwrap_or(0)
}

unsafe extern "C" fn cong_avoid(sk: *mut CcSock, ack: u32, acked: u32) {
    // SAFETY: see `ssthresh`.
    unsafe { call(sk, &"cong_avoid", |hooks, sk| hooks.cong_avoid.map(|hook| hook(sk, ack, acked))) };
}

unsafe extern "C" fn pkts_acked(sk: *mut CcSock, sample: *const AckSample) {
    // SAFETY: see `ssthresh`.
    unsafe { call(sk, &"pkts_acked", |hooks, sk| hooks.pkts_acked.map(|hook| hook(sk, sample))) };
}

unsafe extern "C" fn cong_control(sk: *mut CcSock, ack: u32, flag: c_int, sample: *const RateSample) {
    // SAFETY: see `ssthresh`.
    unsafe { call(sk, &"cong_control", |hooks, sk| hooks.cong_control.map(|hook| hook(sk, ack, flag, sample))) };
}

unsafe extern "C" fn in_ack_event(sk: *mut CcSock, flags: u32) {
    // SAFETY: see `ssthresh`.
    unsafe { call(sk, &"in_ack_event", |hooks, sk| hooks.in_ack_event.map(|hook| hook(sk, flags))) };
}

unsafe extern "C" fn cwnd_event(sk: *mut CcSock, event: u32) {
    // SAFETY: see `ssthresh`.
    unsafe { call(sk, &"cwnd_event", |hooks, sk| hooks.cwnd_event.map(|hook| hook(sk, event))) };
}

unsafe extern "C" fn set_state(sk: *mut CcSock, state: u8) {
    // SAFETY: see `ssthresh`.
    unsafe { call(sk, &"set_state", |hooks, sk| hooks.set_state.map(|hook| hook(sk, state))) };
}

unsafe extern "C" fn min_tso_segs(sk: *mut CcSock) -> u32 {
    // SAFETY: see `ssthresh`.
    unsafe { call(sk, &"min_tso_segs", |hooks, sk| hooks.min_tso_segs.map(|hook| hook(sk))) }.unwrap_or(0)
}

unsafe extern "C" fn init(sk: *mut CcSock) {
    // SAFETY: see `ssthresh`.
    unsafe { call(sk, &"init", |hooks, sk| hooks.init.map(|hook| hook(sk))) };
}

unsafe extern "C" fn release(sk: *mut CcSock) {
    // SAFETY: see `ssthresh`.
    unsafe { call(sk, &"release", |hooks, sk| hooks.release.map(|hook| hook(sk))) };
}
