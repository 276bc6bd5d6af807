//! A long copy under observation: is it steady, so that the rest can be extrapolated?

use crate::probe::{FlowObservation, Probe, ProbeView};
use crate::rate_bound::RateBound;
use crate::steady::{first_steady, Batches};
use crate::validate::{copied_bytes, copied_flows, ValidSimulation};
use spec::{ExtrapolateSpec, LossSpec};
use std::ops::{ControlFlow, Range};
use units::{Span, Time, NS_PER_S};

/// Observations that the steady part has at least: five to each of 20 batches.
const OBSERVATIONS_MIN: usize = 100;

/// A copy and the observations of it.
pub struct CopyStudy {
    spec: ExtrapolateSpec,
    /// Bytes of the copy.
    bytes: u64,
    /// Its connections, by their index in the specification.
    flows: Range<usize>,
    /// Bound of its rate where it does not become steady.
    bound: RateBound,
    /// True if lines lose packets at random.
    loses_at_random: bool,
    /// Bytes delivered, episodes so far, and bytes in flight, by interval.
    delivered: Vec<u64>,
    episodes: Vec<u64>,
    in_flight: Vec<u64>,
    /// All its connections together.
    last: FlowObservation,
    /// Packets after which the next study of the series is due.
    next_packets: u64,
    found: Option<CopyResult>,
    /// Time of the next observation.
    next: Time,
}

/// The study's result.
#[derive(Clone, Debug)]
pub enum CopyResult {
    /// It is steady.
    Steady(Steady),
    /// It was simulated as far as it may, and cannot be extrapolated.
    Refused(Refused),
}

/// A copy that did not become steady.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The reason.
    pub why: String,
    /// End of the simulated part.
    pub until: Time,
    /// Bytes delivered by then.
    pub received_bytes: u64,
    /// Least and largest goodput of the rest, bytes per s.
    pub bytes_per_s: [f64; 2],
    /// Goodput of the second half of the part, bytes per s.
    pub half_bytes_per_s: f64,
    /// Episodes of loss recovery of the part.
    pub episodes: u64,
}

/// A steady copy.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// From when on.
    pub from: Time,
    /// End of the simulated part, at which the steady state was known.
    pub until: Time,
    /// Bytes delivered by then.
    pub received_bytes: u64,
    /// Goodput, bytes per s.
    pub bytes_per_s: f64,
    /// Half of the 95 % interval of its mean over the rest of the copy, as a part of it.
    pub half_width: f64,
    /// Length of a batch.
    pub batch: Span,
    /// Their number.
    pub batches: usize,
    /// Episodes of loss recovery that the steady part has.
    pub episodes: u64,
}

impl Probe for CopyStudy {
    fn poll_timeout(&self) -> Time {
        self.next
    }

    fn handle_timeout(&mut self, now: Time, view: &mut dyn ProbeView) -> ControlFlow<()> {
        let mut all = FlowObservation::default();
        for flow in self.flows.clone().map(|index| view.flow(index)) {
            all.received_bytes += flow.received_bytes;
            all.packets += flow.packets;
            all.episodes += flow.episodes;
            all.in_flight_bytes += flow.in_flight_bytes;
        }
        self.observe(now, all);
        if self.found.is_some() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl CopyStudy {
    /// Of the copy that `run` is; None: it is simulated to its end.
    pub fn new(run: ValidSimulation<'_>) -> Option<CopyStudy> {
        let spec = run.extrapolate?;
        let bytes = copied_bytes(run.spec())?;
        let at_random = |loss: &LossSpec| {
            matches!(
                loss,
                LossSpec::Independent { .. }
                    | LossSpec::GilbertElliott { .. }
                    | LossSpec::Runs { .. }
                    | LossSpec::BitErrorRate { .. }
                    | LossSpec::BitErrorBursts { .. }
            )
        };
        let copied = &run.flows[copied_flows(run.spec())];
        let used = copied.iter().flat_map(|flow| flow.route.iter().chain(&flow.return_route));
        Some(CopyStudy {
            spec,
            bytes,
            flows: copied_flows(run.spec()),
            bound: RateBound::of(run.spec()),
            loses_at_random: used.into_iter().any(|&link| at_random(&run.links[link].loss)),
            delivered: vec![],
            episodes: vec![],
            in_flight: vec![],
            last: FlowObservation::default(),
            next_packets: spec.first_packets,
            found: None,
            next: Time(spec.from_ns),
        })
    }

    fn observe(&mut self, now: Time, progress: FlowObservation) {
        if now > self.first() {
            self.delivered.push(progress.received_bytes - self.last.received_bytes);
            self.episodes.push(progress.episodes);
            self.in_flight.push(progress.in_flight_bytes);
        }
        self.last = progress;
        let is_over = self.spec.until_ns.is_some_and(|until_ns| now.0 >= until_ns);
        if progress.packets >= self.next_packets || (is_over && self.next_packets < u64::MAX) {
            self.look(now, is_over);
        }
        self.next = now + Span(self.spec.interval_ns);
    }

    fn first(&self) -> Time {
        Time(self.spec.from_ns)
    }

    /// Returns the expected time of the last study, at the pace so far, for a progress display.
    pub fn expected_end(&self, now: Time) -> Time {
        let packets = u128::from(self.last.packets.max(1));
        let end = u128::from(now.0) * u128::from(self.spec.most_packets.max(1)) / packets;
        Time(u64::try_from(end).unwrap_or(u64::MAX)).max(now)
    }

    /// Returns the result; None if the copy ended before it.
    pub fn into_found(self) -> Option<CopyResult> {
        self.found
    }

    fn look(&mut self, now: Time, is_over: bool) {
        // The rest of the copy takes no longer to simulate than the part so far.
        if self.bytes.saturating_sub(self.last.received_bytes) <= self.last.received_bytes {
            self.next_packets = u64::MAX;
            return;
        }
        let is_last = is_over || self.next_packets >= self.spec.most_packets;
        self.next_packets = (2 * self.next_packets).min(self.spec.most_packets);
        match self.steady(now) {
            Ok(steady) if is_last || steady.half_width * 1e6 <= f64::from(self.spec.error_ppm) => {
                self.found = Some(CopyResult::Steady(steady));
            }
            Err(why) if is_last => self.found = Some(CopyResult::Refused(self.refused(now, why))),
            _ => {}
        }
    }

    fn refused(&self, now: Time, why: String) -> Refused {
        let second_half = &self.delivered[self.delivered.len() / 2..];
        let per_s = |bytes: u64, count: usize| {
            bytes as f64 * NS_PER_S as f64 / (self.spec.interval_ns as f64 * count.max(1) as f64)
        };
        let slowest = Batches::all(second_half).and_then(|batches| batches.slowest());
        Refused {
            why,
            until: now,
            received_bytes: self.last.received_bytes,
            bytes_per_s: self.bound.bytes_per_s(&self.last, slowest.map(|(bytes, count)| per_s(bytes, count))),
            half_bytes_per_s: per_s(second_half.iter().sum(), second_half.len()),
            episodes: self.last.episodes,
        }
    }

    fn steady(&self, now: Time) -> Result<Steady, String> {
        let (seen, least) = (self.episodes.last().copied().unwrap_or(0), self.spec.least_episodes);
        let first = first_steady(&self.delivered).ok_or("too little was seen of it")?;
        let left = self.delivered.len() - first;
        let mean = self.delivered[first..].iter().sum::<u64>() as f64 / left.max(1) as f64;
        let is_own = self.bound.is_own(mean * NS_PER_S as f64 / self.spec.interval_ns as f64);
        let without_losses = !self.loses_at_random && (seen == 0 || is_own);
        if seen < least && !without_losses {
            return Err(format!("only {seen} loss episodes were seen, {least} are wanted"));
        }
        if left < OBSERVATIONS_MIN {
            return Err(format!("only {left} round trips were steady"));
        }
        let episodes = seen - first.checked_sub(1).map_or(0, |before| self.episodes[before]);
        if without_losses {
            // A window that nothing has bounded yet grows, and the first loss will change everything.
            if !is_own && Batches::independent(&self.in_flight[first..]).is_none() {
                return Err("nothing was lost yet, and its window was still changing".into());
            }
        } else if episodes < least {
            return Err(format!("only {episodes} loss episodes were in its steady part, {least} are wanted"));
        }
        let batches = Batches::independent(&self.delivered[first..]);
        let batches =
            batches.ok_or("its goodput was still changing, or changes in cycles too long for what was seen")?;
        let bytes_per_s = batches.mean() * NS_PER_S as f64 / self.spec.interval_ns as f64;
        let batch = Span(batches.length as u64 * self.spec.interval_ns);
        let left_s = (self.bytes.saturating_sub(self.last.received_bytes)) as f64 / bytes_per_s;
        Ok(Steady {
            from: Time(self.spec.from_ns + first as u64 * self.spec.interval_ns),
            until: now,
            received_bytes: self.last.received_bytes,
            bytes_per_s,
            half_width: batches.half_width(left_s / batch.as_secs_f64()),
            batch,
            batches: batches.count(),
            episodes,
        })
    }
}
