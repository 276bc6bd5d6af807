/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * A congestion control and Linux's module of the same name, put to the same calls of one connection.
 *
 *   side_by_side path RATE_SEGMENTS_S RTT_US QUEUE_SEGMENTS LOSS_PPM SEGMENTS_PER_ACK SEED SECONDS BLACKOUT_S
 *	A sender over a path: Linux's window decides what is sent, so that both see the same ACKs, RTTs and losses. Ours
 *	takes Linux's window and threshold over at each reduction, before it (so that both reduce the same window) and
 *	after it (so that both grow from the same one); in between its window is its own. A blackout of 1 s begins at
 *	BLACKOUT_S (0: none) and ends in a time-out.
 *   side_by_side calls < RECORDING
 *	The calls of a recording (elephan.parity): before each, both take over the recorded window and threshold.
 *
 * Parameters of ours as NAME=VALUE behind that. Prints rows of tab-separated numbers, each with its kind first:
 *   window	TIME_US OURS LINUX				every 10 ms
 *   reduction	TIME_US WINDOW OURS LINUX			threshold from the same window
 *   after	TIME_US OURS LINUX				our threshold, and Linux's window when recovery is over
 *   epoch	TIME_US START OURS LINUX			windows at the end of the time between two reductions
 *   calls	HOOK COUNT SAME GREATEST OURS LINUX		per hook: with the same outcome, greatest difference in
 *								segments, sum of growth by both
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/env.h"
#include "theirs.h"

extern const struct cc_algorithm cc_algorithm;

static struct cc_sock ours, linux_side;

static const char *const hooks[] = { "init", "ssthresh", "cong_avoid", "set_state", "cwnd_event", "in_ack_event",
	"pkts_acked", "min_tso_segs", "cong_control", "undo_cwnd", "release" };
#define HOOKS (sizeof(hooks) / sizeof(hooks[0]))
static struct {
	u64 count, same, greatest;
	s64 ours, linux_side;
} tally[HOOKS];

static u32 ours_call(const struct cc_hook_call *call)
{
	const struct cc_algorithm *cc = &cc_algorithm;
	struct cc_sock *sk = &ours;

	switch (call->hook) {
	case CC_HOOK_INIT:
		memset(sk->private, 0, sizeof(sk->private));
		if (cc->init)
			cc->init(sk);
		break;
	case CC_HOOK_SSTHRESH:
		return cc->ssthresh(sk);
	case CC_HOOK_CONG_AVOID:
		if (cc->cong_avoid)
			cc->cong_avoid(sk, call->args[0], call->args[1]);
		break;
	case CC_HOOK_SET_STATE:
		if (cc->set_state)
			cc->set_state(sk, (u8)call->args[0]);
		break;
	case CC_HOOK_CWND_EVENT:
		if (cc->cwnd_event)
			cc->cwnd_event(sk, call->args[0]);
		break;
	case CC_HOOK_IN_ACK_EVENT:
		if (cc->in_ack_event)
			cc->in_ack_event(sk, call->args[0]);
		break;
	case CC_HOOK_PKTS_ACKED:
		if (cc->pkts_acked)
			cc->pkts_acked(sk, &call->ack);
		break;
	case CC_HOOK_MIN_TSO_SEGS:
		return cc->min_tso_segs ? cc->min_tso_segs(sk) : 0;
	case CC_HOOK_CONG_CONTROL:
		if (cc->cong_control)
			cc->cong_control(sk, call->args[0], (int)call->args[1], &call->rate);
		break;
	case CC_HOOK_UNDO_CWND:
		return cc->undo_cwnd(sk);
	case CC_HOOK_RELEASE:
		if (cc->release)
			cc->release(sk);
		break;
	}
	return 0;
}

static u64 apart(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

/* Copies what TCP writes of `from`; the rest is each side's own. */
static void take_over(struct cc_sock *to, const struct cc_sock *from)
{
	struct cc_sock own = *to;

	*to = *from;
	to->snd_cwnd = own.snd_cwnd;
	to->snd_ssthresh = own.snd_ssthresh;
	to->snd_cwnd_cnt = own.snd_cwnd_cnt;
	to->prior_cwnd = own.prior_cwnd;
	to->app_limited = own.app_limited;
	to->pacing_status = own.pacing_status;
	to->pacing_rate = own.pacing_rate;
	memcpy(to->params, own.params, sizeof(to->params));
	memcpy(to->private, own.private, sizeof(to->private));
}

/* One call of both. */
static void call_both(const struct cc_hook_call *call, const struct cc_sock *base, u32 *our_result, u32 *linux_result)
{
	u32 before_ours = ours.snd_cwnd, before_linux = linux_side.snd_cwnd;
	u64 difference;

	take_over(&ours, base);
	take_over(&linux_side, base);
	*our_result = ours_call(call);
	*linux_result = theirs_call(call, &linux_side);
	difference = call->hook == CC_HOOK_SSTHRESH || call->hook == CC_HOOK_UNDO_CWND ?
			     apart(*our_result, *linux_result) :
			     apart(ours.snd_cwnd, linux_side.snd_cwnd);
	tally[call->hook].count++;
	tally[call->hook].same += difference == 0 && ours.snd_ssthresh == linux_side.snd_ssthresh;
	if (difference > tally[call->hook].greatest)
		tally[call->hook].greatest = difference;
	tally[call->hook].ours += (s64)ours.snd_cwnd - before_ours;
	tally[call->hook].linux_side += (s64)linux_side.snd_cwnd - before_linux;
}

static void set_both(u32 cwnd, u32 ssthresh)
{
	ours.snd_cwnd = linux_side.snd_cwnd = cwnd;
	ours.snd_ssthresh = linux_side.snd_ssthresh = ssthresh;
}

static int replay(void)
{
	struct cc_hook_call call;
	u64 connection = 0;
	u32 a, b;

	while (fread(&call, sizeof(call), 1, stdin) == 1) {
		if (call.after)
			continue;
		if (call.connection != connection || call.hook == CC_HOOK_INIT) {
			connection = call.connection;
			theirs_start();
			memset(ours.private, 0, sizeof(ours.private));
			ours.snd_cwnd_cnt = linux_side.snd_cwnd_cnt = 0;
			if (call.hook != CC_HOOK_INIT) {
				/* The recording begins before `init`, in the handshake's ACK. */
				struct cc_hook_call init = call;

				init.hook = CC_HOOK_INIT;
				set_both(call.sock.snd_cwnd, call.sock.snd_ssthresh);
				call_both(&init, &call.sock, &a, &b);
			}
		}
		set_both(call.sock.snd_cwnd, call.sock.snd_ssthresh);
		ours.prior_cwnd = linux_side.prior_cwnd = call.sock.prior_cwnd;
		ours.app_limited = linux_side.app_limited = call.sock.app_limited;
		ours.pacing_status = linux_side.pacing_status = call.sock.pacing_status;
		ours.pacing_rate = linux_side.pacing_rate = call.sock.pacing_rate;
		call_both(&call, &call.sock, &a, &b);
		if (call.hook == CC_HOOK_SSTHRESH)
			printf("reduction\t%lu\t%u\t%u\t%u\n", (unsigned long)call.sock.tcp_mstamp_us, call.sock.snd_cwnd,
			       a, b);
	}
	return 0;
}

/* The path and its sender. */
#define MSS 1448
#define RING (1u << 16)
#define RTO_US 300000
#define DUPLICATES 3

struct packet {
	u64 sent_us, arrives_us, delivered_us, first_us;
	u32 seq, delivered;
	u8 is_lost, is_retrans;
};

static struct packet sent[RING]; /* in the order of sending */
static u32 first_packet, last_packet;
static u32 resend[RING], resend_first, resends; /* sequence numbers to be sent again */
static struct cc_sock base;
static u64 free_at_us, now_us, seed;
static double service_us;
static u32 next_seq, recovery_end, loss_ppm;
static u64 rtt_us_path, queue_us;
static u32 marked_now;

static u32 draw(u32 end)
{
	/* splitmix64 */
	u64 z = (seed += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (u32)((z ^ (z >> 31)) % end);
}

static void call(u32 hook, u32 first, u32 second, const struct cc_ack_sample *ack, const struct cc_rate_sample *rate)
{
	struct cc_hook_call one = { .hook = hook, .connection = 1, .args = { first, second } };
	u32 a, b;

	if (ack)
		one.ack = *ack;
	if (rate)
		one.rate = *rate;
	base.tcp_mstamp_us = now_us;
	call_both(&one, &base, &a, &b);
}

static u32 in_flight(void)
{
	return base.packets_out - base.sacked_out - base.lost_out + base.retrans_out;
}

/* The first sequence number that has not arrived; those behind it that have. */
static u8 arrived[RING];
static u32 first_missing;

static void note_arrival(u32 seq)
{
	arrived[seq % RING] = 1;
	for (; arrived[first_missing % RING]; first_missing++)
		arrived[first_missing % RING] = 0;
}

/* The blackout: everything that is on the path or enters it is lost. */
static int is_dark;

static void send_one(u32 seq, int is_retrans)
{
	struct packet *p = &sent[last_packet++ % RING];
	double backlog = free_at_us > now_us ? (double)(free_at_us - now_us) : 0;

	if (!in_flight())
		base.first_tx_mstamp_us = base.delivered_mstamp_us = now_us;
	*p = (struct packet){ .sent_us = now_us, .seq = seq, .is_retrans = (u8)is_retrans, .delivered = base.delivered,
		.delivered_us = base.delivered_mstamp_us, .first_us = base.first_tx_mstamp_us };
	if (is_dark || backlog > (double)queue_us || (loss_ppm && draw(1000000) < loss_ppm)) {
		p->is_lost = 1;
		p->arrives_us = now_us + rtt_us_path + (u64)backlog;
	} else {
		static double fraction;
		double leaves = (free_at_us > now_us ? (double)free_at_us + fraction : (double)now_us) + service_us;

		free_at_us = (u64)leaves;
		fraction = leaves - (double)free_at_us;
		p->arrives_us = free_at_us + rtt_us_path;
	}
	base.lsndtime_us = now_us;
}

static void send_all(void)
{
	while (in_flight() < linux_side.snd_cwnd && last_packet - first_packet < RING - 2) {
		if (resends) {
			send_one(resend[resend_first++ % RING], 1);
			resends--;
			base.retrans_out++;
			continue;
		}
		if (next_seq - first_missing >= RING - 2)
			break;
		send_one(next_seq++, 0);
		base.packets_out++;
		base.snd_nxt = next_seq * MSS;
	}
	if (in_flight() > base.max_packets_out)
		base.max_packets_out = in_flight();
	base.is_cwnd_limited = 1;
}

static void note_epoch(u32 start)
{
	printf("epoch\t%lu\t%u\t%u\t%u\n", (unsigned long)now_us, start, ours.snd_cwnd, linux_side.snd_cwnd);
}

static u32 epoch_start, our_threshold;

static void reduce(u8 state)
{
	if (state == CC_LOSS || base.ca_state < CC_CWR) {
		note_epoch(epoch_start);
		/* Both reduce the same window. */
		ours.snd_cwnd = linux_side.snd_cwnd;
		ours.snd_ssthresh = linux_side.snd_ssthresh;
		base.prior_cwnd = ours.prior_cwnd = linux_side.prior_cwnd = linux_side.snd_cwnd;
		{
			struct cc_hook_call one = { .hook = CC_HOOK_SSTHRESH, .connection = 1 };
			u32 a, b;

			base.tcp_mstamp_us = now_us;
			call_both(&one, &base, &a, &b);
			printf("reduction\t%lu\t%u\t%u\t%u\n", (unsigned long)now_us, linux_side.snd_cwnd, a, b);
			ours.snd_ssthresh = linux_side.snd_ssthresh = b;
			our_threshold = a;
		}
	}
	if (state == CC_LOSS)
		call(CC_HOOK_CWND_EVENT, CC_EVENT_LOSS, 0, 0, 0);
	ours.snd_ssthresh = linux_side.snd_ssthresh;
	call(CC_HOOK_SET_STATE, state, 0, 0, 0);
	base.ca_state = state;
	recovery_end = next_seq;
}

/* An ACK for `count` segments, the last of them `p`. */
static void acknowledge(const struct packet *p, u32 count, int has_hole)
{
	u8 slow = has_hole || base.ca_state != CC_OPEN;
	u32 was_in_flight = in_flight() + count;
	s32 rtt = p->is_retrans ? -1 : (s32)(now_us - p->sent_us);
	struct cc_ack_sample ack = { count, rtt, in_flight() };
	struct cc_rate_sample rate = { .prior_mstamp_us = p->delivered_us, .prior_delivered = p->delivered,
		.delivered = (s32)(base.delivered - p->delivered), .rtt_us = rtt, .losses = (s32)marked_now,
		.acked_sacked = count, .prior_in_flight = was_in_flight, .last_end_seq = (p->seq + 1) * MSS,
		.is_retrans = p->is_retrans };
	u64 snd_us = p->sent_us - p->first_us, rcv_us = now_us - p->delivered_us;

	rate.snd_interval_us = (u32)snd_us;
	rate.rcv_interval_us = (u32)rcv_us;
	rate.interval_us = (s64)(snd_us > rcv_us ? snd_us : rcv_us);
	base.first_tx_mstamp_us = p->sent_us;
	base.delivered_mstamp_us = now_us;
	if (rtt > 0) {
		base.srtt_us = base.srtt_us ? base.srtt_us - base.srtt_us / 8 + (u32)rtt : 8 * (u32)rtt;
		if ((u32)rtt < base.min_rtt_us)
			base.min_rtt_us = (u32)rtt;
	}
	base.snd_una = first_missing * MSS;
	call(CC_HOOK_IN_ACK_EVENT, slow ? CC_ACK_SLOWPATH : CC_ACK_WIN_UPDATE, 0, 0, 0);
	call(CC_HOOK_PKTS_ACKED, 0, 0, &ack, 0);
	if (base.ca_state >= CC_CWR && first_missing >= recovery_end) {
		/* The end of recovery. */
		if (base.ca_state == CC_RECOVERY) {
			if (!cc_algorithm.cong_control)
				set_both(linux_side.snd_ssthresh, linux_side.snd_ssthresh);
			call(CC_HOOK_CWND_EVENT, CC_EVENT_COMPLETE_CWR, 0, 0, 0);
			printf("after\t%lu\t%u\t%u\n", (unsigned long)now_us, our_threshold, linux_side.snd_cwnd);
		}
		call(CC_HOOK_SET_STATE, CC_OPEN, 0, 0, 0);
		base.ca_state = CC_OPEN;
		if (!cc_algorithm.cong_control) {
			ours.snd_cwnd = linux_side.snd_cwnd;
			ours.snd_ssthresh = linux_side.snd_ssthresh;
		}
		epoch_start = linux_side.snd_cwnd;
	}
	if (marked_now && base.ca_state < CC_CWR) {
		reduce(CC_RECOVERY);
		if (!cc_algorithm.cong_control)
			linux_side.snd_cwnd = ours.snd_cwnd = linux_side.snd_ssthresh;
	}
	if (cc_algorithm.cong_control)
		call(CC_HOOK_CONG_CONTROL, base.snd_una, 0, 0, &rate);
	else if (base.ca_state != CC_RECOVERY && base.ca_state != CC_CWR)
		call(CC_HOOK_CONG_AVOID, base.snd_una, count, 0, 0);
	marked_now = 0;
}

static void mark_lost(u32 seq, u8 was_retrans)
{
	resend[(resend_first + resends++) % RING] = seq;
	marked_now++;
	base.lost++;
	if (was_retrans)
		base.retrans_out--;
	else
		base.lost_out++;
}

static u32 lost_waiting[RING], lost_number;

static void time_out(void)
{
	/* All that is out is lost. */
	for (u32 i = first_packet; i != last_packet; i++) {
		const struct packet *p = &sent[i % RING];

		resend[(resend_first + resends++) % RING] = p->seq;
		base.lost++;
	}
	first_packet = last_packet;
	lost_number = 0;
	base.lost_out = base.packets_out - base.sacked_out;
	base.retrans_out = 0;
	reduce(CC_LOSS);
	ours.snd_cwnd = linux_side.snd_cwnd = 1;
	epoch_start = 1;
	marked_now = 0;
}

static int drive(char **words)
{
	double rate = atof(words[0]);
	u32 per_ack = (u32)atoi(words[4]);
	u64 end_us = (u64)(atof(words[6]) * 1e6), dark_us = (u64)(atof(words[7]) * 1e6), next_row_us = 0;
	u32 waiting = 0;

	service_us = 1e6 / rate;
	rtt_us_path = (u64)atoll(words[1]);
	queue_us = (u64)(atof(words[2]) * service_us);
	loss_ppm = (u32)atoi(words[3]);
	seed = (u64)atoll(words[5]);
	/* Not at the clock's beginning, as in a kernel. */
	now_us = 1000000000;
	end_us += now_us;
	dark_us += dark_us ? now_us : 0;
	base = (struct cc_sock){ .snd_cwnd = 10, .snd_ssthresh = CC_INFINITE_SSTHRESH, .snd_cwnd_clamp = ~0u,
		.min_rtt_us = ~0u, .mss_cache = MSS, .gso_max_bytes = 65536, .pacing_rate = ~0ull };
	base.srtt_us = 8 * (u32)rtt_us_path;
	base.min_rtt_us = (u32)rtt_us_path;
	base.tcp_mstamp_us = base.delivered_mstamp_us = base.first_tx_mstamp_us = now_us;
	base.delivered = 1;
	ours.snd_cwnd_cnt = linux_side.snd_cwnd_cnt = 0;
	set_both(10, CC_INFINITE_SSTHRESH);
	ours.pacing_rate = linux_side.pacing_rate = ~0ull;
	theirs_start();
	take_over(&linux_side, &base);
	linux_side.snd_cwnd_clamp = ~0u;
	call(CC_HOOK_INIT, 0, 0, 0, 0);
	epoch_start = 10;
	call(CC_HOOK_CWND_EVENT, CC_EVENT_TX_START, 0, 0, 0);
	send_all();
	while (now_us < end_us) {
		struct packet p;
		int has_hole;

		if (dark_us && now_us >= dark_us && now_us < dark_us + 1000000 && !is_dark) {
			is_dark = 1;
			for (u32 i = first_packet; i != last_packet; i++)
				sent[i % RING].is_lost = 1;
		}
		if (first_packet == last_packet) {
			/* Nothing will arrive: the timer. */
			now_us += RTO_US;
			if (is_dark && now_us >= dark_us + 1000000)
				is_dark = 0, dark_us = 0;
			time_out();
			send_all();
			continue;
		}
		p = sent[first_packet++ % RING];
		if (p.arrives_us > now_us)
			now_us = p.arrives_us;
		if (is_dark && now_us >= dark_us + 1000000)
			is_dark = 0, dark_us = 0;
		if (p.is_lost) {
			int others = 0;

			/* Waits for later arrivals. */
			lost_waiting[lost_number++] = p.seq << 1 | p.is_retrans;
			if (lost_number >= RING)
				return 1;

			for (u32 i = first_packet; i != last_packet && !others; i++)
				others = !sent[i % RING].is_lost;
			if (!others && first_packet != last_packet)
				continue;
			if (!others) {
				/* Nobody will tell of the loss but the timer. */
				now_us += RTO_US;
				for (u32 i = 0; i < lost_number; i++)
					resend[(resend_first + resends++) % RING] = lost_waiting[i] >> 1;
				time_out();
				send_all();
			}
			continue;
		}
		note_arrival(p.seq);
		base.delivered++;
		if (p.is_retrans) {
			base.retrans_out--;
			base.lost_out--;
			base.packets_out--;
		} else {
			base.packets_out--;
		}
		/* Each arrival behind a lost one says so; at the third it counts as lost. FIFO: all of the list are older. */
		static u32 arrivals;

		arrivals = lost_number ? arrivals + 1 : 0;
		if (lost_number && arrivals >= DUPLICATES) {
			for (u32 i = 0; i < lost_number; i++)
				mark_lost(lost_waiting[i] >> 1, lost_waiting[i] & 1);
			lost_number = 0;
			arrivals = 0;
		}
		has_hole = lost_number || resends || base.lost_out;
		waiting++;
		if (waiting >= per_ack || has_hole || base.ca_state != CC_OPEN || first_packet == last_packet) {
			acknowledge(&p, waiting, has_hole);
			waiting = 0;
		}
		send_all();
		if (now_us >= next_row_us) {
			printf("window\t%lu\t%u\t%u\n", (unsigned long)now_us, ours.snd_cwnd, linux_side.snd_cwnd);
			next_row_us = now_us + 10000;
		}
	}
	note_epoch(epoch_start);
	return 0;
}

static void set_parameter(const char *word)
{
	const char *equals = strchr(word, '=');

	for (u32 i = 0; equals && i < cc_algorithm.params_count; i++)
		if (strlen(cc_algorithm.params[i].name) == (size_t)(equals - word) &&
		    !strncmp(cc_algorithm.params[i].name, word, (size_t)(equals - word))) {
			ours.params[i] = atoll(equals + 1);
			return;
		}
	fprintf(stderr, "no parameter: %s\n", word);
	exit(2);
}

int main(int words, char **word)
{
	int is_path = words > 1 && !strcmp(word[1], "path"), fixed = is_path ? 10 : 2, code;

	if (words < fixed)
		return 2;
	for (u32 i = 0; i < cc_algorithm.params_count; i++)
		ours.params[i] = cc_algorithm.params[i].initial;
	for (int i = fixed; i < words; i++)
		set_parameter(word[i]);
	code = is_path ? drive(word + 2) : replay();
	for (u32 i = 0; i < HOOKS; i++)
		if (tally[i].count)
			printf("calls\t%s\t%lu\t%lu\t%lu\t%ld\t%ld\n", hooks[i], (unsigned long)tally[i].count,
			       (unsigned long)tally[i].same, (unsigned long)tally[i].greatest, (long)tally[i].ours,
			       (long)tally[i].linux_side);
	return code;
}
