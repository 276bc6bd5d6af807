//! Losses, and their repair by each recovery.
use crate::common::*;
use tcp::config::{Config, LostRetransmissions, Recovery};
use tcp::segment::flags;
use units::{Size, Span, Time};

const ERAS: [Recovery; 3] = [Recovery::NewReno, Recovery::Sack, Recovery::Rack];
const MSS: u64 = 1448;

fn with_recovery(recovery: Recovery) -> Config {
    // A window fixed by ssthresh keeps the arithmetic plain.
    Config { recovery, initial_cwnd: 20, initial_ssthresh: Some(20), ..Config::default() }
}

fn late() -> Time {
    Time::ZERO + Span::from_secs(300)
}

#[test]
fn one_loss_is_repaired_by_fast_retransmit_and_halves_the_window() {
    for recovery in ERAS {
        let mut pair = Pair::new(with_recovery(recovery)).drop_data(&[30]).connect();
        pair.write(400 * MSS);
        pair.run_until_received(400 * MSS, late());
        pair.run_for(ms(200));
        let stats = pair.client.stats();
        assert_eq!(stats.fast_retransmits, 1, "{recovery:?}");
        assert_eq!(stats.timeouts, 0, "{recovery:?}");
        assert_eq!(stats.retransmitted_segments, 1, "{recovery:?}");
        assert_eq!(stats.spurious_undos(), 0, "{recovery:?}");
        let ssthresh = pair.ssthresh();
        assert!((10..=11).contains(&ssthresh), "{recovery:?}: ssthresh {ssthresh}");
        assert_eq!(pair.server.stats().data_segments_received, 400, "{recovery:?}");
        assert_eq!(pair.server.stats().duplicate_segments_received, 0, "{recovery:?}");
    }
}

#[test]
fn three_duplicate_acks_start_the_retransmission_in_the_older_recoveries() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let mut pair = Pair::new(Config { delayed_ack: false, ..with_recovery(recovery) })
            .bottleneck(10_000_000, 1_000)
            .drop_data(&[3])
            .connect();
        pair.write(20 * MSS);
        pair.run_until_received(20 * MSS, late());
        let lost_seq = 1 + 2 * MSS;
        let again = pair.data().filter(|s| s.seg.seq == lost_seq).nth(1).expect("a retransmission").at;
        let dups: Vec<Time> = pair.acks.iter().filter(|a| a.seg.ack == lost_seq).map(|a| a.at).collect();
        // The first ACK with this number is no duplicate; the third duplicate is the fourth of them.
        assert_eq!(again, dups[3] + ms(50), "{recovery:?}");
    }
}

#[test]
fn a_burst_of_losses_is_repaired_in_one_recovery() {
    for recovery in ERAS {
        let mut pair = Pair::new(with_recovery(recovery)).drop_data(&[30, 32, 33, 36]).connect();
        pair.write(400 * MSS);
        pair.run_until_received(400 * MSS, late());
        let stats = pair.client.stats();
        assert_eq!((stats.fast_retransmits, stats.timeouts), (1, 0), "{recovery:?}: {stats:?}");
        assert_eq!(stats.retransmitted_segments, 4, "{recovery:?} {stats:?}");
    }
}

#[test]
fn newreno_repairs_one_hole_per_round_trip() {
    let mut pair = Pair::new(with_recovery(Recovery::NewReno)).drop_data(&[30, 32, 34]).connect();
    pair.write(100 * MSS);
    pair.run_until_received(100 * MSS, late());
    let again: Vec<Time> = [30u64, 32, 34]
        .iter()
        .map(|n| pair.data().filter(|s| s.seg.seq == 1 + (n - 1) * MSS).nth(1).expect("a retransmission").at)
        .collect();
    assert_eq!(again[1], again[0] + ms(100));
    assert_eq!(again[2], again[1] + ms(100));
}

#[test]
fn a_lost_tail_is_found_by_a_probe_not_by_the_time_out() {
    let mut pair = Pair::new(with_recovery(Recovery::Rack)).drop_data(&[20]).connect();
    pair.write(20 * MSS);
    pair.run_until_received(20 * MSS, late());
    let stats = pair.client.stats();
    assert_eq!((stats.tlp_probes, stats.timeouts), (1, 0));
    // The flight goes at 100 ms; its last ACK comes at 200 ms; the probe waits 2 srtt more, plus the allowance for a
    // delayed ACK of the one segment left, but no longer than the RTO.
    let probe = pair.data().last().expect("data").at;
    assert!(probe > at_ms(200 + 200) && probe <= at_ms(200 + 400), "{probe:?}");
    pair.run_for(ms(300));
    // RFC 8985, 7.4.2: an ACK above the probe without a DSACK tells that the original was lost.
    pair.write(5 * MSS);
    pair.run_for(ms(300));
    assert!(pair.ssthresh() <= 10, "a probe that repaired a loss reduces the window");
}

#[test]
fn the_older_recoveries_wait_for_the_time_out_at_the_tail() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let mut pair = Pair::new(with_recovery(recovery)).drop_data(&[20]).connect();
        pair.write(20 * MSS);
        pair.run_until_received(20 * MSS, late());
        let stats = pair.client.stats();
        assert_eq!((stats.tlp_probes, stats.timeouts), (0, 1), "{recovery:?}");
    }
}

#[test]
fn rack_finds_a_lost_retransmission_without_time_out() {
    // The 30th goes, and so does its retransmission: the 51st or so data segment sent.
    let mut first = None;
    let mut pair = Pair::new(with_recovery(Recovery::Rack)).on_data(move |n, seg| {
        if n == 30 {
            first = Some(seg.seq);
            return Fate::Drop;
        }
        if first == Some(seg.seq) {
            first = None;
            return Fate::Drop;
        }
        Fate::Pass
    });
    pair = pair.connect();
    pair.write(400 * MSS);
    pair.run_until_received(400 * MSS, late());
    let stats = pair.client.stats();
    assert_eq!((stats.timeouts, stats.lost_retransmissions), (0, 1), "{stats:?}");
    assert_eq!(stats.retransmitted_segments, 2);
}

#[test]
fn sack_recovery_by_the_rfc_needs_a_time_out_for_a_lost_retransmission() {
    let mut drops = 0;
    let cfg = Config { lost_retransmissions: LostRetransmissions::Never, ..with_recovery(Recovery::Sack) };
    let mut pair = Pair::new(cfg)
        .on_data(move |_, seg| {
            if seg.seq == 1 + 29 * MSS && drops < 2 {
                drops += 1;
                return Fate::Drop;
            }
            Fate::Pass
        })
        .connect();
    pair.write(400 * MSS);
    pair.run_until_received(400 * MSS, late());
    assert!(pair.client.stats().timeouts >= 1);
}

#[test]
fn a_lost_flight_ends_in_time_outs_that_back_off() {
    for recovery in ERAS {
        // Everything sent in 1 s .. 5 s is lost.
        let mut pair = Pair::new(with_recovery(recovery)).connect();
        pair.write(20 * MSS);
        pair.run(at_ms(1_000));
        pair.forward.hook = Some(Box::new(|_, _| Fate::Drop));
        pair.write(20 * MSS);
        pair.run(at_ms(8_000));
        let times: Vec<u64> = pair
            .data()
            .filter(|s| s.at >= at_ms(1_000) && s.seg.seq == 1 + 20 * MSS)
            .map(|s| s.at.0 / 1_000_000)
            .collect();
        assert!(times.len() >= 4, "{recovery:?}: {times:?}");
        let gaps: Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        // After a probe the RTO counts from it.
        let gaps = if recovery == Recovery::Rack { &gaps[1..] } else { &gaps[..] };
        for pair in gaps.windows(2) {
            assert!(pair[1] >= 2 * pair[0] - 2 && pair[1] <= 2 * pair[0] + 2, "{recovery:?}: {gaps:?}");
        }
        assert_eq!(pair.cwnd(), 1);
        pair.forward.hook = None;
        pair.run_until_received(40 * MSS, late());
    }
}

#[test]
fn the_rto_is_srtt_plus_200_ms_on_a_steady_path() {
    let mut pair = Pair::new(with_recovery(Recovery::Sack)).connect();
    pair.write(2_000 * MSS);
    pair.run_until_received(2_000 * MSS, late());
    pair.run_for(ms(100));
    let rto = pair.client.rto().0;
    assert!(rto >= ms(300).0 && rto < ms(345).0, "{}", pair.client.rto());
}

#[test]
fn without_fast_retransmit_the_time_out_alone_repairs() {
    for recovery in ERAS {
        let cfg = Config { fast_retransmit: false, ..with_recovery(recovery) };
        let mut pair = Pair::new(cfg).drop_data(&[30]).connect();
        pair.write(200 * MSS);
        pair.run_until_received(200 * MSS, late());
        let stats = pair.client.stats();
        assert_eq!((stats.fast_retransmits, stats.timeouts, stats.tlp_probes), (0, 1, 0), "{recovery:?}");
    }
}

#[test]
fn limited_transmit_sends_two_new_segments_on_two_duplicates() {
    for (limited, new) in [(true, 2), (false, 0)] {
        let cfg = Config {
            recovery: Recovery::Sack,
            initial_cwnd: 3,
            initial_ssthresh: Some(3),
            limited_transmit: limited,
            delayed_ack: false,
            ..Config::default()
        };
        let mut pair = Pair::new(cfg).drop_data(&[1]).connect();
        pair.write(10 * MSS);
        // The flight of three goes at 150 ms; its two duplicate ACKs come at 250 ms.
        pair.run(at_ms(260));
        assert_eq!(pair.data().count(), 3 + new, "limited transmit {limited}");
        pair.run_until_received(10 * MSS, late());
        let stats = pair.client.stats();
        // With it the third duplicate comes, and the loss is repaired without a time-out.
        assert_eq!(stats.timeouts, u64::from(!limited), "{stats:?}");
    }
}

#[test]
fn reordering_without_loss_costs_no_window_in_the_end() {
    // One of fifty comes 10 ms late: later segments overtake it.
    let mut pair = Pair::new(with_recovery(Recovery::Rack))
        .bottleneck(20_000_000, 1_000)
        .on_data(|n, _| if n % 50 == 0 { Fate::Delay(ms(10)) } else { Fate::Pass })
        .connect();
    pair.write(3_000 * MSS);
    pair.run_until_received(3_000 * MSS, late());
    let stats = pair.client.stats();
    assert_eq!(stats.timeouts, 0);
    assert!(stats.reordering_seen > 0);
    assert!(pair.client.reordering() > 3, "the threshold follows the reordering: {}", pair.client.reordering());
    // Every reduction in error was given back, or not reduced at all once reordering was known.
    assert!(stats.fast_retransmits <= stats.spurious_undos() + 1, "{stats:?}");
    assert!(pair.cwnd() >= 20, "cwnd {}", pair.cwnd());
}

#[test]
fn dsack_undoes_a_spurious_recovery_and_widens_the_window_of_rack() {
    // Some segments late by less than an RTT / 4, so that reordering is seen, and some by more than RACK's first
    // window. No timestamps: only DSACK tells.
    let cfg = Config { timestamps: false, ..with_recovery(Recovery::Rack) };
    let mut pair = Pair::new(cfg)
        .bottleneck(20_000_000, 1_000)
        .on_data(|n, _| match n % 200 {
            50 => Fate::Delay(ms(1)),
            100 => Fate::Delay(ms(60)),
            _ => Fate::Pass,
        })
        .connect();
    pair.write(4_000 * MSS);
    pair.run_until_received(4_000 * MSS, late());
    let stats = pair.client.stats();
    assert!(stats.dsacks_received > 0 && stats.undos_dsack > 0, "{stats:?}");
    assert!(pair.client.reo_wnd_steps() > 1, "{} {stats:?}", pair.client.reo_wnd_steps());
    assert_eq!(stats.timeouts, 0);
}

#[test]
fn eifel_undoes_a_spurious_recovery_by_timestamps() {
    // SACK recovery, so that three duplicates retransmit at once; the late original arrives before the copy.
    let mut pair = Pair::new(with_recovery(Recovery::Sack))
        .bottleneck(20_000_000, 1_000)
        .on_data(|n, _| if n == 100 { Fate::Delay(ms(20)) } else { Fate::Pass })
        .connect();
    pair.write(1_000 * MSS);
    pair.run_until_received(1_000 * MSS, late());
    let stats = pair.client.stats();
    assert_eq!(stats.fast_retransmits, 1);
    assert_eq!(stats.spurious_undos(), 1, "{stats:?}");
    assert!(pair.cwnd() >= 20);
}

#[test]
fn frto_or_eifel_undo_a_spurious_time_out() {
    // The path's delay jumps by 600 ms once, for everything: nothing is lost.
    for timestamps in [true, false] {
        let cfg = Config { timestamps, ..with_recovery(Recovery::Sack) };
        let mut pair = Pair::new(cfg).bottleneck(20_000_000, 1_000).connect();
        pair.write(3_000 * MSS);
        pair.run(at_ms(2_000));
        pair.forward.delay = ms(650);
        pair.run(at_ms(2_100));
        pair.run_until_received(3_000 * MSS, late());
        let stats = pair.client.stats();
        assert!(stats.timeouts >= 1, "{stats:?}");
        assert!(stats.undos_frto + stats.undos_eifel >= 1, "timestamps {timestamps}: {stats:?}");
    }
}

#[test]
fn duplicated_packets_reduce_nothing() {
    for recovery in ERAS {
        let mut pair = Pair::new(with_recovery(recovery))
            .on_data(|n, _| if n % 7 == 0 { Fate::Duplicate } else { Fate::Pass })
            .connect();
        pair.write(1_000 * MSS);
        pair.run_until_received(1_000 * MSS, late());
        let stats = pair.client.stats();
        assert_eq!((stats.timeouts, stats.fast_retransmits), (0, 0), "{recovery:?}: {stats:?}");
        assert!(pair.server.stats().duplicate_segments_received > 100);
    }
}

#[test]
fn ecn_echo_halves_the_window_once_and_loses_nothing() {
    let cfg = Config { ecn: true, ..with_recovery(Recovery::Rack) };
    let mut pair =
        Pair::new(cfg).on_data(|n, _| if (100..103).contains(&n) { Fate::Mark } else { Fate::Pass }).connect();
    assert!(pair.sent[0].seg.has(flags::SYN | flags::ECE | flags::CWR));
    pair.write(600 * MSS);
    pair.run_until_received(600 * MSS, late());
    let stats = pair.client.stats();
    assert_eq!((stats.ecn_reductions, stats.retransmitted_segments), (1, 0));
    assert!(pair.ssthresh() <= 14, "{}", pair.ssthresh());
    assert!(pair.acks.iter().any(|a| a.seg.has(flags::ECE) && !a.seg.has(flags::SYN)));
    assert!(pair.data().any(|s| s.seg.has(flags::CWR)));
    // The echo stops when the sender has said CWR.
    assert!(!pair.acks.last().expect("ACKs").seg.has(flags::ECE));
    assert!(pair.data().all(|s| s.seg.has(flags::ECT)));
}

#[test]
fn a_large_window_with_one_loss_is_repaired_in_each_era() {
    for recovery in ERAS {
        let cfg = Config {
            recovery,
            initial_cwnd: 2_000,
            initial_ssthresh: Some(2_000),
            receive_window: Size(64 << 20),
            ..Config::default()
        };
        let mut pair = Pair::new(cfg).bottleneck(1_000_000_000, 10_000).drop_data(&[3_000]).connect();
        pair.write(20_000 * MSS);
        pair.run_until_received(20_000 * MSS, late());
        let stats = pair.client.stats();
        assert_eq!((stats.fast_retransmits, stats.timeouts), (1, 0), "{recovery:?}");
        assert_eq!(stats.retransmitted_segments, 1, "{recovery:?}");
    }
}
