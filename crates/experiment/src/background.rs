//! Traffic that does not react: packets at a constant rate, always, in exponential bursts or in exact periods.

use crate::active::Active;
use crate::frame_clock::FrameClock;
use crate::packet_times::PacketTimes;
use crate::routes::add_of_background;
use crate::validate::ValidRun;
use link::random::{stream_seed, Random};
use link::Packet;
use sim::{Network, Routed, Routes};
use spec::BackgroundSpec;
use units::{Rate, Size, Span, Time};

/// A packet that may be of traffic without an application.
pub trait BackgroundPacket: Packet + Routed {
    /// Packet `number` of source `source`, of `bytes`, on the route that starts at `hop`.
    fn background(bytes: u32, hop: u32, source: u32, number: u32) -> Self;
    /// The number that it was given as one of background traffic.
    fn number(&self) -> u32;
}

/// A background source. Times in `spec` are those of the network that it sends into.
pub struct Background {
    /// Rate, route and packet sizes.
    pub spec: BackgroundSpec,
    /// First hop of its route.
    pub hop: u32,
    /// True while it sends.
    pub enabled: bool,
    random: Random,
    /// Its other times are of active time.
    active: Active,
    gap: Span,
    /// Frames, where they differ or their times have to be exact.
    frames: Option<FrameClock>,
    /// End of the present on period; NEVER for a constant source.
    on_until: Time,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets lost.
    pub dropped_packets: u64,
    /// Packets that arrived.
    pub received_packets: u64,
    /// Their delays.
    pub times: PacketTimes,
}

impl Background {
    /// All sources of `run`, which begins at `begin`, with their routes: the packets of the i-th go to host
    /// `first_host` + i.
    pub fn all(run: ValidRun<'_>, begin: Time, first_host: u32, routes: &mut Routes) -> Vec<Background> {
        let mut sources = vec![];
        for (index, source) in run.background.iter().enumerate() {
            let mut spec = source.clone();
            spec.start_ns = spec.start_ns.saturating_add(begin.0);
            spec.stop_ns = spec.stop_ns.map(|stop| stop.saturating_add(begin.0));
            let route = routes.add(&source.route, first_host + index as u32);
            add_of_background(run.spec(), index, route, routes);
            sources.push(Background::new(spec, route.0, run.seed));
        }
        sources
    }

    /// Sets the first timer of each source that is on; that of the i-th is `first_timer` + i.
    pub fn set_timers<P: Packet + Routed>(sources: &mut [Background], first_timer: u32, net: &mut Network<P>) {
        for (timer, source) in (first_timer..).zip(sources) {
            if source.enabled {
                let due = source.start(Time(source.spec.start_ns));
                net.set_timer(timer, due);
            }
        }
    }

    fn new(spec: BackgroundSpec, hop: u32, run_seed: u64) -> Background {
        let random = Random::new(stream_seed(run_seed, &format!("background/{}", spec.name)));
        let (gap, frames) = (gap_of(&spec), frames_of(&spec));
        let enabled = spec.enabled;
        let active = Active::new(spec.active, Time(spec.start_ns));
        Background {
            spec,
            hop,
            enabled,
            random,
            active,
            gap,
            frames,
            on_until: Time::ZERO,
            sent_packets: 0,
            dropped_packets: 0,
            received_packets: 0,
            times: PacketTimes::default(),
        }
    }

    /// Switches on; returns when the first packet goes.
    pub fn start(&mut self, now: Time) -> Time {
        self.enabled = true;
        self.on_until = self.on_period(now);
        self.active.after(now.max(Time(self.spec.start_ns)), Span::ZERO)
    }

    /// Sends at `rate_bps` from `now` on, a round of frames from its beginning; returns when the next packet goes, if
    /// one is due by the rate.
    pub fn set_rate(&mut self, now: Time, rate_bps: u64) -> Option<Time> {
        self.spec.rate_bps = rate_bps;
        self.gap = gap_of(&self.spec);
        self.frames = frames_of(&self.spec);
        let sends = self.enabled && now.0 >= self.spec.start_ns && now < self.on_until;
        sends.then(|| self.active.after(now, self.gap))
    }

    /// Returns the bytes of the packet that is due now, if one is, and the time of the next call.
    pub fn handle_timer(&mut self, now: Time) -> (Option<u32>, Time) {
        if !self.enabled || self.spec.stop_ns.is_some_and(|stop| now.0 >= stop) {
            return (None, Time::NEVER);
        }
        if now < self.on_until {
            return match &mut self.frames {
                None => (Some(self.spec.packet_bytes), self.active.after(now, self.gap)),
                Some(frames) => {
                    let (bytes, gap) = frames.next();
                    (Some(bytes), self.active.after(now, gap))
                }
            };
        }
        let off = self.spec.on_off_ns.map_or(Span::ZERO, |[_, off]| Span(self.random.exponential(off)));
        let next = self.active.after(now, off);
        self.on_until = self.on_period(next);
        (None, next.max(now + Span(1)))
    }

    fn on_period(&mut self, from: Time) -> Time {
        match self.spec.on_off_ns {
            None => Time::NEVER,
            Some([on, _]) => {
                let on = Span(self.random.exponential(on));
                self.active.after(from, on)
            }
        }
    }
}

/// Time of a packet, where all are alike and rounded.
fn gap_of(spec: &BackgroundSpec) -> Span {
    Rate(spec.rate_bps).time_for(Size(u64::from(spec.packet_bytes)))
}

fn frames_of(spec: &BackgroundSpec) -> Option<FrameClock> {
    spec.frames.as_ref().map(|frames| FrameClock::new(frames, spec.rate_bps))
}
