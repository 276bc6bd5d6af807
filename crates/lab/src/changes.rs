//! Changes in time: what an event does to links and background sources.

use crate::assemble::loss_model;
use crate::error::LabError;
use crate::packet::Packet;
use crate::spec::{ActionSpec, EventSpec, WhenSpec};
use crate::world::World;
use sim::Network;
use units::{Rate, Span, Time};

/// An event and whether it has happened.
pub struct Change {
    pub spec: EventSpec,
    pub done: bool,
    /// `received` of the watched flow at the start of the averaging window, bytes.
    pub received_before: u64,
}

impl Change {
    pub fn new(spec: EventSpec) -> Change {
        Change { spec, done: false, received_before: 0 }
    }

    /// When to look at it first.
    pub fn first_look(&self) -> Time {
        match self.spec.when {
            WhenSpec::At { time_ns } => Time(time_ns),
            WhenSpec::FlowReaches { window_ns, .. } => Time(window_ns.max(1)),
        }
    }
}

/// Looks at change `index`; makes it when its time has come, otherwise says when to look again.
pub fn handle_timer(world: &mut World, now: Time, index: usize, net: &mut Network<Packet>) {
    if world.changes[index].done {
        return;
    }
    if let WhenSpec::FlowReaches { flow, rate_bps, window_ns } = world.changes[index].spec.when {
        let received = world.flows[flow].receiver.bytes_received();
        let change = &mut world.changes[index];
        let needed = Rate(rate_bps).data_in(Span(window_ns)).0;
        let got = received - change.received_before;
        change.received_before = received;
        if got < needed {
            net.set_timer(index as u32, now + Span(window_ns.max(1)));
            return;
        }
    }
    world.changes[index].done = true;
    let action = world.changes[index].spec.action.clone();
    apply(world, now, &action, net);
}

fn apply(world: &mut World, now: Time, action: &ActionSpec, net: &mut Network<Packet>) {
    match action {
        ActionSpec::Rate { link, rate_bps } => net.with_link(*link as u32, |l| l.set_rate(now, Rate(*rate_bps))),
        ActionSpec::Delay { link, delay_ns } => net.with_link(*link as u32, |l| l.set_delay(now, Span(*delay_ns))),
        ActionSpec::Loss { link, loss } => net.with_link(*link as u32, |l| l.set_loss(now, loss_model(loss))),
        ActionSpec::LinkDown { link } => net.with_link(*link as u32, |l| l.set_up(now, false)),
        ActionSpec::LinkUp { link } => net.with_link(*link as u32, |l| l.set_up(now, true)),
        ActionSpec::BackgroundOn { source } => {
            let due = world.background[*source].start(now);
            net.set_timer(world.timers.background(*source), due);
        }
        ActionSpec::BackgroundOff { source } => {
            world.background[*source].enabled = false;
            net.set_timer(world.timers.background(*source), Time::NEVER);
        }
    }
}

/// Checks the indices of an event.
pub fn check(spec: &EventSpec, links: usize, flows: usize, background: usize) -> Result<(), LabError> {
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
