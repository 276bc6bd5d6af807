//! A recorded call of a hook, and the same call made natively.

use crate::controller::Controller;
use crate::sock::{AckSample, CcSock, RateSample};
use std::mem::size_of;

/// The hooks, as `CC_HOOK_*` of congestion/native/sock.h numbers them.
pub const HOOKS: [&str; 11] = [
    "init",
    "ssthresh",
    "cong_avoid",
    "set_state",
    "cwnd_event",
    "in_ack_event",
    "pkts_acked",
    "min_tso_segs",
    "cong_control",
    "undo_cwnd",
    "release",
];

pub(super) const INIT: u32 = 0;
pub(super) const SSTHRESH: u32 = 1;
pub(super) const CONG_AVOID: u32 = 2;
pub(super) const SET_STATE: u32 = 3;
pub(super) const CWND_EVENT: u32 = 4;
pub(super) const IN_ACK_EVENT: u32 = 5;
pub(super) const PKTS_ACKED: u32 = 6;
pub(super) const MIN_TSO_SEGS: u32 = 7;
pub(super) const CONG_CONTROL: u32 = 8;
pub(super) const UNDO_CWND: u32 = 9;
pub(super) const RELEASE: u32 = 10;

/// One call of a hook, before or after: `struct cc_hook_call` of congestion/native/sock.h.
#[repr(C, align(8))]
#[derive(Clone, Debug)]
pub struct HookCall {
    /// Index into [`HOOKS`].
    pub hook: u32,
    /// 0: before the call, 1: after it.
    pub after: u32,
    /// One number per connection; never 0.
    pub connection: u64,
    /// Numbers that the hook is given beside the sender: of `cong_avoid` and `cong_control` two.
    pub args: [u32; 2],
    /// The hook's result, if it has one.
    pub result: u32,
    /// The kernel's clock in ticks, low bits.
    pub ticks: u32,
    /// Given to `cong_control`.
    pub rate: RateSample,
    /// Given to `pkts_acked`.
    pub ack: AckSample,
    /// Zero.
    pub pad: u32,
    /// The sender.
    pub sock: CcSock,
}

/// Bytes of one [`HookCall`] in a recording.
pub const HOOK_CALL_BYTES: usize = size_of::<HookCall>();

impl HookCall {
    pub(super) fn read(bytes: &[u8]) -> HookCall {
        assert_eq!(bytes.len(), HOOK_CALL_BYTES);
        // SAFETY: so many bytes are there; every field is an integer, so that any bytes are a value.
        unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
    }

    pub(super) fn write(&self, to: &mut Vec<u8>) {
        // SAFETY: a structure of integers without padding between them (a test of the layout), read as bytes.
        to.extend_from_slice(unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), HOOK_CALL_BYTES) });
    }

    pub(super) fn hook_name(&self) -> &'static str {
        HOOKS.get(self.hook as usize).copied().unwrap_or("unknown")
    }
}

/// Makes one call as it was recorded, and returns its result, if it has one.
pub(super) fn call(control: &mut Controller, one: &HookCall) -> Option<u32> {
    let [first, second] = one.args;
    match one.hook {
        INIT => control.init(),
        SSTHRESH => return Some(control.ssthresh()),
        CONG_AVOID => control.cong_avoid(first, second),
        SET_STATE => control.call_set_state(first as u8),
        CWND_EVENT => control.call_cwnd_event(first),
        IN_ACK_EVENT => control.in_ack_event(first),
        PKTS_ACKED => control.pkts_acked(&one.ack),
        MIN_TSO_SEGS => return control.min_tso_segs(),
        CONG_CONTROL => control.cong_control(first, second, &one.rate),
        UNDO_CWND => return Some(control.undo_cwnd()),
        RELEASE => control.release(),
        _ => {}
    }
    None
}
