//! Evaluates elephant detection: flows of known size and rate pass a sampler and a flow table, and the table's
//! elephants are compared with the true ones.

use crate::policy::Thresholds;
use crate::sampling::Sampler;
use crate::table::{rate_of, FlowTable};
use crate::traffic_model::{exponential, Distribution};
use link::random::{stream_seed, Random};
use units::{Rate, Size, Span, Time, NS_PER_S};

/// Traffic, and the configuration of the detector.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Evaluation {
    /// Seed of arrivals, sizes, rates and samples, each a stream of its own.
    pub seed: u64,
    /// Length of the traffic.
    pub duration: Span,
    /// Flows that begin per second, Poisson.
    pub arrivals_per_s: f64,
    /// Their bytes.
    pub sizes: Distribution,
    /// Their rates, bit/s: each flow sends evenly at its own.
    pub rates: Distribution,
    /// Size of a packet, bytes.
    pub packet: u64,
    /// Time between two decisions.
    pub interval: Span,
    /// Sampling is 1 in this many packets.
    pub one_in: u64,
    /// Most flows in the flow table.
    pub flow_table_size: usize,
    /// Thresholds of an elephant.
    pub thresholds: Thresholds,
}

/// Accuracy of the detection.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Accuracy {
    /// All flows.
    pub flows: u64,
    /// Bytes of all flows.
    pub bytes: u64,
    /// Most flows that sent in one interval.
    pub active_max: u64,
    /// Flows that were elephants in some interval, by their true rate and volume.
    pub elephants: u64,
    /// Their bytes.
    pub elephant_bytes: u64,
    /// Elephants never detected (false negatives).
    pub misses: u64,
    /// Bytes that elephants sent between becoming elephants and their detection, if any.
    pub undetected_bytes: u64,
    /// Flows detected that never were elephants.
    pub false_positives: u64,
    /// Of those, flows that reached half of both thresholds in one interval.
    pub near_false_positives: u64,
    /// Sum over detected elephants of the time from becoming one to detection, s.
    pub delay_sum_s: f64,
    /// Flows evicted from the table.
    pub evictions: u64,
}

struct Flow {
    left: u64,
    rate: Rate,
    /// Bytes due, less than a packet.
    carry: u64,
    sent: u64,
    begin: Time,
    true_since: Option<Time>,
    near: bool,
    found: bool,
}

/// Runs `evaluation`: O(flows that send) per interval.
pub fn run(evaluation: &Evaluation) -> Accuracy {
    let stream = |name: &str| Random::new(stream_seed(evaluation.seed, name));
    let (mut arrivals, mut sizes, mut rates) = (stream("arrivals"), stream("sizes"), stream("rates"));
    let mut sampler = Sampler::new(evaluation.one_in, stream_seed(evaluation.seed, "samples"));
    let mut table = FlowTable::new(evaluation.flow_table_size, evaluation.one_in);
    let (mut found, mut active, mut first) = (Accuracy::default(), std::collections::BTreeMap::new(), 0u64);
    let gap_ns = NS_PER_S as f64 / evaluation.arrivals_per_s;
    let mut next = Time(exponential(gap_ns, &mut arrivals) as u64);
    let mut now = Time::ZERO;
    while now < Time::ZERO + evaluation.duration {
        let end = now + evaluation.interval;
        while next < end {
            let flow = Flow {
                left: evaluation.sizes.draw(&mut sizes),
                rate: Rate(evaluation.rates.draw(&mut rates)),
                carry: 0,
                sent: 0,
                begin: next,
                true_since: None,
                near: false,
                found: false,
            };
            active.insert(first, flow);
            first += 1;
            next += Span(exponential(gap_ns, &mut arrivals) as u64);
        }
        found.active_max = found.active_max.max(active.len() as u64);
        let mut over = vec![];
        for (&key, flow) in &mut active {
            let bytes = pass(flow, now, end, evaluation.packet);
            let packets = bytes.div_ceil(evaluation.packet);
            let taken = sampler.handle_packets(packets);
            let taken_bytes =
                if packets == 0 { 0 } else { (u128::from(bytes) * u128::from(taken) / u128::from(packets)) as u64 };
            table.handle_sampled(now, key, taken, taken_bytes);
            found.bytes += bytes;
            classify(flow, bytes, end, evaluation);
            if flow.left == 0 {
                over.push(key);
            }
        }
        table.handle_interval(end, evaluation.interval, Span(10 * evaluation.interval.0));
        for (&key, flow) in &mut active {
            if !flow.found && table.is_elephant(key, evaluation.interval, &evaluation.thresholds) {
                flow.found = true;
                let late = flow.true_since.map_or(Span::ZERO, |since| end.since(since));
                found.delay_sum_s += late.as_secs_f64();
                found.undetected_bytes += flow.rate.data_in(late).0;
            }
        }
        for key in over {
            count(&mut found, active.remove(&key), end);
        }
        now = end;
    }
    for (_, flow) in active {
        count(&mut found, Some(flow), now);
    }
    found.evictions = table.evictions();
    found
}

/// The flow sends full packets, and a last packet with the rest.
fn pass(flow: &mut Flow, from: Time, to: Time, packet: u64) -> u64 {
    let due = flow.rate.data_in(to.since(from.max(flow.begin))).0 + flow.carry;
    let bytes = if due >= flow.left { flow.left } else { due / packet * packet };
    flow.carry = due.saturating_sub(bytes);
    flow.left -= bytes;
    flow.sent += bytes;
    bytes
}

fn classify(flow: &mut Flow, bytes: u64, end: Time, evaluation: &Evaluation) {
    let (rate, volume) = (rate_of(bytes, evaluation.interval), Size(flow.sent));
    let of = evaluation.thresholds;
    if rate >= of.rate && volume >= of.volume {
        flow.true_since.get_or_insert(end);
    }
    flow.near |= 2 * rate.0 >= of.rate.0 && 2 * volume.0 >= of.volume.0;
}

fn count(found: &mut Accuracy, flow: Option<Flow>, now: Time) {
    let Some(flow) = flow else { return };
    found.flows += 1;
    match flow.true_since {
        Some(since) => {
            found.elephants += 1;
            found.elephant_bytes += flow.sent;
            if !flow.found {
                found.misses += 1;
                found.undetected_bytes += flow.rate.data_in(now.since(since)).0.min(flow.sent);
            }
        }
        None if flow.found => {
            found.false_positives += 1;
            found.near_false_positives += u64::from(flow.near);
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluation(one_in: u64, flow_table_size: usize, confidence_sigmas_e3: u32) -> Evaluation {
        Evaluation {
            seed: 1,
            duration: Span::from_secs(30),
            arrivals_per_s: 300.0,
            sizes: Distribution::Pareto { shape: 1.1, min: 1e4, max: 1e9 },
            rates: Distribution::Lognormal { median: 2e6, sigma: 1.5 },
            packet: 1500,
            interval: Span::from_secs(1),
            one_in,
            flow_table_size,
            thresholds: Thresholds {
                rate: Rate(2_000_000),
                volume: Size(500_000),
                confidence_sigmas_e3,
                return_rate: Rate(1),
            },
        }
    }

    #[test]
    fn full_sampling_and_memory_give_no_errors() {
        let found = run(&evaluation(1, 100_000, 0));
        assert!(found.flows > 8000 && found.elephants > 20, "{found:?}");
        assert_eq!((found.misses, found.false_positives, found.undetected_bytes), (0, 0, 0));
        assert!(
            found.elephants * 20 < found.flows && found.elephant_bytes * 6 > found.bytes,
            "a few carry much: {found:?}"
        );
    }

    #[test]
    fn bounded_memory_gives_misses_but_no_false_positives() {
        let found = run(&evaluation(1, 24, 0));
        assert_eq!(found.false_positives, 0);
        assert!(found.evictions > 1000, "{found:?}");
        assert!(found.misses > 0 && found.misses < found.elephants, "{found:?}");
    }

    #[test]
    fn standard_errors_trade_false_positives_for_misses() {
        let (bold, careful) = (run(&evaluation(100, 4096, 0)), run(&evaluation(100, 4096, 2000)));
        assert_eq!(bold.flows, careful.flows);
        assert!(bold.false_positives > careful.false_positives, "{bold:?} {careful:?}");
        assert!(
            bold.misses + bold.delay_sum_s as u64 <= careful.misses + careful.delay_sum_s as u64,
            "{bold:?} {careful:?}"
        );
    }
}
