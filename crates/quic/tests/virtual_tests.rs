//! Controls under QUIC and under the simulator's TCP over the same path, in virtual time.

use crate::virtual_path::{quic_bulk, tcp_bulk, Path, Transfer};
use units::{Rate, Span};

/// Seconds of a transfer, and of its start that are not compared: how far slow start overshoots is a matter of pacing.
const SECONDS: usize = 12;
const START: usize = 2;

/// 10 Mbit/s, 40 ms, a queue of one BDP.
fn path(loss_e12: u64) -> Path {
    Path { rate: Rate(10_000_000), rtt: Span::from_millis(40), queue_bytes: 50_000, loss_e12, seed: 5, looks_ns: 1 }
}

/// Goodput and mean window of every built-in control are those of TCP, within these shares.
fn all_alike(path: &Path, goodput: f64, window: f64) {
    for algorithm in congestion::builtin() {
        let quic = quic_bulk(algorithm, path, SECONDS as u64);
        let tcp = tcp_bulk(algorithm, path, SECONDS as u64);
        let apart = |of: &dyn Fn(&Transfer) -> f64| (of(&quic) / of(&tcp) - 1.0).abs();
        let (by_goodput, by_window) = (apart(&|t| t.goodput(START, SECONDS)), apart(&|t| t.mean_cwnd(START, SECONDS)));
        let name = algorithm.name();
        assert!(by_goodput < goodput, "{name}: goodput {:.1} % apart", by_goodput * 100.0);
        // FAST fills the short queue to its end on one and not quite on the other.
        let window = if name == "fast" { 2.0 * window } else { window };
        assert!(by_window < window, "{name}: window {:.1} % apart", by_window * 100.0);
        // Packets that were dropped last are not judged yet.
        assert!(quic.lost <= quic.dropped, "{name}: QUIC took for lost what arrived");
    }
}

#[test]
fn every_control_has_the_goodput_and_window_of_tcp_on_a_clean_path() {
    all_alike(&path(0), 0.04, 0.1);
}

#[test]
fn every_control_has_the_goodput_and_window_of_tcp_on_a_lossy_path() {
    all_alike(&path(1_000_000_000), 0.04, 0.1);
}

/// Times at which the window fell by more than a quarter within one round trip, s.
fn halvings(transfer: &Transfer) -> Vec<f64> {
    let mut at = vec![];
    let mut quiet_until = START * 100;
    for (i, pair) in transfer.samples.windows(5).enumerate() {
        if i >= quiet_until && pair[4].cwnd < 0.75 * pair[0].cwnd {
            at.push(i as f64 / 100.0);
            quiet_until = i + 20;
        }
    }
    at
}

#[test]
fn renos_sawtooth_is_that_of_tcp() {
    let reno = congestion::find("reno").expect("built in");
    let path = path(0);
    let (quic, tcp) = (halvings(&quic_bulk(&reno, &path, 30)), halvings(&tcp_bulk(&reno, &path, 30)));
    assert!(quic.len() >= 5 && quic.len().abs_diff(tcp.len()) <= 1, "{quic:?} {tcp:?}");
    let period = |at: &[f64]| (at[at.len() - 1] - at[0]) / (at.len() - 1) as f64;
    let (quic, tcp) = (period(&quic), period(&tcp));
    assert!((quic / tcp - 1.0).abs() < 0.1, "a period of {quic:.2} s, and of {tcp:.2} s under TCP");
}

#[test]
fn a_busy_host_costs_little() {
    // Its threads look at the socket and at timers every 8 ms, a fifth of the RTT.
    let path = Path { looks_ns: 8_000_000, ..path(0) };
    for name in ["cubic", "storage_friendly", "bbr"] {
        let control = congestion::find(name).expect("built in");
        let goodput = quic_bulk(&control, &path, SECONDS as u64).goodput(START, SECONDS);
        assert!(goodput > 0.85 * path.rate.0 as f64, "{name}: {:.2} Mbit/s", goodput / 1e6);
    }
}
