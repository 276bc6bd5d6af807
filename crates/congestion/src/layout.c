/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How the C compiler lays out what it shares with Rust: read by the tests of layout.rs. */
#include "cc.h"

struct cc_layout_field {
	const char *type;
	const char *field; /* null: the whole structure, with offset = alignment */
	u64 offset;
	u64 size;
};

#define WHOLE(type) { #type, 0, _Alignof(struct type), sizeof(struct type) }
#define FIELD(type, field) { #type, #field, __builtin_offsetof(struct type, field), sizeof(((struct type *)0)->field) }

extern const struct cc_layout_field cc_layout[];
extern const u64 cc_layout_count;

const struct cc_layout_field cc_layout[] = {
	WHOLE(cc_sock),
	FIELD(cc_sock, snd_cwnd),
	FIELD(cc_sock, snd_ssthresh),
	FIELD(cc_sock, snd_cwnd_cnt),
	FIELD(cc_sock, snd_cwnd_clamp),
	FIELD(cc_sock, prior_cwnd),
	FIELD(cc_sock, packets_out),
	FIELD(cc_sock, sacked_out),
	FIELD(cc_sock, lost_out),
	FIELD(cc_sock, retrans_out),
	FIELD(cc_sock, max_packets_out),
	FIELD(cc_sock, delivered),
	FIELD(cc_sock, delivered_ce),
	FIELD(cc_sock, lost),
	FIELD(cc_sock, app_limited),
	FIELD(cc_sock, srtt_us),
	FIELD(cc_sock, min_rtt_us),
	FIELD(cc_sock, mss_cache),
	FIELD(cc_sock, snd_una),
	FIELD(cc_sock, snd_nxt),
	FIELD(cc_sock, is_cwnd_limited),
	FIELD(cc_sock, ca_state),
	FIELD(cc_sock, pacing_status),
	FIELD(cc_sock, ecn_flags),
	FIELD(cc_sock, pacing_rate),
	FIELD(cc_sock, tcp_mstamp_us),
	FIELD(cc_sock, delivered_mstamp_us),
	FIELD(cc_sock, first_tx_mstamp_us),
	FIELD(cc_sock, lsndtime_us),
	FIELD(cc_sock, next_send_us),
	FIELD(cc_sock, params),
	FIELD(cc_sock, private),
	WHOLE(cc_ack_sample),
	FIELD(cc_ack_sample, pkts_acked),
	FIELD(cc_ack_sample, rtt_us),
	FIELD(cc_ack_sample, in_flight),
	WHOLE(cc_rate_sample),
	FIELD(cc_rate_sample, prior_mstamp_us),
	FIELD(cc_rate_sample, prior_delivered),
	FIELD(cc_rate_sample, prior_delivered_ce),
	FIELD(cc_rate_sample, delivered),
	FIELD(cc_rate_sample, delivered_ce),
	FIELD(cc_rate_sample, interval_us),
	FIELD(cc_rate_sample, snd_interval_us),
	FIELD(cc_rate_sample, rcv_interval_us),
	FIELD(cc_rate_sample, rtt_us),
	FIELD(cc_rate_sample, losses),
	FIELD(cc_rate_sample, acked_sacked),
	FIELD(cc_rate_sample, prior_in_flight),
	FIELD(cc_rate_sample, last_end_seq),
	FIELD(cc_rate_sample, is_app_limited),
	FIELD(cc_rate_sample, is_retrans),
	FIELD(cc_rate_sample, is_ack_delayed),
	FIELD(cc_rate_sample, pad),
	WHOLE(cc_param),
	FIELD(cc_param, name),
	FIELD(cc_param, unit),
	FIELD(cc_param, doc),
	FIELD(cc_param, initial),
	FIELD(cc_param, min),
	FIELD(cc_param, max),
	FIELD(cc_param, scale),
	WHOLE(cc_algorithm),
	FIELD(cc_algorithm, abi_version),
	FIELD(cc_algorithm, sock_bytes),
	FIELD(cc_algorithm, name),
	FIELD(cc_algorithm, summary),
	FIELD(cc_algorithm, source),
	FIELD(cc_algorithm, params),
	FIELD(cc_algorithm, params_count),
	FIELD(cc_algorithm, flags),
	FIELD(cc_algorithm, init),
	FIELD(cc_algorithm, release),
	FIELD(cc_algorithm, ssthresh),
	FIELD(cc_algorithm, cong_avoid),
	FIELD(cc_algorithm, set_state),
	FIELD(cc_algorithm, cwnd_event),
	FIELD(cc_algorithm, in_ack_event),
	FIELD(cc_algorithm, pkts_acked),
	FIELD(cc_algorithm, min_tso_segs),
	FIELD(cc_algorithm, cong_control),
	FIELD(cc_algorithm, undo_cwnd),
};

const u64 cc_layout_count = sizeof(cc_layout) / sizeof(cc_layout[0]);
