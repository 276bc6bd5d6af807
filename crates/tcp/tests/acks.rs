//! Delayed and quick acknowledgments, SACK blocks, the handshake's repair, closing.
use crate::common::*;
use tcp::config::{Config, Recovery};
use tcp::segment::{flags, SackBlock};
use tcp::State;
use units::{Size, Span, Time};

const MSS: u64 = 1448;

fn late() -> Time {
    Time::ZERO + Span::from_secs(300)
}

#[test]
fn a_lone_segment_waits_40_ms_when_quick_acks_are_off() {
    let cfg = Config { quickack_segments: 0, ..Config::default() };
    let mut pair = Pair::new(cfg).connect();
    // The first full segment teaches the receiver the segment size.
    pair.write(2 * MSS);
    pair.run(at_ms(1_000));
    pair.write(MSS);
    pair.run(at_ms(2_000));
    let sent = pair.data().last().expect("data").at;
    let acked = pair.acks.last().expect("an ACK").at;
    assert_eq!(acked.since(sent), ms(90), "50 ms of path and 40 ms of waiting");
}

#[test]
fn every_second_segment_is_acknowledged() {
    let cfg = Config { quickack_segments: 0, initial_cwnd: 100, ..Config::default() };
    let mut pair = Pair::new(cfg).connect();
    pair.write(100 * MSS);
    pair.run(at_ms(1_000));
    let acks = pair.server.stats().acks_sent;
    assert!((50..=52).contains(&acks), "{acks}");
}

#[test]
fn the_first_16_are_acknowledged_at_once() {
    let cfg = Config { initial_cwnd: 40, receive_window: Size(1 << 20), ..Config::default() };
    let mut pair = Pair::new(cfg).connect();
    pair.write(40 * MSS);
    pair.run(at_ms(1_000));
    // 16 quick ones, then one for two.
    let acks = pair.server.stats().acks_sent;
    assert!((28..=29).contains(&acks), "{acks}");
}

#[test]
fn without_delay_every_segment_is_acknowledged() {
    let cfg = Config { delayed_ack: false, initial_cwnd: 100, ..Config::default() };
    let mut pair = Pair::new(cfg).connect();
    pair.write(100 * MSS);
    pair.run(at_ms(1_000));
    assert_eq!(pair.server.stats().acks_sent, 100);
}

#[test]
fn out_of_order_data_is_acknowledged_at_once_with_its_blocks() {
    let cfg = Config { initial_cwnd: 8, recovery: Recovery::Sack, ..Config::default() };
    let mut pair = Pair::new(cfg).drop_data(&[2, 4]).connect();
    pair.write(8 * MSS);
    pair.run(at_ms(210));
    let dups: Vec<_> = pair.acks.iter().filter(|a| a.seg.sack_count > 0).map(|a| a.seg).collect();
    assert_eq!(dups.len(), 5, "one for each of segments 3, 5, 6, 7, 8");
    let last = dups.last().expect("a SACK");
    assert_eq!(last.ack, 1 + MSS);
    assert_eq!(last.sack_count, 2);
    assert_eq!(last.sacks[0], SackBlock { start: 1 + 4 * MSS, end: 1 + 8 * MSS });
    assert_eq!(last.sacks[1], SackBlock { start: 1 + 2 * MSS, end: 1 + 3 * MSS });
    pair.run_until_received(8 * MSS, late());
}

#[test]
fn a_duplicate_is_reported_by_dsack() {
    let mut pair =
        Pair::new(Config::default()).on_data(|n, _| if n == 3 { Fate::Duplicate } else { Fate::Pass }).connect();
    pair.write(5 * MSS);
    pair.run(at_ms(1_000));
    let dsack = pair.acks.iter().find(|a| a.seg.sack_count > 0).expect("a DSACK").seg;
    assert_eq!(dsack.sacks[0], SackBlock { start: 1 + 2 * MSS, end: 1 + 3 * MSS });
    assert!(dsack.ack >= dsack.sacks[0].end);
    assert_eq!(pair.client.stats().dsacks_received, 1);
}

#[test]
fn syn_and_syn_ack_are_repeated_after_1_and_2_s() {
    let mut pair = Pair::new(Config::default());
    pair.forward.hook = Some(Box::new(|n, _| if n <= 2 { Fate::Drop } else { Fate::Pass }));
    let pair = pair.connect();
    let syns: Vec<Time> = pair.sent.iter().filter(|s| s.seg.has(flags::SYN)).map(|s| s.at).collect();
    assert_eq!(syns, [at_ms(0), at_ms(1_000), at_ms(3_000)]);
    assert_eq!(pair.client.established_at(), Some(at_ms(3_100)));
    assert_eq!(pair.cwnd(), 1, "a SYN lost twice: a window of one");

    let mut pair = Pair::new(Config::default());
    pair.back.hook = Some(Box::new(|n, _| if n == 1 { Fate::Drop } else { Fate::Pass }));
    let pair = pair.connect();
    assert_eq!(pair.client.established_at(), Some(at_ms(1_100)), "the SYN again, at 1 s, brings the SYN-ACK again");
}

#[test]
fn a_lost_last_ack_of_the_handshake_does_no_harm() {
    let mut pair = Pair::new(Config::default());
    pair.forward.hook = Some(Box::new(|n, _| if n == 2 { Fate::Drop } else { Fate::Pass }));
    let pair = pair.connect();
    assert_eq!(pair.server.state(), State::Established);
    assert!(pair.now <= at_ms(1_300));
}

#[test]
fn sack_and_scaling_are_off_when_one_side_does_not_offer_them() {
    let old = Config { recovery: Recovery::NewReno, window_scaling: false, timestamps: false, ..Config::default() };
    let mut pair = Pair::with(Config::default(), old, "reno", ms(50)).drop_data(&[20]).connect();
    assert_eq!(pair.client.mss(), 1460);
    pair.write(500 * 1460);
    pair.run_until_received(500 * 1460, late());
    assert!(pair.acks.iter().all(|a| a.seg.sack_count == 0 && !a.seg.has(flags::TIMESTAMPS)));
    assert!(pair.client.snd_wnd() <= 65_535);
}

#[test]
fn both_sides_close() {
    let mut pair = Pair::new(Config::default()).drop_data(&[3]).connect();
    pair.write(100 * MSS);
    pair.close();
    pair.run(at_ms(3_000));
    assert_eq!(pair.server.bytes_received(), 100 * MSS);
    assert_eq!(pair.server.state(), State::CloseWait);
    assert_eq!(pair.client.state(), State::FinWait2);
    assert_eq!(pair.client.bytes_acked(), 100 * MSS);
    pair.server.close(pair.now);
    pair.flush();
    pair.run(at_ms(4_000));
    assert_eq!(pair.server.state(), State::Closed);
    assert_eq!(pair.client.state(), State::TimeWait);
    assert!(pair.client.is_closed() && pair.server.is_closed());
}

#[test]
fn a_lost_fin_is_sent_again() {
    for recovery in [Recovery::NewReno, Recovery::Sack, Recovery::Rack] {
        let cfg = Config { recovery, ..Config::default() };
        let mut pair = Pair::new(cfg).connect();
        pair.write(5 * MSS);
        pair.run(at_ms(1_000));
        let mut lost = false;
        pair.forward.hook = Some(Box::new(move |_, seg| {
            if seg.has(flags::FIN) && !lost {
                lost = true;
                return Fate::Drop;
            }
            Fate::Pass
        }));
        pair.close();
        pair.run(at_ms(5_000));
        assert_eq!(pair.client.state(), State::FinWait2, "{recovery:?}");
    }
}

#[test]
fn data_flows_both_ways() {
    let mut pair = Pair::new(Config::default()).bottleneck(50_000_000, 100).drop_data(&[50, 51, 90]).connect();
    pair.server.write(pair.now, 3_000_000);
    pair.write(3_000_000);
    pair.run(at_ms(20_000));
    assert_eq!(pair.server.bytes_received(), 3_000_000);
    assert_eq!(pair.client.bytes_received(), 3_000_000);
    assert!(pair.sent.iter().all(|s| s.seg.packet_bytes() <= 1_500));
}

/// ACKs with blocks that `count` segments at `rate` bring about when those `lost` say so are lost, before any repair.
fn reported_blocks(cfg: Config, rate: u64, rtt: Span, count: u64, lost: impl Fn(u64) -> bool + 'static) -> Vec<Sent> {
    let cfg = Config { quickack_segments: 0, initial_cwnd: count as u32, receive_window: Size(1 << 30), ..cfg };
    let mut pair = Pair::with(cfg.clone(), cfg, "reno", Span(rtt.0 / 2))
        .on_data(move |n, _| if n > 2 && (n > 2 + count || lost(n - 2)) { Fate::Drop } else { Fate::Pass })
        .connect();
    // The window of a SYN is not scaled: the first ACK tells the real one.
    pair.write(2 * MSS);
    pair.run_for(ms(1_000));
    pair.forward.rate = rate;
    pair.write(count * MSS);
    // The way there, the segments, and the last ACK held back.
    pair.run(pair.now + Span(rtt.0 / 2 + 12_000 * count * 1_000_000_000 / rate) + ms(2));
    pair.acks.iter().filter(|ack| ack.seg.sack_count > 0).copied().collect()
}

#[test]
fn after_three_duplicate_acks_one_is_sent_per_millisecond() {
    // A segment in 0.1 ms: 79 come after the one that is lost.
    let acks = reported_blocks(Config::default(), 120_000_000, ms(100), 100, |n| n == 21);
    let gaps: Vec<u64> = acks.windows(2).map(|pair| pair[1].at.since(pair[0].at).as_micros()).collect();
    assert_eq!(gaps[..2], [100, 100], "three at once");
    assert!(gaps[2..].iter().all(|gap| (1_090..=1_110).contains(gap)), "1 ms from the next segment on: {gaps:?}");
    assert_eq!(acks.len(), 3 + 7);
    let last = acks.last().expect("some").seg.sacks[0];
    assert_eq!(last, SackBlock { start: 1 + 23 * MSS, end: 1 + 102 * MSS }, "nothing is forgotten");
}

#[test]
fn a_compressed_ack_waits_no_longer_than_a_20th_of_the_rtt() {
    let acks = reported_blocks(Config::default(), 1_200_000_000, ms(4), 200, |n| n == 21);
    let gaps: Vec<u64> = acks.windows(2).map(|pair| pair[1].at.since(pair[0].at).as_micros()).collect();
    assert!(gaps[2..].iter().all(|gap| (205..=215).contains(gap)), "0.2 ms from the next segment on: {gaps:?}");
}

#[test]
fn one_ack_compresses_45_at_most() {
    let acks = reported_blocks(Config::default(), 120_000_000_000, ms(100), 1_000, |n| n == 21);
    let segments: Vec<u64> = acks.windows(2).map(|p| (p[1].seg.sacks[0].end - p[0].seg.sacks[0].end) / MSS).collect();
    assert_eq!(segments[..2], [1, 1]);
    let (last, most) = segments[2..].split_last().expect("some");
    assert!(most.iter().all(|&n| n == 45) && *last <= 45, "{segments:?}");
}

#[test]
fn no_ack_is_compressed_where_that_is_off_or_the_recovery_has_none() {
    for cfg in [
        Config { sack_compression: false, ..Config::default() },
        Config { delayed_ack: false, ..Config::default() },
        Config { recovery: Recovery::Sack, ..Config::default() },
    ] {
        assert_eq!(reported_blocks(cfg, 120_000_000, ms(100), 100, |n| n == 21).len(), 79);
    }
}

#[test]
fn every_block_is_reported_despite_ack_compression() {
    let acks = reported_blocks(Config::default(), 120_000_000, ms(100), 200, |n| n > 20 && n % 2 == 1);
    for n in (22..=200).step_by(2) {
        let start = 1 + (n + 1) * MSS;
        let block = SackBlock { start, end: start + MSS };
        assert!(acks.iter().any(|ack| ack.seg.sacks[..usize::from(ack.seg.sack_count)].contains(&block)), "{n}");
    }
    assert!(acks.len() < 90, "some were held back: {}", acks.len());
}
