//! Constant traffic over lines that it does not overload, counted in closed form.
//!
//! If no frame waits for another, the time at which each is anywhere follows from its number alone, and so does the
//! number of those that are past a place at a time. Losses are drawn as for packets: the distance to each by the same
//! numbers from the same stream. A day of a full line costs what its losses cost.
//!
//! **Invariant: the counters are those of the same run packet by packet.**

use crate::counters::{BackgroundCounters, HoldBufferCounters, MeasuredRun, NetworkCounters};
use crate::frame_clock::NS_PER_BYTE;
use crate::link_config::{framing_of, link_config};
use crate::series::{FlowSeries, LinkSeries};
use crate::validate::ValidRun;
use link::random::stream_seed;
use link::{LinkConfig, LossSchedule, QueueConfig, Stats};
use spec::{BackgroundSpec, FramesSpec, LinkSpec};
use units::Time;

/// Counts `run` without its packets.
///
/// # Errors
/// The part of the run that needs packets, as a phrase.
pub fn count(run: ValidRun<'_>) -> Result<MeasuredRun, String> {
    let alone = run.flows.is_empty() && run.short_flows.is_empty() && run.manager.is_none() && run.gateways.is_empty();
    if !alone || !run.events.is_empty() {
        return Err("there are flows or events".to_owned());
    }
    if run.measure.series_interval_ns.is_some() || run.measure.pcap.is_some() {
        return Err("measure.series or a capture asks for each".to_owned());
    }
    let mut used = vec![false; run.links.len()];
    for &link in run.background.iter().flat_map(|source| &source.route) {
        if std::mem::replace(&mut used[link], true) {
            return Err(format!("more than one source crosses {}", run.links[link].name));
        }
    }
    let end = run.duration_ns;
    let mut links = vec![Stats::default(); run.links.len()];
    let mut background = vec![];
    let mut frames = 0;
    for (index, spec) in run.background.iter().enumerate() {
        let counted = Source::new(run, index, spec)?.count(end);
        for (&link, stats) in spec.route.iter().zip(counted.hops) {
            links[link] = stats;
        }
        frames += counted.totals.sent;
        background.push(counted.totals);
    }
    let note = format!("{frames} frames were counted in closed form: none waits for another for a ns");
    Ok(MeasuredRun {
        end: Time(end),
        drained_at: Time(end),
        flows: vec![],
        stripes: vec![],
        network: NetworkCounters { links, background, hold_buffers: HoldBufferCounters::default(), managed: None },
        flow_series: FlowSeries::default(),
        link_series: LinkSeries::default(),
        event_times: vec![],
        windows: None,
        window_reductions: vec![],
        short_flows: vec![],
        copy: None,
        notes: vec![note],
    })
}

/// A time in parts of a ns: bytes x 8e9 over a rate.
#[derive(Clone, Copy)]
struct Ratio {
    ns_rate: u128,
    rate: u128,
}

impl Ratio {
    fn of(bytes: u128, rate_bps: u64) -> Ratio {
        Ratio { ns_rate: bytes * NS_PER_BYTE, rate: u128::from(rate_bps) }
    }

    fn floor(self) -> u128 {
        self.ns_rate / self.rate
    }

    fn ceil(self) -> u128 {
        self.ns_rate.div_ceil(self.rate)
    }

    fn is_whole(self) -> bool {
        self.ns_rate.is_multiple_of(self.rate)
    }
}

/// Sums over a round of frames, to reach any number of them at once.
struct Round {
    /// Bytes of the first k frames.
    before: Vec<u128>,
}

impl Round {
    fn new(bytes: impl Iterator<Item = u32>) -> Round {
        let mut before = vec![0];
        for bytes in bytes {
            before.push(before[before.len() - 1] + u128::from(bytes));
        }
        Round { before }
    }

    /// Bytes of the first `number` frames.
    fn sum(&self, number: u64) -> u128 {
        let length = self.before.len() as u64 - 1;
        u128::from(number / length) * self.before[length as usize] + self.before[(number % length) as usize]
    }
}

struct Hop {
    config: LinkConfig,
    /// Time that frame k of a round takes on the line, ns, rounded up.
    sending_ns: Vec<u128>,
    losses: LossSchedule,
}

struct Source<'a> {
    spec: &'a BackgroundSpec,
    packets: &'a [u32],
    /// Bytes as the source's rate counts them, and of packets.
    framed: Round,
    plain: Round,
    /// The first line is exactly as fast as the source: it is never idle.
    full: bool,
    hops: Vec<Hop>,
}

/// Counters of a source and of the links of its route.
struct Counted {
    totals: BackgroundCounters,
    hops: Vec<Stats>,
}

impl<'a> Source<'a> {
    /// Source `index` of `run`.
    ///
    /// # Errors
    /// The part that needs packets.
    fn new(run: ValidRun<'a>, index: usize, spec: &'a BackgroundSpec) -> Result<Source<'a>, String> {
        let why = |text: &str| Err(format!("background {}: {text}", spec.name));
        let Some(FramesSpec { packets_bytes: packets, framing }) = &spec.frames else {
            return why("its rate is rounded to whole ns between packets; give it as a share of a line, or mix");
        };
        if spec.on_off_ns.is_some() {
            return why("on and off are drawn");
        }
        if spec.active.is_some() {
            return why("it has periods");
        }
        let framing = framing_of(*framing);
        let framed = Round::new(packets.iter().map(|&bytes| framing.line_bytes(bytes)));
        let plain = Round::new(packets.iter().copied());
        // Without flows sources are numbered from 0, and a packet's hash is the number of its source.
        let flow = index as u64;
        let mut hops = vec![];
        for &link in &spec.route {
            hops.push(
                hop(&run.links[link], run.seed, flow, packets)
                    .map_err(|text| format!("{}: {text}", run.links[link].name))?,
            );
        }
        let first = &hops[0].config;
        let full = first.rate.0 == spec.rate_bps && first.framing == framing;
        let source = Source { spec, packets, framed, plain, full, hops };
        match source.first_wait() {
            None => Ok(source),
            Some(hop) => why(&format!("its frames may wait for each other at {}", run.links[spec.route[hop]].name)),
        }
    }

    /// Returns the first hop at which a frame might wait for the one before it, but for the part of a ns that a full
    /// first line is late.
    fn first_wait(&self) -> Option<usize> {
        let length = self.packets.len();
        let before = |k: usize| (k + length - 1) % length;
        let bytes = |k: usize| self.framed.before[k + 1] - self.framed.before[k];
        // Least time from the arrival of the frame before the k-th of a round to that of the k-th, ns.
        let mut apart: Vec<u128> =
            (0..length).map(|k| Ratio::of(bytes(before(k)), self.spec.rate_bps).floor()).collect();
        for (number, hop) in self.hops.iter().enumerate() {
            let sending = &hop.sending_ns;
            if number == 0 && self.full {
                let (packets, limit) = hop.config_limits();
                if packets == 0 || self.packets.iter().any(|&bytes| u64::from(bytes) > limit) {
                    return Some(number);
                }
                apart = (0..length).map(|k| Ratio::of(bytes(k), self.spec.rate_bps).floor()).collect();
                continue;
            }
            if (0..length).any(|k| apart[k] < sending[before(k)]) {
                return Some(number);
            }
            apart = (0..length).map(|k| apart[k] + sending[k] - sending[before(k)]).collect();
        }
        None
    }

    /// Time at which frame `number` begins, ns.
    fn begins(&self, number: u64) -> u128 {
        u128::from(self.spec.start_ns) + Ratio::of(self.framed.sum(number), self.spec.rate_bps).floor()
    }

    /// Time at which frame `number` is at hop `hop`; behind the last one: at the end of the route.
    fn arrives(&self, number: u64, hop: usize) -> u128 {
        let place = (number % self.packets.len() as u64) as usize;
        let mut at = self.begins(number);
        for (index, line) in self.hops[..hop].iter().enumerate() {
            at = if index == 0 && self.full {
                let sent = Ratio::of(self.framed.sum(number + 1), self.spec.rate_bps);
                u128::from(self.spec.start_ns) + sent.ceil()
            } else {
                at + line.sending_ns[place]
            };
            at += u128::from(line.config.delay.0);
        }
        at
    }

    /// Number of frames of which `at` is not after `end`; `at` does not fall.
    fn count_until(at: impl Fn(u64) -> u128, end: u128) -> u64 {
        let (mut low, mut high) = (0u64, 1u64);
        while at(high - 1) <= end {
            low = high;
            high = high.saturating_mul(2);
        }
        // at(low - 1) <= end < at(high - 1).
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if at(middle - 1) <= end {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Counters at `end`, ns.
    fn count(mut self, end: u64) -> Counted {
        let last_hop = self.hops.len();
        // The time of the end counts, that of the source's end does not.
        let stop = self.spec.stop_ns.map_or(u128::MAX, u128::from);
        let until = u128::from(end).min(stop.saturating_sub(1));
        let silent = !self.spec.enabled || until < u128::from(self.spec.start_ns);
        let sent = if silent { 0 } else { Self::count_until(|number| self.begins(number), until) };
        // Frames at each hop, and at the end of the route.
        let arrived: Vec<u64> = (0..=last_hop)
            .map(|hop| match hop {
                0 => sent,
                _ => Self::count_until(|number| self.arrives(number, hop), u128::from(end)).min(sent),
            })
            .collect();
        let mut stats = vec![Stats::default(); last_hop];
        // Lost before each place, of those that would have come there by the end: frames and bytes.
        let mut lost = vec![(0u64, 0u64); last_hop + 1];
        while let Some((number, hop)) = self.next_loss(&arrived) {
            let bytes = u64::from(self.packets[(number % self.packets.len() as u64) as usize]);
            stats[hop].dropped_by_loss += 1;
            for place in hop + 1..=last_hop {
                if number < arrived[place] {
                    lost[place].0 += 1;
                    lost[place].1 += bytes;
                }
            }
            self.hops[hop].losses.pass_loss();
            for (behind, _) in self.hops.iter_mut().zip(&arrived).skip(hop + 1).filter(|(_, &arrived)| number < arrived)
            {
                behind.losses.leave_out(number);
            }
        }
        for (hop, stats) in stats.iter_mut().enumerate() {
            stats.enqueued = arrived[hop] - lost[hop].0;
            stats.delivered = arrived[hop + 1] - lost[hop + 1].0;
            stats.delivered_bytes = self.plain.sum(arrived[hop + 1]) as u64 - lost[hop + 1].1;
        }
        if self.full {
            (stats[0].max_queue_packets, stats[0].max_queue_bytes) = self.longest_queue(sent);
        }
        let dropped = stats.iter().map(|stats| stats.dropped_by_loss).sum();
        let received = stats[last_hop - 1].delivered;
        Counted { totals: BackgroundCounters { sent, dropped, received, delays: None }, hops: stats }
    }

    /// The next frame that is lost by the end, and at which hop: the first hop that would lose it.
    fn next_loss(&mut self, arrived: &[u64]) -> Option<(u64, usize)> {
        let of = |(hop, line): (usize, &mut Hop)| {
            line.losses.peek().filter(|&number| number < arrived[hop]).map(|number| (number, hop))
        };
        self.hops.iter_mut().enumerate().filter_map(of).min()
    }

    /// Packets and bytes that waited most at a full first line, of the first `sent`: a frame that begins within the ns
    /// in which its predecessor ends waits for the end of it.
    fn longest_queue(&self, sent: u64) -> (u64, u64) {
        // In the second round each frame waits that does not in the first, or none ever does.
        let looked_at = sent.min(2 * self.packets.len() as u64 + 1);
        let waits = |&number: &u64| !Ratio::of(self.framed.sum(number), self.spec.rate_bps).is_whole();
        let bytes = |number: u64| u64::from(self.packets[(number % self.packets.len() as u64) as usize]);
        let longest = (1..looked_at).filter(waits).map(bytes).max();
        longest.map_or((0, 0), |bytes| (1, bytes))
    }
}

impl Hop {
    /// Most packets and bytes that may wait.
    fn config_limits(&self) -> (u64, u64) {
        match self.config.queue {
            QueueConfig::DropTail { limit_bytes, limit_packets } => {
                (limit_packets.unwrap_or(u64::MAX), limit_bytes.unwrap_or(u64::MAX))
            }
            _ => (0, 0),
        }
    }
}

/// Link `spec` on the way of packets of flow `flow` with the sizes `packets`.
fn hop(spec: &LinkSpec, run_seed: u64, flow: u64, packets: &[u32]) -> Result<Hop, &'static str> {
    let config = link_config(spec);
    if !matches!(config.queue, QueueConfig::DropTail { .. }) {
        return Err("its queue drops early");
    }
    if config.jitter.is_some() || config.policer.is_some() {
        return Err("it has jitter or a policer");
    }
    if config.batching.is_some() {
        return Err("its packets are taken in batches");
    }
    let sending_ns =
        packets.iter().map(|&bytes| Ratio::of(config.framing.line_bytes(bytes).into(), config.rate.0).ceil()).collect();
    let seed = stream_seed(run_seed, &format!("link/{}", spec.name));
    let losses = LossSchedule::new(&config, seed, flow, packets);
    Ok(Hop { config, sending_ns, losses })
}
