//! Changes in time: what an event does to links and background sources.

use crate::background::Background;
use crate::error::LabError;
use crate::network::{check_chain, check_route, loss_model};
use crate::spec::{ActionSpec, EventSpec, RunSpec, WhenSpec};
use link::Packet;
use sim::{Network, RouteId, Routed};
use units::{Rate, Span, Time};

/// An event and whether it has happened.
pub struct Change {
    /// The event, its times since the run began.
    pub spec: EventSpec,
    /// Where it stands in the spec's list.
    pub index: usize,
    /// When it happened, in the network's time.
    pub happened: Option<Time>,
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
            check(event, run)?;
            changes.push(Change { spec: event.clone(), index, happened: None, begin, received_before: 0 });
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

    /// When each event of a spec happened, since the run began, in the spec's order; None: it did not.
    pub fn times(changes: &[Change]) -> Vec<Option<Time>> {
        let mut times = vec![None; changes.len()];
        for change in changes {
            times[change.index] = change.happened.map(|at| Time(at.since(change.begin).0));
        }
        times
    }

    /// Looks at it; `received` tells the payload bytes that a flow has delivered.
    pub fn handle_timer(&mut self, now: Time, received: impl Fn(usize) -> u64) -> Look {
        if self.happened.is_some() {
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
        self.happened = Some(now);
        Look::Now(self.spec.action.clone())
    }
}

/// Does what an event asks for. The timer of the i-th source of `background` is `first_timer` + i; `routes` gives the routes of a
/// flow's packets, from its sender and from its receiver; None where nobody runs the flow.
pub fn apply_change<P: Packet + Routed>(
    action: &ActionSpec,
    now: Time,
    background: &mut [Background],
    first_timer: u32,
    routes: impl Fn(usize) -> Option<[RouteId; 2]>,
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
        ActionSpec::Move { flows, route, return_route } => {
            for sides in flows.iter().filter_map(|&flow| routes(flow)) {
                for (side, links) in sides.into_iter().zip([route, return_route]) {
                    if let Some(links) = links {
                        net.set_way(side, links);
                    }
                }
            }
        }
        ActionSpec::MoveBackground { sources, route } => {
            for &source in sources {
                net.set_way(RouteId(background[source].hop), route);
            }
        }
    }
}

/// Checks the indices and routes of an event.
fn check(spec: &EventSpec, run: &RunSpec) -> Result<(), LabError> {
    let (links, flows, background) = (run.links.len(), run.flows.len(), run.background.len());
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
    match &spec.action {
        ActionSpec::BackgroundOn { source } | ActionSpec::BackgroundOff { source } => {
            within("background source", *source, background)
        }
        ActionSpec::Move { flows: moved, route, return_route } => moved.iter().try_for_each(|&index| {
            within("flow", index, flows)?;
            let flow = &run.flows[index];
            let what = format!("events: move of flow {}", flow.name);
            if let Some(route) = route {
                check_route(&what, "route", route, flow.source, flow.destination, &run.links)?;
            }
            match return_route {
                Some(back) => check_route(&what, "return_route", back, flow.destination, flow.source, &run.links),
                None => Ok(()),
            }
        }),
        ActionSpec::MoveBackground { sources, route } => sources.iter().try_for_each(|&index| {
            within("background source", index, background)?;
            let source = &run.background[index];
            let what = format!("events: move of background {}", source.name);
            check_chain(&what, "route", &source.route, &run.links)?;
            let ends = (run.links[source.route[0]].from, run.links[source.route[source.route.len() - 1]].to);
            check_route(&what, "route", route, ends.0, ends.1, &run.links)
        }),
        _ => Ok(()),
    }
}
