//! Changes in time: what an event does to links and background sources.

use crate::background::Background;
use crate::error::LabError;
use crate::network::loss_model;
use crate::spec::{ActionSpec, EventSpec, RunSpec, WhenSpec};
use link::Packet;
use sim::{Network, Routed};
use units::{Rate, Span, Time};

/// An event and whether it has happened.
pub struct Change {
    /// The event, its times since the run began.
    pub spec: EventSpec,
    /// Where it stands in the spec's list.
    pub index: usize,
    /// Whether it has happened.
    pub done: bool,
    /// When the run begins, in the network's time.
    begin: Time,
    /// Bytes that the watched flow had delivered when the averaging window began.
    received_before: u64,
}

/// What a look at a change gave.
pub enum Look {
    /// It happens now.
    Now(ActionSpec),
    /// Look again then.
    Later(Time),
    /// It has happened before.
    Done,
}

impl Change {
    /// All events of `run`, which begins at `begin`, as timers 0 and up of its network: those at a time go before packets of the
    /// same ns; those that watch a flow look after them.
    ///
    /// # Errors
    /// [`LabError::Spec`] names what an event asks for that does not exist.
    pub fn all(run: &RunSpec, begin: Time) -> Result<Vec<Change>, LabError> {
        let mut changes = vec![];
        for (index, event) in run.events.iter().enumerate() {
            check(event, run.links.len(), run.flows.len(), run.background.len())?;
            changes.push(Change { spec: event.clone(), index, done: false, begin, received_before: 0 });
        }
        changes.sort_by_key(|change| match change.spec.when {
            WhenSpec::At { time_ns } => (0, time_ns),
            WhenSpec::FlowReaches { .. } => (1, 0),
        });
        Ok(changes)
    }

    /// Sets the first timer of each.
    pub fn set_timers<P: Packet + Routed>(changes: &[Change], net: &mut Network<P>) {
        for (timer, change) in (0..).zip(changes) {
            let first_look = match change.spec.when {
                WhenSpec::At { time_ns } => Span(time_ns),
                WhenSpec::FlowReaches { window_ns, .. } => Span(window_ns.max(1)),
            };
            net.set_timer(timer, change.begin + first_look);
        }
    }

    /// Looks at it; `received` tells the payload bytes that a flow has delivered.
    pub fn handle_timer(&mut self, now: Time, received: impl Fn(usize) -> u64) -> Look {
        if self.done {
            return Look::Done;
        }
        if let WhenSpec::FlowReaches { flow, rate_bps, window_ns } = self.spec.when {
            let received = received(flow);
            let needed = Rate(rate_bps).data_in(Span(window_ns)).0;
            let got = received - self.received_before;
            self.received_before = received;
            if got < needed {
                return Look::Later(now + Span(window_ns.max(1)));
            }
        }
        self.done = true;
        Look::Now(self.spec.action.clone())
    }
}

/// Does what an event asks for. The timer of the i-th source of `background` is `first_timer` + i.
pub fn apply_change<P: Packet + Routed>(
    action: &ActionSpec,
    now: Time,
    background: &mut [Background],
    first_timer: u32,
    net: &mut Network<P>,
) {
    match action {
        ActionSpec::Rate { link, rate_bps } => net.with_link(*link as u32, |l| l.set_rate(now, Rate(*rate_bps))),
        ActionSpec::Delay { link, delay_ns } => net.with_link(*link as u32, |l| l.set_delay(now, Span(*delay_ns))),
        ActionSpec::Loss { link, loss } => net.with_link(*link as u32, |l| l.set_loss(now, loss_model(loss))),
        ActionSpec::LinkDown { link } => net.with_link(*link as u32, |l| l.set_up(now, false)),
        ActionSpec::LinkUp { link } => net.with_link(*link as u32, |l| l.set_up(now, true)),
        ActionSpec::BackgroundOn { source } => {
            let due = background[*source].start(now);
            net.set_timer(first_timer + *source as u32, due);
        }
        ActionSpec::BackgroundOff { source } => {
            background[*source].enabled = false;
            net.set_timer(first_timer + *source as u32, Time::NEVER);
        }
    }
}

/// Checks the indices of an event.
fn check(spec: &EventSpec, links: usize, flows: usize, background: usize) -> Result<(), LabError> {
    let within = |what: &str, index: usize, count: usize| {
        if index < count {
            return Ok(());
        }
        Err(LabError::Spec(format!("events: {what} {index} does not exist, there are {count}")))
    };
    if let WhenSpec::FlowReaches { flow, .. } = spec.when {
        within("flow", flow, flows)?;
    }
    if let Some(link) = spec.action.link() {
        return within("link", link, links);
    }
    match spec.action {
        ActionSpec::BackgroundOn { source } | ActionSpec::BackgroundOff { source } => {
            within("background source", source, background)
        }
        _ => Ok(()),
    }
}
