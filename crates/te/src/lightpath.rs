//! A lightpath and what it carries.

use crate::policy::{LightpathConfig, Policy};
use crate::table::Activity;
use crate::view::LinkView;
use crate::FlowKey;
use std::collections::BTreeMap;
use units::{Rate, Size, Span, Time};

/// What a lightpath is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not there.
    Down,
    /// Asked for.
    SettingUp,
    /// It carries, or could.
    Up,
    /// Given back.
    Releasing,
}

/// What a lightpath and the IP way that it bypasses looked like when an interval ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// End of the interval.
    pub time: Time,
    /// Which lightpath.
    pub lightpath: usize,
    /// What it was doing, before this interval's decisions.
    pub state: State,
    /// Flows on it.
    pub flows: usize,
    /// What they sent, as observed.
    pub carried: Rate,
    /// The slowest link of the IP way between its ends.
    pub ip: LinkView,
}

/// A flow on a lightpath.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    pub activity: Activity,
    pub since: Time,
    pub priority: i32,
    /// What is kept free for it until it is seen what it takes.
    pub expected: Rate,
    /// What the router before the lightpath is expected to keep back for its move, and until when.
    pub kept: Size,
    pub kept_until: Time,
    /// The number of the line for which it lets that go; None: it keeps nothing back.
    pub pacing: Option<usize>,
    /// The flow's rate before its move.
    pub before: Rate,
    /// How far it is ahead of its rate before.
    pub ahead: Ahead,
    /// Its move's place in the ledger.
    pub entry: usize,
}

/// Bytes delivered beyond what the old rate would have given, negative when behind. Each interval is held until more is seen of the flow:
/// the one in which it ends, and silence after it, say nothing of its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ahead {
    sure: i128,
    held: i128,
}

impl Ahead {
    /// An interval in which `bytes` came; at the old rate `before` would have.
    pub fn add(&mut self, bytes: u64, before: u64) {
        if bytes > 0 {
            self.sure += std::mem::take(&mut self.held);
        }
        self.held += i128::from(bytes) - i128::from(before);
    }

    pub fn sure(&self) -> i128 {
        self.sure
    }
}

/// The IP way that a lightpath bypasses, summed over intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bypassed {
    pub intervals: u64,
    load: u128,
    wait: u128,
}

impl Bypassed {
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
    /// Whether the present set-up has carried a flow.
    pub used: bool,
    /// Since when it is up and carries nothing.
    pub empty_since: Time,
    pub flows: BTreeMap<FlowKey, Carried>,
    /// Flows for which it is being set up.
    pub waiting: Vec<FlowKey>,
    /// The bypassed IP way while the lightpath carries nothing, and while it carries something.
    pub without: Bypassed,
    pub with: Bypassed,
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
            without: Bypassed::default(),
            with: Bypassed::default(),
        }
    }

    /// What the flows on it take, or are still expected to, without those of `leaving`.
    pub fn reserved(&self, now: Time, interval: Span, leaving: &[FlowKey]) -> Rate {
        let of = |(_, carried): (&FlowKey, &Carried)| {
            let seen = carried.activity.mean_rate();
            // Two intervals old, it shows by itself what it takes.
            let new = now.since(carried.since).0 < 2 * interval.0;
            if new { seen.max(carried.expected) } else { seen }.0
        };
        Rate(self.flows.iter().filter(|(key, _)| !leaving.contains(key)).map(of).sum())
    }

    /// What a further flow may take when those of `leaving` have gone; one that would be alone may have all of it.
    pub fn room(&self, now: Time, policy: &Policy, leaving: &[FlowKey]) -> Rate {
        if self.flows.len() == leaving.len() {
            return self.config.capacity;
        }
        let given = u128::from(self.config.capacity.0) * u128::from(policy.fill_ppm) / 1_000_000;
        Rate((given as u64).saturating_sub(self.reserved(now, policy.interval, leaving).0))
    }

    /// What the buffer of the router before it is expected to hold at `now`.
    pub fn buffered(&self, now: Time) -> Size {
        let of = |carried: &Carried| if carried.kept_until > now { carried.kept.0 } else { 0 };
        Size(self.flows.values().map(of).sum())
    }

    /// What flows on it sent in the latest interval.
    pub fn carried(&self, interval: Span) -> Rate {
        let bytes = self.flows.values().map(|c| c.activity.latest().bytes).sum();
        crate::table::rate_of(bytes, interval)
    }

    /// What its set-up has still to earn: nothing once it is there.
    pub fn price(&self) -> Size {
        if self.state == State::Up {
            Size(0)
        } else {
            self.config.cost
        }
    }
}
