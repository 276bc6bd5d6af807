//! Reno and storage_friendly against their equations (RFC 5681, RFC 3465, evaluation/papers/dsan).

use crate::common::{parameters, Flow};
use congestion::{find, Controller, ParamError, INFINITE_SSTHRESH};

const RTT: u64 = 40_000;

#[test]
fn slow_start_doubles_per_round_also_with_delayed_acks() {
    for algorithm in ["reno", "storage_friendly", "cubic"] {
        for per_ack in [1, 2] {
            let mut flow = Flow::new(algorithm, &[], 2);
            flow.per_ack = per_ack;
            let windows: Vec<_> = (0..3)
                .map(|_| {
                    flow.round(RTT);
                    flow.cwnd()
                })
                .collect();
            // RFC 3465: bytes, not ACKs, are counted.
            assert_eq!(windows, [4, 8, 16], "{algorithm}, {per_ack} segments per ACK");
        }
    }
}

#[test]
fn slow_start_stops_at_the_threshold_and_the_rest_counts_as_avoidance() {
    let mut flow = Flow::new("reno", &[], 10);
    flow.control.sock_mut().snd_ssthresh = 12;
    flow.ack(14, 40_000);
    // 2 to reach the threshold, 12 for one segment of linear growth.
    assert_eq!((flow.cwnd(), flow.control.sock().snd_cwnd_cnt), (13, 0));
}

#[test]
fn avoidance_adds_one_segment_per_round() {
    for algorithm in ["reno", "storage_friendly"] {
        let mut flow = Flow::new(algorithm, &[], 100);
        flow.control.sock_mut().snd_ssthresh = 50;
        for round in 1..=50 {
            flow.round(RTT);
            assert_eq!(flow.cwnd(), 100 + round, "{algorithm}");
        }
    }
}

#[test]
fn credit_from_a_higher_window_is_worth_one_segment() {
    let mut flow = Flow::new("reno", &[], 10);
    flow.control.sock_mut().snd_ssthresh = 5;
    flow.control.sock_mut().snd_cwnd_cnt = 1000;
    flow.ack(1, 40_000);
    assert_eq!((flow.cwnd(), flow.control.sock().snd_cwnd_cnt), (11, 1));
}

#[test]
fn nothing_grows_while_the_application_is_the_limit() {
    for (algorithm, values) in
        [("reno", vec![]), ("cubic", vec![]), ("storage_friendly", vec![("congestion_avoidance", 0)])]
    {
        let mut flow = Flow::new(algorithm, &values, 100);
        flow.control.sock_mut().snd_ssthresh = 50;
        flow.control.sock_mut().is_cwnd_limited = 0;
        flow.control.sock_mut().max_packets_out = 10;
        flow.control.cong_avoid(0, 10);
        assert_eq!(flow.cwnd(), 100, "{algorithm}");
    }
}

#[test]
fn slow_start_may_grow_to_twice_what_was_in_flight() {
    // Linux's tcp_is_cwnd_limited; RFC 7661, 4.1.
    let mut flow = Flow::new("reno", &[], 100);
    flow.control.sock_mut().is_cwnd_limited = 0;
    flow.control.sock_mut().max_packets_out = 51;
    flow.control.cong_avoid(0, 10);
    assert_eq!(flow.cwnd(), 110);
    flow.control.cong_avoid(0, 10);
    assert_eq!(flow.cwnd(), 110);
}

#[test]
fn reno_halves_and_never_below_two() {
    for (before, after) in [(1000, 500), (101, 50), (5, 2), (3, 2), (1, 2)] {
        let mut flow = Flow::new("reno", &[], before);
        assert_eq!(flow.control.ssthresh(), after);
    }
}

#[test]
fn an_eighth_less_is_the_papers_backoff() {
    for (before, after) in [(1000, 875), (800, 700), (10, 8), (7, 6), (2, 2), (1, 2), (34_000_000, 29_750_000)] {
        let mut flow = Flow::new("storage_friendly", &[], before);
        assert_eq!(flow.control.ssthresh(), after);
    }
}

#[test]
fn a_reduction_of_one_half_is_reno() {
    for cwnd in 1..2000 {
        let reno = Flow::new("reno", &[], cwnd).control.ssthresh();
        let half = Flow::new("storage_friendly", &[("reduction", 500_000)], cwnd).control.ssthresh();
        assert_eq!(reno, half, "at {cwnd}");
    }
}

#[test]
fn without_avoidance_growth_stays_exponential_above_the_threshold() {
    let mut flow = Flow::new("storage_friendly", &[("congestion_avoidance", 0)], 100);
    flow.lose(RTT);
    assert_eq!((flow.cwnd(), flow.ssthresh()), (87, 87));
    for window in [174, 348, 696] {
        flow.round(RTT);
        assert_eq!(flow.cwnd(), window);
    }
    flow.control.sock_mut().snd_cwnd_clamp = 1000;
    flow.round(RTT);
    assert_eq!(flow.cwnd(), 1000);
}

#[test]
fn the_sawtooth_period_is_half_a_window_of_rounds() {
    // RFC 5681: from W / 2 back to W at one segment per RTT; with reduction r: r W rounds.
    for (algorithm, rounds) in [("reno", 200), ("storage_friendly", 50)] {
        let mut flow = Flow::new(algorithm, &[], 400);
        flow.lose(RTT);
        let mut count = 0;
        while flow.cwnd() < 400 {
            flow.round(RTT);
            count += 1;
        }
        assert_eq!(count, rounds, "{algorithm}");
    }
}

#[test]
fn an_uncalled_for_reduction_is_taken_back() {
    for algorithm in ["reno", "storage_friendly", "cubic"] {
        let mut flow = Flow::new(algorithm, &[], 400);
        flow.lose(RTT);
        assert_eq!(flow.control.undo_cwnd(), 400, "{algorithm}");
        flow.control.sock_mut().snd_cwnd = 500;
        assert_eq!(flow.control.undo_cwnd(), 500, "{algorithm}: more than before is kept");
    }
}

#[test]
fn the_built_in_algorithms_describe_themselves() {
    let names: Vec<_> = congestion::builtin().iter().map(|a| a.name()).collect();
    for needed in ["cubic", "reno", "storage_friendly"] {
        assert!(names.contains(&needed), "{needed} of {names:?}");
    }
    for algorithm in congestion::builtin() {
        assert!(!algorithm.summary().is_empty() && !algorithm.source().is_empty(), "{algorithm:?}");
        assert!(algorithm.code().contains("#include \"cc.h\""));
        assert_eq!(algorithm.code().matches("#include").count(), 1, "{algorithm:?} includes one header");
        assert!(algorithm.params().iter().all(|p| !p.doc.is_empty() && !p.unit.is_empty()), "{algorithm:?}");
    }
    let friendly = find("storage_friendly").expect("built in");
    let reduction = &friendly.params()[0];
    assert_eq!((reduction.name.as_str(), reduction.text(reduction.default).as_str()), ("reduction", "0.125"));
    assert_eq!(friendly.hooks(), ["ssthresh", "cong_avoid", "undo_cwnd"]);
    assert!(!friendly.needs_ecn() && !friendly.has_cong_control());
    assert!(find("no_such").is_none());
}

#[test]
fn a_fresh_flow_has_an_infinite_threshold() {
    assert_eq!(Flow::new("cubic", &[], 10).ssthresh(), INFINITE_SSTHRESH);
}

#[test]
fn wrong_parameters_are_named_with_what_would_be_right() {
    let error = |algorithm: &str, values: &[(&str, i64)]| -> ParamError {
        Controller::new(&find(algorithm).expect("built in"), &parameters(values)).expect_err("a wrong parameter")
    };
    assert_eq!(
        error("storage_friendly", &[("reduction", 1_500_000)]).to_string(),
        "storage_friendly: reduction = 1.5 is out of range: 0.001 to 0.9"
    );
    assert_eq!(
        error("cubic", &[("hystart_ack_delta", 0)]).to_string(),
        "cubic: hystart_ack_delta = 0 is out of range: 1 to 1000000 us"
    );
    assert_eq!(
        error("storage_friendly", &[("reductoin", 1)]).to_string(),
        "storage_friendly has no parameter \"reductoin\": one of reduction, congestion_avoidance, cap"
    );
    assert_eq!(error("reno", &[("beta", 1)]).to_string(), "reno has no parameter \"beta\": it has none");
}
