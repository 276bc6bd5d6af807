//! Traffic that does not react: packets at a constant rate, always or in exponential bursts.

use crate::spec::BackgroundSpec;
use link::random::{stream_seed, Random};
use units::{Rate, Size, Span, Time};

/// One source.
pub struct Background {
    pub spec: BackgroundSpec,
    /// First hop of its route.
    pub hop: u32,
    pub enabled: bool,
    random: Random,
    gap: Span,
    /// End of the present on period; NEVER for a constant source.
    on_until: Time,
    pub sent_packets: u64,
    pub dropped_packets: u64,
    pub received_packets: u64,
}

impl Background {
    pub fn new(spec: BackgroundSpec, hop: u32, run_seed: u64) -> Background {
        let random = Random::new(stream_seed(run_seed, &format!("background/{}", spec.name)));
        let gap = Rate(spec.rate_bps).time_for(Size(u64::from(spec.packet_bytes)));
        let enabled = spec.enabled;
        Background {
            spec,
            hop,
            enabled,
            random,
            gap,
            on_until: Time::ZERO,
            sent_packets: 0,
            dropped_packets: 0,
            received_packets: 0,
        }
    }

    /// Switches on; returns when the first packet goes.
    pub fn start(&mut self, now: Time) -> Time {
        self.enabled = true;
        self.on_until = self.on_period(now);
        now.max(Time(self.spec.start_ns))
    }

    /// Whether a packet goes now, and when to ask again.
    pub fn handle_timer(&mut self, now: Time) -> (bool, Time) {
        if !self.enabled || self.spec.stop_ns.is_some_and(|stop| now.0 >= stop) {
            return (false, Time::NEVER);
        }
        if now < self.on_until {
            return (true, now + self.gap);
        }
        let off = self.spec.on_off_ns.map_or(Span::ZERO, |(_, off)| Span(self.random.exponential(off)));
        let next = now + off;
        self.on_until = self.on_period(next);
        (false, next.max(now + Span(1)))
    }

    fn on_period(&mut self, from: Time) -> Time {
        match self.spec.on_off_ns {
            None => Time::NEVER,
            Some((on, _)) => from + Span(self.random.exponential(on)),
        }
    }
}
