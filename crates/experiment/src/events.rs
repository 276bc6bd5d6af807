//! Events: what changes in time, and what that does to links, routes and background sources.

use crate::background::Background;
use crate::link_config::loss_model;
use crate::routes;
use crate::sender_command::{AddressedCommand, MoveId, Preparation, SenderCommand};
use crate::validate::ValidRun;
use spec::{ActionSpec, EventSpec, MitigationSpec, QueueDelaySpec, WhenSpec};

use link::hold_buffer::Plan;
use link::Packet;
use sim::{Network, RouteId, Routed};
use units::{Rate, Size, Span, Time};

/// An event and whether it has happened.
pub struct ScheduledEvent {
    /// The event, its times since the run began.
    pub spec: EventSpec,
    /// Index in the spec's list.
    pub index: usize,
    /// Time of the event, in the network's time.
    pub happened: Option<Time>,
    /// Start of the run, in the network's time.
    begin: Time,
    /// Progress of the watched flow when the averaging window began.
    before: FlowProgress,
    /// End of the first of the averaging windows, up to the latest one, that reached the rate without a retransmission.
    kept_since: Option<Time>,
    /// True if senders have got their commands for the move.
    has_commanded: bool,
    /// Time at which the reduced windows are restored.
    restore_at: Option<Time>,
}

/// Progress of a flow, as an event sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowProgress {
    /// Payload delivered, bytes.
    pub received_bytes: u64,
    /// Data segments sent again; 0 where that is not known.
    pub retransmitted_segments: u64,
}

/// Result of a step of an event.
pub enum EventStep {
    /// Give senders their commands now; the next step is due at the time, if any.
    Command(Vec<AddressedCommand>, Option<Time>),
    /// The action happens now; the next step is due at the time, if any.
    Now(ActionSpec, Option<Time>),
    /// The next step is due at this time.
    Later(Time),
    /// It has happened before.
    Done,
}

impl ScheduledEvent {
    /// All events of `run`, which begins at `begin`, as timers 0 and up of its network: those at a time go before
    /// packets of the same ns; those that watch a flow look after them.
    pub fn all(run: ValidRun<'_>, begin: Time) -> Vec<ScheduledEvent> {
        let mut events = vec![];
        for (index, event) in run.events.iter().enumerate() {
            let mut spec = event.clone();
            if let (
                ActionSpec::Move { route: Some(route), .. } | ActionSpec::MoveBackground { route, .. },
                Some(elements),
            ) = (&mut spec.action, routes::of_event(run.spec(), index))
            {
                *route = elements;
            }
            events.push(ScheduledEvent {
                spec,
                index,
                happened: None,
                begin,
                before: FlowProgress::default(),
                kept_since: None,
                has_commanded: false,
                restore_at: None,
            });
        }
        events.sort_by_key(|event: &ScheduledEvent| match event.spec.when {
            WhenSpec::At { time_ns } => (0, time_ns),
            WhenSpec::FlowReaches { .. } => (1, 0),
        });
        events
    }

    /// Sets the first timer of each.
    pub fn set_timers<P: Packet + Routed>(events: &[ScheduledEvent], net: &mut Network<P>) {
        for (timer, event) in (0..).zip(events) {
            let first_look = match event.spec.when {
                WhenSpec::At { time_ns } => Span(time_ns),
                WhenSpec::FlowReaches { window_ns, .. } => Span(window_ns.max(1)),
            };
            net.set_timer(timer, event.begin + first_look);
        }
    }

    /// Returns the time of each event since the run began, in the spec's order; None: it did not happen.
    pub fn times(events: &[ScheduledEvent]) -> Vec<Option<Time>> {
        let mut times = vec![None; events.len()];
        for event in events {
            times[event.index] = event.happened.map(|at| Time(at.since(event.begin).0));
        }
        times
    }

    /// Makes a step of the event; `progress` is that of a flow.
    pub fn handle_timer(&mut self, now: Time, progress: impl Fn(usize) -> FlowProgress) -> EventStep {
        if self.happened.is_some() {
            return match (self.restore_at.take_if(|at| *at <= now), &self.spec.action) {
                (Some(_), ActionSpec::Move { flows, .. }) => {
                    EventStep::Command(self.commands(flows, &SenderCommand::Restore), None)
                }
                _ => EventStep::Done,
            };
        }
        if self.has_commanded {
            return self.act(now);
        }
        if let WhenSpec::FlowReaches { flow, rate_bps, window_ns, settled_ns } = self.spec.when {
            let window = Span(window_ns.max(1));
            let progress = progress(flow);
            let before = std::mem::replace(&mut self.before, progress);
            let reached = progress.received_bytes - before.received_bytes >= Rate(rate_bps).data_in(Span(window_ns)).0;
            if settled_ns == 0 {
                if !reached {
                    return EventStep::Later(now + window);
                }
            } else if !reached || progress.retransmitted_segments != before.retransmitted_segments {
                self.kept_since = None;
                return EventStep::Later(now + window);
            } else if now + window < *self.kept_since.get_or_insert(now) + Span(settled_ns) {
                return EventStep::Later(now + window);
            }
        }
        if let Some((flows, preparation, lead)) = preparation(&self.spec.action) {
            let commands = self.commands(flows, &SenderCommand::Prepare(preparation));
            self.has_commanded = true;
            return EventStep::Command(commands, Some(now + lead));
        }
        self.act(now)
    }

    /// `command` for the senders of `flows`.
    fn commands(&self, flows: &[usize], command: &SenderCommand) -> Vec<AddressedCommand> {
        let why = MoveId::Event(self.index);
        flows.iter().map(|&flow| AddressedCommand { flow, why, command: command.clone() }).collect()
    }

    fn act(&mut self, now: Time) -> EventStep {
        self.happened = Some(now);
        if let ActionSpec::Move {
            mitigation: Some(MitigationSpec { cwnd_reduction: Some(cwnd_reduction), .. }), ..
        } = &self.spec.action
        {
            self.restore_at = cwnd_reduction.restore_ns.map(|after| now + Span(after));
        }
        EventStep::Now(self.spec.action.clone(), self.restore_at)
    }
}

/// Returns the flows whose senders prepare for `action`, their preparation, and the time from it to the action.
fn preparation(action: &ActionSpec) -> Option<(&[usize], Preparation, Span)> {
    let ActionSpec::Move { flows, mitigation: Some(mitigation), .. } = action else { return None };
    let MitigationSpec { cwnd_reduction, reordering_tolerance, .. } = mitigation.clone();
    if cwnd_reduction.is_none() && reordering_tolerance.is_none() {
        return None;
    }
    let lead = Span(cwnd_reduction.as_ref().map_or(0, |cwnd_reduction| cwnd_reduction.lead_ns));
    Some((flows, Preparation { cwnd_reduction, reordering_tolerance }, lead))
}

/// `network::links` makes links that events change variable.
const VARIABLE: &str = "a link that events change is variable";

/// Does what an event asks for. The timer of the i-th source of `background` is `first_timer` + i; `routes` gives the
/// routes of a flow's packets, from its sender and from its receiver; None where nobody runs the flow.
pub fn apply_action<P: Packet + Routed>(
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

/// Starts the hold buffer on `route`, if it has one; returns the buffer and its hold time.
pub fn begin_hold<P: Packet + Routed>(
    route: &[usize],
    mitigation: Option<&MitigationSpec>,
    now: Time,
    net: &mut Network<P>,
) -> Option<(usize, Span)> {
    let hold_buffer = mitigation?.hold_buffer.as_ref()?;
    let at = *route.iter().find(|&&link| net.links()[link].as_hold_buffer().is_some())?;
    let mut delay = Span(hold_buffer.delay_ns);
    for &QueueDelaySpec { link, rate_bps } in &hold_buffer.queues {
        // The queue does not count the packet in transmission: the delay includes the time of one packet on each line.
        let (_, bytes) = net.links_mut()[link].queue(now);
        delay = delay + Rate(rate_bps).time_for(Size(bytes));
    }
    net.hold_buffer_mut(at)?.0.begin(now, Plan { delay, share_ppm: hold_buffer.share_ppm });
    Some((at, delay))
}
