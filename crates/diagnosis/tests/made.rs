//! Samples made by hand: what no path was found to give, and what there is no answer to.

use crate::recorded::flow;
use diagnosis::{diagnose, diagnose_all, Confidence, Flow, Limit, Role, Sample};

/// A sender with a window of 100 segments and 20 ms of round trip, of which all is used: a sample every 20 ms.
fn busy(change: impl Fn(u64, &mut Sample)) -> Flow {
    let samples = (0..50)
        .map(|number| {
            let mut sample = Sample {
                at_us: number * 20_000,
                cwnd_packets: 100,
                ssthresh_packets: Some(50),
                mss_bytes: 1000,
                srtt_us: Some(20_100),
                min_rtt_us: Some(20_050),
                unacked: 100,
                bytes_acked: 1_000_000 + number * 100_000,
                bytes_sent: Some(1_100_000 + number * 100_000),
                delivered: Some(1000 + number * 100),
                notsent_bytes: 100_000,
                unacknowledged_bytes: 200_000,
                busy_us: Some(1_000_000 + number * 20_000),
                rwnd_limited_us: Some(0),
                sndbuf_limited_us: Some(0),
                snd_wnd_bytes: Some(10_000_000),
                send_buffer_bytes: 1_000_000,
                send_memory_bytes: 900_000,
                ..Sample::default()
            };
            change(number, &mut sample);
            sample
        })
        .collect();
    Flow {
        local: "192.0.2.1:50000".into(),
        remote: "192.0.2.2:5001".into(),
        congestion_control: "cubic".into(),
        ended: false,
        samples,
    }
}

fn limit(flow: &Flow) -> Option<Limit> {
    diagnose(flow).expect("something moved").limit
}

#[test]
fn marks_of_ecn_are_a_queue_s() {
    let marked = busy(|number, sample| sample.delivered_ce = Some(number));
    assert_eq!(limit(&marked), Some(Limit::Queue));
}

#[test]
fn without_loss_and_queue_the_window_still_grows() {
    let growing = busy(|number, sample| sample.cwnd_packets = 100 + number);
    let found = diagnose(&growing).unwrap();
    assert_eq!((found.limit, found.confidence), (Some(Limit::StartUp), Some(Confidence::Likely)), "{found:?}");
}

#[test]
fn a_window_that_still_recovers_from_losses_before_is_limited_by_them() {
    let recovering = busy(|_, sample| sample.total_retrans = 7);
    assert_eq!(limit(&recovering), Some(Limit::Loss));
}

#[test]
fn a_closed_window_without_progress_is_the_receiving_application_s() {
    let stalled = busy(|_, sample| {
        (sample.bytes_acked, sample.snd_wnd_bytes, sample.probes) = (1_000_000, Some(0), 1);
    });
    assert_eq!(limit(&stalled), Some(Limit::ReceivingApplication));
}

#[test]
fn there_is_no_answer_where_the_counters_have_none() {
    let dead = busy(|number, sample| (sample.bytes_acked, sample.timeouts) = (1_000_000, Some(number / 10)));
    let found = diagnose(&dead).unwrap();
    assert_eq!(found.limit, None);
    assert!(found.because.contains("4 retransmission time-outs"), "{found:?}");
    assert!(found.because.contains("elephan measure mtu"), "{found:?}");
    let once = busy(|number, sample| (sample.bytes_acked, sample.timeouts) = (1_000_000, Some(number / 30)));
    assert!(diagnose(&once).unwrap().because.contains("1 retransmission time-out meanwhile"));
    // A long time-out may begin before the watch and end after it.
    let silent = busy(|_, sample| (sample.bytes_acked, sample.total_retrans) = (1_000_000, 6));
    assert!(diagnose(&silent).unwrap().because.contains("elephan measure mtu"));
    let old = busy(|_, sample| sample.busy_us = None);
    assert!(diagnose(&old).unwrap().because.contains("Linux 4.10"));
    let mut brief = busy(|_, _| {});
    brief.samples.truncate(2);
    assert_eq!(diagnose(&brief).unwrap().because, "seen too briefly");
    assert_eq!(diagnose(&Flow::default()), None);
}

#[test]
fn a_connection_that_carries_nothing_has_no_diagnosis() {
    let idle = busy(|_, sample| {
        (sample.bytes_acked, sample.unacked, sample.unacknowledged_bytes, sample.notsent_bytes) = (1_000_000, 0, 0, 0);
    });
    assert_eq!(diagnose(&idle), None);
}

#[test]
fn of_both_ends_the_sender_s_is_given_with_what_the_receiver_knows() {
    let sender = flow("receive_window-cubic");
    let mut receiver = flow("receiver-receiving_application");
    (receiver.local, receiver.remote) = (sender.remote.clone(), sender.local.clone());
    let other = busy(|_, sample| sample.total_retrans = 7);
    let found = diagnose_all(&[receiver, other, sender]);
    // The sender's own window looks steady; its receiver knows that nobody reads.
    let (place, first) = &found[0];
    assert_eq!((found.len(), *place, first.role), (2, 2, Role::Sender), "{found:?}");
    assert_eq!(first.limit, Some(Limit::ReceivingApplication));
    assert!(first.because.ends_with("(seen at its receiver)"), "{first:?}");
    assert_eq!(found[1].1.limit, Some(Limit::Loss));
}
