//! Changes in time: what an event does to links and background sources.

use crate::background::Background;
use crate::error::LabError;
use crate::gates;
use crate::network::{check_chain, check_route, loss_model};
use crate::spec::{
    ActionSpec, CwndReductionSpec, EventSpec, MitigationSpec, QueueDelaySpec, ReorderingToleranceSpec, RunSpec,
    WhenSpec,
};
use crate::ways;
use link::hold_buffer::Plan;
use link::Packet;
use sim::{Network, RouteId, Routed};
use tcp::{CwndReduction as Trimmed, Endpoint};
use units::{Rate, Size, Span, Time};

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
    /// Whether senders have been told of a move.
    told: bool,
    /// When windows that were trimmed are given back.
    restore_at: Option<Time>,
}

/// What senders of flows are told before a move.
#[derive(Clone, Debug)]
pub struct Notice {
    /// Indices of the flows.
    pub flows: Vec<usize>,
    /// To shrink their windows.
    pub trim: Option<CwndReductionSpec>,
    /// To be patient.
    pub tolerate: Option<ReorderingToleranceSpec>,
}

impl Notice {
    /// Tells `sender`; what it has trimmed.
    pub fn tell(&self, now: Time, sender: &mut Endpoint) -> Option<Trimmed> {
        let trim = self.trim.as_ref();
        let trimmed = trim.and_then(|trim| sender.reduce_cwnd(now, Span(trim.delay_ns), trim.cwnd_fraction_ppm));
        if let Some(ReorderingToleranceSpec { delay_ns, duration_ns }) = self.tolerate {
            let default = Span(2 * sender.srtt().0 + delay_ns);
            sender.tolerate_reordering(now, Span(delay_ns), duration_ns.map_or(default, Span));
        }
        trimmed
    }
}

/// What a look at a change gave.
pub enum Look {
    /// Senders are told now; look again then.
    Tell(Notice, Time),
    /// It happens now; look again then, if at all.
    Now(ActionSpec, Option<Time>),
    /// Senders of these flows are given their windows back.
    Restore(Vec<usize>),
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
            let mut spec = event.clone();
            if let (ActionSpec::Move { route: Some(route), .. } | ActionSpec::MoveBackground { route, .. }, Some(way)) =
                (&mut spec.action, ways::of_event(run, index))
            {
                *route = way;
            }
            changes.push(Change {
                spec,
                index,
                happened: None,
                begin,
                received_before: 0,
                told: false,
                restore_at: None,
            });
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
            return match (self.restore_at.take_if(|at| *at <= now), &self.spec.action) {
                (Some(_), ActionSpec::Move { flows, .. }) => Look::Restore(flows.clone()),
                _ => Look::Done,
            };
        }
        if self.told {
            return self.act(now);
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
        if let Some((notice, lead)) = notice(&self.spec.action) {
            self.told = true;
            return Look::Tell(notice, now + lead);
        }
        self.act(now)
    }

    fn act(&mut self, now: Time) -> Look {
        self.happened = Some(now);
        if let ActionSpec::Move { mitigation: Some(MitigationSpec { cwnd_reduction: Some(trim), .. }), .. } =
            &self.spec.action
        {
            self.restore_at = trim.restore_ns.map(|after| now + Span(after));
        }
        Look::Now(self.spec.action.clone(), self.restore_at)
    }
}

/// What senders are told of `action`, and how long before it.
fn notice(action: &ActionSpec) -> Option<(Notice, Span)> {
    let ActionSpec::Move { flows, mitigation: Some(mitigation), .. } = action else { return None };
    let MitigationSpec { cwnd_reduction: trim, reordering_tolerance: tolerate, .. } = mitigation.clone();
    if trim.is_none() && tolerate.is_none() {
        return None;
    }
    let lead = Span(trim.as_ref().map_or(0, |trim| trim.lead_ns));
    Some((Notice { flows: flows.clone(), trim, tolerate }, lead))
}

/// `network::links` makes links that events change variable.
const VARIABLE: &str = "a link that events change is variable";

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
        ActionSpec::Rate { link, rate_bps } => {
            net.change_link(*link as u32, |l| l.set_rate(now, Rate(*rate_bps))).expect(VARIABLE)
        }
        ActionSpec::Delay { link, delay_ns } => {
            net.change_link(*link as u32, |l| l.set_delay(now, Span(*delay_ns))).expect(VARIABLE)
        }
        ActionSpec::Loss { link, loss } => {
            net.change_link(*link as u32, |l| l.set_loss(now, loss_model(loss))).expect(VARIABLE)
        }
        ActionSpec::LinkDown { link } => net.change_link(*link as u32, |l| l.set_up(now, false)).expect(VARIABLE),
        ActionSpec::LinkUp { link } => net.change_link(*link as u32, |l| l.set_up(now, true)).expect(VARIABLE),
        ActionSpec::BackgroundOn { source } => {
            let due = background[*source].start(now);
            net.set_timer(first_timer + *source as u32, due);
        }
        ActionSpec::BackgroundOff { source } => {
            background[*source].enabled = false;
            net.set_timer(first_timer + *source as u32, Time::NEVER);
        }
        ActionSpec::Move { flows, route, return_route, mitigation } => {
            if let Some(route) = route {
                begin_hold(route, mitigation.as_ref(), now, net);
            }
            for sides in flows.iter().filter_map(|&flow| routes(flow)) {
                for (side, links) in sides.into_iter().zip([route, return_route]) {
                    if let Some(links) = links {
                        net.set_path(side, links);
                    }
                }
            }
        }
        ActionSpec::MoveBackground { sources, route, mitigation } => {
            begin_hold(route, mitigation.as_ref(), now, net);
            for &source in sources {
                net.set_path(RouteId(background[source].hop), route);
            }
        }
    }
}

/// Starts the gate on `route`, if it has one; returns the gate and for how long it keeps packets back.
pub(crate) fn begin_hold<P: Packet + Routed>(
    route: &[usize],
    mitigation: Option<&MitigationSpec>,
    now: Time,
    net: &mut Network<P>,
) -> Option<(usize, Span)> {
    let gate = mitigation?.hold_buffer.as_ref()?;
    let at = *route.iter().find(|&&link| net.links()[link].as_hold_buffer().is_some())?;
    let mut delay = Span(gate.delay_ns);
    for &QueueDelaySpec { link, rate_bps } in &gate.queues {
        // What is being sent is in no queue: the delay has the time of a packet on each line.
        let (_, bytes) = net.links_mut()[link].queue(now);
        delay = delay + Rate(rate_bps).time_for(Size(bytes));
    }
    net.hold_buffer_mut(at)?.0.begin(now, Plan { delay, share_ppm: gate.share_ppm });
    Some((at, delay))
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
    if let ActionSpec::Move { mitigation: Some(mitigation), .. }
    | ActionSpec::MoveBackground { mitigation: Some(mitigation), .. } = &spec.action
    {
        if let Some(problem) = mitigation.hold_buffer.as_ref().and_then(|gate| gates::problem(gate, &run.links)) {
            return Err(LabError::Spec(format!("events: {problem}")));
        }
    }
    match &spec.action {
        ActionSpec::BackgroundOn { source } | ActionSpec::BackgroundOff { source } => {
            within("background source", *source, background)
        }
        ActionSpec::Move { flows: moved, route, return_route, .. } => moved.iter().try_for_each(|&index| {
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
        ActionSpec::MoveBackground { sources, route, .. } => sources.iter().try_for_each(|&index| {
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
