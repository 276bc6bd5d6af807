//! The hooks of an algorithm, as functions of C.

use crate::sock::{AckSample, CcSock, RateSample};
use std::ffi::c_int;

pub(crate) type Hook = unsafe extern "C" fn(*mut CcSock);
pub(crate) type HookGet = unsafe extern "C" fn(*mut CcSock) -> u32;
pub(crate) type HookU32 = unsafe extern "C" fn(*mut CcSock, u32);

/// The hooks of an algorithm, each a plain function of C; those that Linux requires are there.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    pub(crate) ssthresh: HookGet,
    pub(crate) undo_cwnd: HookGet,
    pub(crate) cong_avoid: Option<unsafe extern "C" fn(*mut CcSock, u32, u32)>,
    pub(crate) pkts_acked: Option<unsafe extern "C" fn(*mut CcSock, *const AckSample)>,
    pub(crate) cong_control: Option<unsafe extern "C" fn(*mut CcSock, u32, c_int, *const RateSample)>,
    pub(crate) in_ack_event: Option<HookU32>,
    pub(crate) cwnd_event: Option<HookU32>,
    pub(crate) set_state: Option<unsafe extern "C" fn(*mut CcSock, u8)>,
    pub(crate) min_tso_segs: Option<HookGet>,
    pub(crate) init: Option<Hook>,
    pub(crate) release: Option<Hook>,
}
