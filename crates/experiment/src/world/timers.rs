//! The numbers of the network's timers.

use crate::environment::Numbering;
use crate::side::Side;

/// Numbers of the run's timers: events first (they go before packets), then endpoints, applications, stops, background,
/// manager, warm-up, and sampler, probes and a path test last, so that a sample shows everything that happened at its
/// time.
#[derive(Clone, Copy)]
pub struct Timers {
    events: u32,
    flows: u32,
    background: u32,
    probes: u32,
}

/// The purpose of a timer.
pub enum Timer {
    /// An event, a background source or the manager.
    Environment,
    Endpoint(usize, Side),
    Application(usize),
    Stop(usize),
    Warmup,
    Sampler,
    Probe(usize),
    PathTest,
}

impl Timers {
    pub fn new(events: usize, flows: usize, background: usize, probes: usize) -> Timers {
        Timers { events: events as u32, flows: flows as u32, background: background as u32, probes: probes as u32 }
    }

    /// Returns the first numbers for the environment. Of hosts and sources, 2 f is the sender of flow f and 2 f + 1 its
    /// receiver.
    pub fn numbering(&self) -> Numbering {
        let ends = 2 * self.flows;
        Numbering { first_host: ends, first_source: ends, first_timer: self.first_background() }
    }

    pub fn count(&self) -> usize {
        self.path_test() as usize + 1
    }

    #[inline]
    pub fn endpoint(&self, flow: usize, side: Side) -> u32 {
        self.events + 2 * flow as u32 + side as u32
    }

    pub fn application(&self, flow: usize) -> u32 {
        self.events + 2 * self.flows + flow as u32
    }

    pub fn stop(&self, flow: usize) -> u32 {
        self.events + 3 * self.flows + flow as u32
    }

    pub fn first_background(&self) -> u32 {
        self.events + 4 * self.flows
    }

    fn manager(&self) -> u32 {
        self.first_background() + self.background
    }

    pub fn warmup(&self) -> u32 {
        self.manager() + 1
    }

    pub fn sampler(&self) -> u32 {
        self.warmup() + 1
    }

    pub fn probe(&self, index: usize) -> u32 {
        self.sampler() + 1 + index as u32
    }

    pub fn path_test(&self) -> u32 {
        self.probe(0) + self.probes
    }

    #[inline]
    pub fn which(&self, timer: u32) -> Timer {
        let Some(rest) = timer.checked_sub(self.events) else { return Timer::Environment };
        let flows = self.flows;
        if rest < 2 * flows {
            let side = if rest & 1 == 0 { Side::Sender } else { Side::Receiver };
            Timer::Endpoint((rest / 2) as usize, side)
        } else if rest < 3 * flows {
            Timer::Application((rest - 2 * flows) as usize)
        } else if rest < 4 * flows {
            Timer::Stop((rest - 3 * flows) as usize)
        } else if timer <= self.manager() {
            Timer::Environment
        } else if timer == self.warmup() {
            Timer::Warmup
        } else if timer == self.sampler() {
            Timer::Sampler
        } else if timer == self.path_test() {
            Timer::PathTest
        } else {
            Timer::Probe((timer - self.probe(0)) as usize)
        }
    }
}
