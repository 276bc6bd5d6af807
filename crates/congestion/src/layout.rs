//! Rust's shared structures against the C compiler's own account of them (`layout.c`).

use crate::descriptor::{RawAlgorithm, RawParam};
use crate::parity::HookCall;
use crate::sock::{AckSample, CcSock, RateSample};
use std::collections::BTreeMap;
use std::ffi::{c_char, CStr};
use std::mem::{align_of, size_of, size_of_val, MaybeUninit};
use std::ptr::addr_of;

#[repr(C)]
struct Field {
    of: *const c_char,
    field: *const c_char,
    offset: u64,
    size: u64,
}

extern "C" {
    static cc_layout: Field;
    static cc_layout_count: u64;
}

type Layout = BTreeMap<(String, String), (usize, usize)>;

fn as_c_has_it() -> Layout {
    let text = |p: *const c_char| {
        if p.is_null() {
            return String::new();
        }
        // SAFETY: layout.c's strings are constants.
        unsafe { CStr::from_ptr(p) }.to_str().expect("ASCII").to_owned()
    };
    // SAFETY: layout.c defines an array of so many of these, constant.
    let fields = unsafe { std::slice::from_raw_parts(addr_of!(cc_layout), cc_layout_count as usize) };
    fields.iter().map(|f| ((text(f.of), text(f.field)), (f.offset as usize, f.size as usize))).collect()
}

/// Adds the structure and the listed fields; `rust = c` where a name differs.
macro_rules! lay_out {
    ($to:ident, $type:ty = $name:literal, $($field:ident $(= $c:literal)?),*) => {
        $to.insert(($name.to_owned(), String::new()), (align_of::<$type>(), size_of::<$type>()));
        $(
            let place = MaybeUninit::<$type>::uninit();
            let base = place.as_ptr();
            // SAFETY: addresses inside one object; nothing is read but for the size of a place, which is its type's.
            let (offset, size) = unsafe {
                let field = addr_of!((*base).$field);
                (field as usize - base as usize, size_of_pointee(field))
            };
            let c = [$($c,)? stringify!($field)][0];
            $to.insert(($name.to_owned(), c.to_owned()), (offset, size));
        )*
    };
}

fn size_of_pointee<T>(_: *const T) -> usize {
    size_of::<T>()
}

fn as_rust_has_it() -> Layout {
    let mut to = Layout::new();
    lay_out!(
        to,
        CcSock = "cc_sock",
        snd_cwnd,
        snd_ssthresh,
        snd_cwnd_cnt,
        snd_cwnd_clamp,
        prior_cwnd,
        packets_out,
        sacked_out,
        lost_out,
        retrans_out,
        max_packets_out,
        delivered,
        delivered_ce,
        lost,
        app_limited,
        srtt_us,
        min_rtt_us,
        mss_cache,
        snd_una,
        snd_nxt,
        is_cwnd_limited,
        ca_state,
        pacing_status,
        ecn_flags,
        pacing_rate,
        tcp_mstamp_us,
        delivered_mstamp_us,
        first_tx_mstamp_us,
        lsndtime_us,
        next_send_us,
        params,
        private,
        gso_max_bytes,
        pad
    );
    lay_out!(to, HookCall = "cc_hook_call", hook, after, connection, args, result, ticks, rate, ack, pad, sock);
    lay_out!(to, AckSample = "cc_ack_sample", pkts_acked, rtt_us, in_flight);
    lay_out!(
        to,
        RateSample = "cc_rate_sample",
        prior_mstamp_us,
        prior_delivered,
        prior_delivered_ce,
        delivered,
        delivered_ce,
        interval_us,
        snd_interval_us,
        rcv_interval_us,
        rtt_us,
        losses,
        acked_sacked,
        prior_in_flight,
        last_end_seq,
        is_app_limited,
        is_retrans,
        is_ack_delayed,
        pad
    );
    lay_out!(to, RawParam = "cc_param", name, unit, doc, initial, min, max, scale);
    lay_out!(
        to,
        RawAlgorithm = "cc_algorithm",
        abi_version,
        sock_bytes,
        name,
        summary,
        source,
        params,
        params_count,
        flags,
        init,
        release,
        ssthresh,
        cong_avoid,
        set_state,
        cwnd_event,
        in_ack_event,
        pkts_acked,
        min_tso_segs,
        cong_control,
        undo_cwnd
    );
    to
}

#[test]
fn rust_and_c_agree_on_every_field() {
    assert_eq!(as_rust_has_it(), as_c_has_it());
}

#[test]
fn no_field_is_forgotten() {
    // The fields that C lists fill each structure, but for the padding at the end of AckSample's peers: none has any.
    let c = as_c_has_it();
    for whole in ["cc_sock", "cc_hook_call", "cc_ack_sample", "cc_rate_sample", "cc_param", "cc_algorithm"] {
        let sum: usize =
            c.iter().filter(|((of, field), _)| of == whole && !field.is_empty()).map(|(_, (_, s))| s).sum();
        let total = c[&(whole.to_owned(), String::new())].1;
        assert!(total - sum < 8, "{whole}: {sum} of {total} bytes are listed");
    }
    let sock = CcSock::default();
    assert_eq!(size_of_val(&sock.private), crate::sock::PRIVATE_BYTES);
}
