//! A long copy under observation: is it steady, so that the rest can be extrapolated?

use crate::probe::{FlowObservation, Probe, ProbeView};
use crate::steady::{first_steady, Batches};
use crate::validate::{copied_bytes, ValidSimulation};
use spec::{ExtrapolateSpec, LossSpec};
use std::ops::ControlFlow;
use units::{Span, Time, NS_PER_S};

/// Observations that the steady part has at least: five to each of 20 batches.
const OBSERVATIONS_MIN: usize = 100;

/// A copy and the observations of it.
pub struct CopyStudy {
    spec: ExtrapolateSpec,
    /// Bytes of the copy.
    bytes: u64,
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
    /// It was simulated as far as it may, and cannot be extrapolated: why.
    Refused(String),
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
        for flow in (0..view.flows()).map(|index| view.flow(index)) {
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
        let used = run.flows.iter().flat_map(|flow| flow.route.iter().chain(&flow.return_route));
        Some(CopyStudy {
            spec,
            bytes,
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
        if progress.packets >= self.next_packets {
            self.look(now);
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

    fn look(&mut self, now: Time) {
        // The rest of the copy takes no longer to simulate than the part so far.
        if self.bytes.saturating_sub(self.last.received_bytes) <= self.last.received_bytes {
            self.next_packets = u64::MAX;
            return;
        }
        let is_last = self.next_packets >= self.spec.most_packets;
        self.next_packets = (2 * self.next_packets).min(self.spec.most_packets);
        match self.steady(now) {
            Ok(steady) if is_last || steady.half_width * 1e6 <= f64::from(self.spec.error_ppm) => {
                self.found = Some(CopyResult::Steady(steady));
            }
            Err(why) if is_last => self.found = Some(CopyResult::Refused(why)),
            _ => {}
        }
    }

    fn steady(&self, now: Time) -> Result<Steady, String> {
        let (seen, least) = (self.episodes.last().copied().unwrap_or(0), self.spec.least_episodes);
        let without_losses = seen == 0 && !self.loses_at_random;
        if seen < least && !without_losses {
            return Err(format!("only {seen} loss episodes were seen, {least} are wanted"));
        }
        let first = first_steady(&self.delivered).ok_or("too little was seen of it")?;
        let left = self.delivered.len() - first;
        if left < OBSERVATIONS_MIN {
            return Err(format!("only {left} round trips were steady"));
        }
        let episodes = seen - first.checked_sub(1).map_or(0, |before| self.episodes[before]);
        if without_losses {
            // A window that nothing has bounded yet grows, and the first loss will change everything.
            if Batches::independent(&self.in_flight[first..]).is_none() {
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
