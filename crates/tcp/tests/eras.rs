//! TCP as the papers of 2002 to 2006 ran it: classic Reno, unvalidated windows, ACKs counted, Nagle, lost copies.
use crate::common::*;
use tcp::config::{Config, Count, LostRetransmissions, Recovery};
use tcp::segment::Segment;
use units::{Size, Span, Time};

const MSS: u64 = 1448;

fn late() -> Time {
    Time::ZERO + Span::from_secs(300)
}

/// A window of 20 segments, an ACK for each.
fn plain(recovery: Recovery) -> Config {
    Config {
        recovery,
        initial_cwnd: 20,
        initial_ssthresh: Some(20),
        delayed_ack: false,
        limited_transmit: false,
        ..Config::default()
    }
}

/// Drops the segment that begins at `seq` as often as it is sent, up to `times`.
fn losing(seq: u64, mut times: usize) -> impl FnMut(u64, &Segment) -> Fate {
    move |_, seg| {
        if seg.seq == seq && times > 0 {
            times -= 1;
            return Fate::Drop;
        }
        Fate::Pass
    }
}

#[test]
fn reno_leaves_fast_recovery_at_the_first_new_ack_and_halves_for_each_loss() {
    for (recovery, times, least, most) in [(Recovery::NewReno, 1, 10, 11), (Recovery::Reno, 2, 5, 6)] {
        let mut pair = Pair::new(plain(recovery)).drop_data(&[30, 32]).connect();
        pair.write(200 * MSS);
        pair.run_until_received(200 * MSS, late());
        let stats = pair.client.stats();
        assert_eq!((stats.fast_retransmits, stats.timeouts), (times, 0), "{recovery:?}");
        assert_eq!(stats.retransmitted_segments, 2, "{recovery:?}");
        assert!((least..=most).contains(&pair.ssthresh()), "{recovery:?}: {}", pair.ssthresh());
    }
}

#[test]
fn four_losses_of_a_window_cost_reno_a_time_out_and_it_goes_back_to_the_first_that_is_missing() {
    let mut pair = Pair::new(plain(Recovery::Reno)).drop_data(&[30, 32, 34, 36]).connect();
    pair.write(100 * MSS);
    pair.run_until_received(100 * MSS, late());
    let stats = pair.client.stats();
    assert_eq!((stats.fast_retransmits, stats.timeouts), (2, 1), "{stats:?}");
    // Of what is sent again after the time-out the receiver has a part.
    let again = pair.server.stats().duplicate_segments_received;
    assert!(again > 0, "{again}");
    assert_eq!(stats.retransmitted_segments, 4 + again);
    assert_eq!(stats.spurious_undos(), 0);
}

#[test]
fn a_time_out_of_fast_recovery_halves_what_reno_has_in_flight() {
    let ssthresh = |recovery| {
        let mut pair = Pair::new(plain(recovery)).on_data(losing(1 + 29 * MSS, 2)).connect();
        pair.write(200 * MSS);
        pair.run_until_received(200 * MSS, late());
        assert_eq!(
            (pair.client.stats().timeouts, pair.client.stats().cwnd_reductions),
            (1, 1 + u64::from(recovery == Recovery::Reno))
        );
        pair.ssthresh()
    };
    // Half of the window, by Linux once for both; by ns-2 anew, half of the window that duplicate ACKs have inflated.
    assert!((10..=11).contains(&ssthresh(Recovery::NewReno)), "{}", ssthresh(Recovery::NewReno));
    assert!(ssthresh(Recovery::Reno) > 15, "{}", ssthresh(Recovery::Reno));
}

#[test]
fn reno_negotiates_no_sack() {
    let mut pair = Pair::with(plain(Recovery::Reno), plain(Recovery::Sack), "reno", ms(50)).drop_data(&[30]).connect();
    pair.write(100 * MSS);
    pair.run_until_received(100 * MSS, late());
    assert!(pair.acks.iter().all(|ack| ack.seg.sack_count == 0));
}

/// The window after 40 round trips in which the application sent five segments each.
fn window_of_a_slow_sender(cfg: Config) -> u32 {
    let mut pair = Pair::new(Config { slow_start_after_idle: false, ..cfg }).connect();
    for _ in 0..40 {
        pair.write(5 * MSS);
        pair.run_for(ms(100));
    }
    pair.cwnd()
}

#[test]
fn a_window_grows_unused_only_without_validation() {
    let cfg = || Config { initial_cwnd: 20, delayed_ack: false, initial_ssthresh: Some(100), ..Config::default() };
    assert_eq!(window_of_a_slow_sender(cfg()), 20);
    let free = window_of_a_slow_sender(Config { cwnd_validation: false, ..cfg() });
    assert!((100..=110).contains(&free), "{free}");
    // Not beyond what the peer allows.
    let window = Size(50 * MSS);
    let bound = Config { cwnd_validation: false, receive_window: window, ..cfg() };
    let bound = window_of_a_slow_sender(bound);
    assert!((45..=50).contains(&bound), "{bound}");
}

#[test]
fn a_loss_halves_the_lesser_of_an_unvalidated_window_and_the_peers() {
    let cfg = Config { cwnd_validation: false, receive_window: Size(40 * MSS), ..plain(Recovery::Reno) };
    let mut pair = Pair::new(Config { initial_cwnd: 200, initial_ssthresh: None, ..cfg }).drop_data(&[10]).connect();
    pair.write(60 * MSS);
    pair.run_until_received(60 * MSS, late());
    assert!((19..=20).contains(&pair.ssthresh()), "{}", pair.ssthresh());
}

#[test]
fn counted_acks_make_slow_start_slower_under_delayed_acks() {
    let window = |count| {
        let cfg = Config { count, initial_cwnd: 2, quickack_segments: 0, ..Config::default() };
        let mut pair = Pair::new(cfg).connect();
        pair.write(10_000 * MSS);
        pair.run_for(ms(500));
        pair.cwnd()
    };
    let (segments, acks) = (window(Count::Segments), window(Count::Acks));
    // Doubled in each of five round trips; or half as much more.
    assert!((60..=64).contains(&segments), "{segments}");
    assert!((12..=16).contains(&acks), "{acks}");
}

#[test]
fn nagle_holds_back_a_short_segment_until_all_is_acknowledged() {
    for (nagle, expected) in [(false, vec![100, 100, 100]), (true, vec![100, 200])] {
        let mut pair = Pair::new(Config { nagle, ..Config::default() }).connect();
        for _ in 0..3 {
            pair.write(100);
            pair.run_for(ms(10));
        }
        pair.run_for(ms(500));
        let lens: Vec<u32> = pair.data().map(|sent| sent.seg.len).collect();
        assert_eq!(lens, expected, "nagle {nagle}");
    }
    // Full segments and the end of the data go at once.
    let mut pair = Pair::new(Config { nagle: true, ..Config::default() }).connect();
    pair.write(2 * MSS);
    pair.write(2 * MSS + 100);
    pair.close();
    assert_eq!(pair.data().count(), 5);
}

/// Drops segment 30 and its first `copies` copies.
fn lose_again(lost_retransmissions: LostRetransmissions, copies: usize) -> tcp::Stats {
    let cfg = Config { lost_retransmissions, undo: false, ..plain(Recovery::Sack) };
    let mut pair = Pair::new(cfg).on_data(losing(1 + 29 * MSS, copies + 1)).connect();
    pair.write(400 * MSS);
    pair.run_until_received(400 * MSS, late());
    *pair.client.stats()
}

#[test]
fn a_sender_like_that_of_ns2_forgets_what_was_sacked_and_sends_it_again() {
    let duplicates = |lost_retransmissions| {
        let cfg = Config { lost_retransmissions, undo: false, sack_compression: false, ..plain(Recovery::Sack) };
        // The first segment and its copy are lost. When the next copy ends the recovery, six holes beyond its end are
        // known, of which an ACK has room to tell of three or four.
        let cfg = Config { initial_cwnd: 40, initial_ssthresh: Some(40), ..cfg };
        let mut pair = Pair::new(cfg).drop_data(&[1, 41, 43, 45, 47, 49, 51, 53]).connect();
        pair.write(400 * MSS);
        pair.run_until_received(400 * MSS, late());
        assert_eq!(pair.client.stats().timeouts, 0);
        pair.server.stats().duplicate_segments_received
    };
    assert_eq!(duplicates(LostRetransmissions::Era), 0);
    assert!(duplicates(LostRetransmissions::Repeatedly) > 0);
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    use LostRetransmissions::{Era, Never, Repeatedly};
    for copies in 1..4 {
        for mode in [Era, Repeatedly] {
            let stats = lose_again(mode, copies);
            assert_eq!((stats.timeouts, stats.lost_retransmissions), (0, copies as u64), "{mode:?}");
            assert_eq!(stats.retransmitted_segments, 1 + copies as u64, "{mode:?}");
        }
        let never = lose_again(Never, copies);
        assert!(never.timeouts > 0 && never.lost_retransmissions == never.timeouts, "{never:?}");
    }
}

/// Segments first sent after the first copy of a segment of which the sender knew that they had arrived when it sent
/// the second, and the threshold of duplicate ACKs; before, four segments come late where `late`.
fn known_at_the_second_copy(late: bool) -> (u64, u32) {
    let lost = 1 + 59 * MSS;
    let mut fate = losing(lost, 2);
    let cfg = Config { undo: false, sack_compression: false, ..plain(Recovery::Sack) };
    // 2.4 Mbit/s: 5 ms for a packet, so that each SACK comes at a time of its own.
    let mut pair = Pair::new(cfg).bottleneck(2_400_000, u64::MAX).on_data(move |n, seg| {
        if late && (15..19).contains(&n) {
            return Fate::Delay(Span::from_micros(25_100));
        }
        fate(n, seg)
    });
    pair = pair.connect();
    pair.write(150 * MSS);
    pair.run_until_received(100 * MSS, at_ms(300_000));
    let stats = pair.client.stats();
    assert_eq!((stats.timeouts, stats.lost_retransmissions, stats.retransmitted_segments), (0, 1, 2), "{stats:?}");
    let copies: Vec<usize> = (0..pair.sent.len()).filter(|&at| pair.sent[at].seg.seq == lost).collect();
    let new_from = pair.sent[..copies[1]].iter().map(|sent| sent.seg.end_seq()).max().unwrap();
    let second = pair.sent[copies[2]].at;
    let known = pair.acks.iter().filter(|ack| ack.at + ms(50) <= second);
    let highest =
        known.flat_map(|ack| ack.seg.sacks[..ack.seg.sack_count as usize].iter().map(|block| block.end)).max().unwrap();
    ((highest - new_from) / MSS, pair.client.reordering())
}

#[test]
fn where_reordering_was_seen_a_lost_retransmission_takes_as_many_segments_sent_after_it() {
    assert_eq!(known_at_the_second_copy(false), (1, 3));
    // From the first that came late to the last that came in time: six.
    assert_eq!(known_at_the_second_copy(true), (6, 6));
}
