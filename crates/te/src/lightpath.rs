//! A lightpath and the flows that it carries.

use crate::flow_key::FlowKey;
use crate::link_view::LinkView;
use crate::policy::{LightpathConfig, Policy};
use crate::table::Activity;
use std::collections::BTreeMap;
use units::{Rate, Size, Span, Time};

/// State of a lightpath.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not set up.
    Down,
    /// Set-up requested.
    SettingUp,
    /// Ready to carry flows.
    Up,
    /// Release requested.
    Releasing,
}

/// A lightpath and the IP path that it bypasses at the end of an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LightpathSample {
    /// End of the interval.
    pub time: Time,
    /// The lightpath.
    pub lightpath: usize,
    /// Its state before this interval's decisions.
    pub state: State,
    /// Flows on it.
    pub flows: usize,
    /// Their observed rate.
    pub carried: Rate,
    /// The slowest link of the IP path between its ends.
    pub ip: LinkView,
}

/// A flow on a lightpath.
#[derive(Clone, Debug)]
pub(crate) struct CarriedFlow {
    pub activity: Activity,
    pub since: Time,
    pub priority: i32,
    /// Rate reserved for it until its own rate is observed.
    pub expected: Rate,
    /// Bytes that the moving router is expected to hold for its move, and until when.
    pub held_bytes: Size,
    pub held_until: Time,
    /// The pacer of its hold buffer; None without a hold.
    pub pacer: Option<usize>,
    /// The flow's rate before its move.
    pub before: Rate,
    /// Bytes delivered beyond those of its rate before.
    pub surplus: Surplus,
    /// Index of its move in the move log.
    pub record: usize,
}

/// Bytes delivered beyond those of the old rate; negative when behind. An interval is pending until more of the flow
/// is seen: the interval in which a flow ends, and silence after it, say nothing of its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Surplus {
    confirmed: i128,
    pending: i128,
}

impl Surplus {
    /// Adds an interval of `bytes`, where the old rate would have given `before`.
    pub fn add(&mut self, bytes: u64, before: u64) {
        if bytes > 0 {
            self.confirmed += std::mem::take(&mut self.pending);
        }
        self.pending += i128::from(bytes) - i128::from(before);
    }

    pub fn confirmed(&self) -> i128 {
        self.confirmed
    }
}

/// Load and wait of the bypassed IP path, summed over intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BypassedLoad {
    pub intervals: u64,
    load: u128,
    wait: u128,
}

impl BypassedLoad {
    pub fn add(&mut self, link: &LinkView) {
        self.intervals += 1;
        self.load += u128::from(link.load.0);
        self.wait += u128::from(link.wait().0);
    }

    pub fn load(&self) -> Option<Rate> {
        (self.intervals > 0).then(|| Rate((self.load / u128::from(self.intervals)) as u64))
    }

    pub fn wait(&self) -> Option<Span> {
        (self.intervals > 0).then(|| Span((self.wait / u128::from(self.intervals)) as u64))
    }
}

pub(crate) struct Lightpath {
    pub config: LightpathConfig,
    pub state: State,
    /// True if the present set-up has carried a flow.
    pub used: bool,
    /// Since when it is up without flows.
    pub empty_since: Time,
    pub flows: BTreeMap<FlowKey, CarriedFlow>,
    /// Flows for which it is being set up.
    pub waiting: Vec<FlowKey>,
    /// The bypassed IP path while the lightpath is empty, and while it carries flows.
    pub while_empty: BypassedLoad,
    pub while_carrying: BypassedLoad,
}

impl Lightpath {
    pub fn new(config: LightpathConfig) -> Lightpath {
        Lightpath {
            config,
            state: State::Down,
            used: false,
            empty_since: Time::ZERO,
            flows: BTreeMap::new(),
            waiting: vec![],
            while_empty: BypassedLoad::default(),
            while_carrying: BypassedLoad::default(),
        }
    }

    /// Rate of the flows on it, observed or still expected, without those of `leaving`.
    pub fn reserved(&self, now: Time, interval: Span, leaving: &[FlowKey]) -> Rate {
        let of = |(_, carried): (&FlowKey, &CarriedFlow)| {
            let observed = carried.activity.mean_rate();
            // After two intervals the observed rate is enough.
            let new = now.since(carried.since).0 < 2 * interval.0;
            if new { observed.max(carried.expected) } else { observed }.0
        };
        Rate(self.flows.iter().filter(|(key, _)| !leaving.contains(key)).map(of).sum())
    }

    /// Rate left for a further flow once those of `leaving` have gone; a flow alone may use all of it.
    pub fn room(&self, now: Time, policy: &Policy, leaving: &[FlowKey]) -> Rate {
        if self.flows.len() == leaving.len() {
            return self.config.capacity;
        }
        let usable = u128::from(self.config.capacity.0) * u128::from(policy.max_utilization_ppm) / 1_000_000;
        Rate((usable as u64).saturating_sub(self.reserved(now, policy.interval, leaving).0))
    }

    /// Bytes that the hold buffer of the moving router is expected to hold at `now`.
    pub fn buffered(&self, now: Time) -> Size {
        let of = |carried: &CarriedFlow| if carried.held_until > now { carried.held_bytes.0 } else { 0 };
        Size(self.flows.values().map(of).sum())
    }

    /// Rate of its flows in the latest interval.
    pub fn carried(&self, interval: Span) -> Rate {
        let bytes = self.flows.values().map(|c| c.activity.latest().bytes).sum();
        crate::table::rate_of(bytes, interval)
    }

    /// Cost of its set-up; zero once it is up.
    pub fn remaining_cost(&self) -> Size {
        if self.state == State::Up {
            Size(0)
        } else {
            self.config.cost
        }
    }
}
