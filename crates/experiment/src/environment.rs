//! Everything that acts on a run's network beside its flows: events, background sources, the manager. The simulator's
//! world and an emulator in wall-clock time have the same.

use crate::background::{Background, BackgroundPacket};
use crate::counters::{BackgroundCounters, HoldBufferCounters, NetworkCounters};
use crate::events::{apply_action, EventStep, FlowProgress, ScheduledEvent};
use crate::link_config::policer_of;
use crate::manager::Management;
use crate::network;
use crate::routes;
use crate::sender_command::AddressedCommand;
use crate::series::LinkSeries;
use crate::validate::ValidRun;
use link::{Link, Pacers, Packet};
use sim::{Network, RouteId, Routed, Routes};
use spec::{ActionSpec, FlowSpec, PolicerSpec};
use units::{Span, Time};

/// The flows' side, as events and the manager see it.
pub trait Senders<P> {
    /// Progress of flow `flow`.
    fn progress(&self, flow: usize) -> FlowProgress;
    /// Returns the routes of a flow's packets, from its sender and from its receiver; None if this machine does not run
    /// the flow.
    fn routes(&self, flow: usize) -> Option<[RouteId; 2]>;
    /// Hands a command to its sender.
    fn command(&mut self, now: Time, addressed: &AddressedCommand, net: &mut Network<P>);
}

/// First numbers of background sources and of timers. Timers of events are 0 and up.
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    /// Host to which packets of the first background source go; those of the others follow.
    pub first_host: u32,
    /// Source number of the first background source.
    pub first_source: u32,
    /// Timer of the first background source; then come the others', the manager's, one for the caller's use, and the
    /// sampler's.
    pub first_timer: u32,
}

/// Events, background sources, the manager, and the samples of links.
pub struct Environment {
    events: Vec<ScheduledEvent>,
    background: Vec<Background>,
    management: Option<Management>,
    link_series: LinkSeries,
    /// None: there is no series.
    series_interval: Option<Span>,
    /// Links of the spec; hold buffers follow them.
    links: usize,
    /// Start of the run, in the network's time.
    begin: Time,
    /// Background sources of the spec.
    sources: u32,
    numbering: Numbering,
}

impl Environment {
    /// That of `run`, which begins at `begin`, around its `flows`. The routes are still to be made known:
    /// [`Environment::add_alternates`] for each flow, then [`Environment::add_background`].
    pub fn new(run: ValidRun<'_>, flows: &[&FlowSpec], begin: Time, numbering: Numbering) -> Environment {
        Environment {
            events: ScheduledEvent::all(run, begin),
            background: vec![],
            management: Management::new(run, flows, begin),
            link_series: LinkSeries::default(),
            series_interval: run.measure.series_interval_ns.map(Span),
            links: run.links.len(),
            begin,
            sources: run.background.len() as u32,
            numbering,
        }
    }

    /// Adds the alternate routes of packets of `flow`; `sides` are its first routes, from the sender and from the
    /// receiver.
    pub fn add_alternates(&self, run: ValidRun<'_>, flow: usize, sides: [RouteId; 2], routes: &mut Routes) {
        // Events name the flows of the spec alone.
        routes::add_of_flow(run.spec(), flow, sides, routes);
        if let Some(management) = &self.management {
            management.add_alternates(flow, sides[0], routes);
        }
    }

    /// Makes the background sources and their routes.
    pub fn add_background(&mut self, run: ValidRun<'_>, routes: &mut Routes) {
        self.background = Background::all(run, self.begin, self.numbering.first_host, routes);
    }

    /// All links of `run`, then the hold buffers of its events and of the manager, and the pacers that these share;
    /// `ahead` as for [`network::links`].
    pub fn links<P: Packet>(&self, run: ValidRun<'_>, ahead: bool) -> (Vec<Link<P>>, Pacers) {
        let mut pacers = Pacers::default();
        let mut links = network::links(run, ahead, &mut pacers);
        links.extend(self.management.iter().flat_map(|management| management.hold_buffers(&mut pacers)));
        (links, pacers)
    }

    /// Returns true if a manager watches the network.
    pub fn is_managed(&self) -> bool {
        self.management.is_some()
    }

    /// The first hop of each background source's packets.
    pub fn background_hops(&self) -> Vec<u32> {
        self.background.iter().map(|source| source.hop).collect()
    }

    /// Sizes of background packets.
    pub fn background_bytes(&self) -> impl Iterator<Item = u32> + '_ {
        let specs = self.background.iter().map(|source| &source.spec);
        specs.flat_map(|spec| {
            let frames = spec.frames.iter().flat_map(|frames| frames.packets_bytes.iter().copied());
            frames.chain([spec.packet_bytes])
        })
    }

    /// Timers that go before links.
    pub fn early_timers(&self) -> usize {
        self.events.len()
    }

    /// The timer of the manager.
    pub fn manager_timer(&self) -> u32 {
        self.numbering.first_timer + self.sources
    }

    /// The timer of the samples of links, the last of its own.
    pub fn sampler_timer(&self) -> u32 {
        self.manager_timer() + 2
    }

    /// Sets the first timer of everything.
    pub fn set_timers<P: BackgroundPacket>(&mut self, net: &mut Network<P>) {
        ScheduledEvent::set_timers(&self.events, net);
        Background::set_timers(&mut self.background, self.numbering.first_timer, net);
        if let Some(management) = &self.management {
            net.set_timer(self.manager_timer(), management.poll_timeout());
        }
        if let Some(interval) = self.series_interval {
            net.set_timer(self.sampler_timer(), self.begin + interval);
        }
    }

    /// Handles timer `timer` of an event, a background source or the manager; returns false if it is none of these.
    pub fn handle_timer<P: BackgroundPacket>(
        &mut self,
        now: Time,
        timer: u32,
        senders: &mut impl Senders<P>,
        net: &mut Network<P>,
    ) -> bool {
        if (timer as usize) < self.events.len() {
            self.handle_event(now, timer, senders, net);
        } else if (self.numbering.first_timer..self.manager_timer()).contains(&timer) {
            self.handle_background(now, timer, net);
        } else if timer == self.manager_timer() {
            self.handle_manager(now, senders, net);
        } else {
            return false;
        }
        true
    }

    fn handle_event<P: BackgroundPacket>(
        &mut self,
        now: Time,
        timer: u32,
        senders: &mut impl Senders<P>,
        net: &mut Network<P>,
    ) {
        match self.events[timer as usize].handle_timer(now, |flow| senders.progress(flow)) {
            EventStep::Command(commands, again) => {
                for addressed in &commands {
                    senders.command(now, addressed, net);
                }
                if let Some(again) = again {
                    net.set_timer(timer, again);
                }
            }
            EventStep::Now(action, again) => {
                if let Some(again) = again {
                    net.set_timer(timer, again);
                }
                let routes = |flow: usize| senders.routes(flow);
                apply_action(&action, now, &mut self.background, self.numbering.first_timer, routes, net);
            }
            EventStep::Later(again) => net.set_timer(timer, again),
            EventStep::Done => {}
        }
    }

    /// Does what an event would do, now.
    pub fn act<P: BackgroundPacket>(
        &mut self,
        now: Time,
        action: &ActionSpec,
        senders: &impl Senders<P>,
        net: &mut Network<P>,
    ) {
        let routes = |flow: usize| senders.routes(flow);
        apply_action(action, now, &mut self.background, self.numbering.first_timer, routes, net);
    }

    /// Gives background source `source` another rate.
    pub fn set_background_rate<P: BackgroundPacket>(
        &mut self,
        now: Time,
        source: usize,
        rate_bps: u64,
        net: &mut Network<P>,
    ) {
        if let Some(due) = self.background[source].set_rate(now, rate_bps) {
            net.set_timer(self.numbering.first_timer + source as u32, due);
        }
    }

    /// Gives link `link` of a network without links of [`Link::fixed`] another policer, or none.
    ///
    /// # Panics
    /// When the link takes packets in batches.
    pub fn set_policer<P: Packet + Routed>(&self, link: usize, policer: Option<&PolicerSpec>, net: &mut Network<P>) {
        let policer = policer.map(policer_of);
        net.change_policer(link as u32, policer.as_ref()).expect("links that are carried live may change");
    }

    fn handle_background<P: BackgroundPacket>(&mut self, now: Time, timer: u32, net: &mut Network<P>) {
        let index = timer - self.numbering.first_timer;
        let source = &mut self.background[index as usize];
        let (bytes, due) = source.handle_timer(now);
        if let Some(bytes) = bytes {
            source.sent_packets += 1;
            let number = source.times.send(now);
            let packet = P::background(bytes, source.hop, self.numbering.first_source + index, number);
            if net.send(packet).is_err() {
                source.dropped_packets += 1;
                source.times.lose(number);
            }
        }
        net.set_timer(timer, due);
    }

    fn handle_manager<P: BackgroundPacket>(&mut self, now: Time, senders: &mut impl Senders<P>, net: &mut Network<P>) {
        let timer = self.manager_timer();
        let Some(management) = &mut self.management else { return };
        management.handle_timer(now, |flow| senders.routes(flow).map(|sides| sides[0]), net);
        net.set_timer(timer, management.poll_timeout());
        while let Some(addressed) = management.poll_command() {
            senders.command(now, &addressed, net);
        }
    }

    /// The sampler's timer fired: a row for each link.
    pub fn sample<P: Packet + Routed>(&mut self, now: Time, net: &mut Network<P>) {
        let Some(interval) = self.series_interval else { return };
        self.write_samples(std::iter::once(now), net);
        net.set_timer(self.sampler_timer(), now + interval);
    }

    /// A row for each link at each of `times`.
    pub fn write_samples<P: Packet + Routed>(&mut self, times: impl Iterator<Item = Time>, net: &mut Network<P>) {
        let times: Vec<_> = times.map(|at| (at.since(self.begin).as_secs_f64(), at)).collect();
        self.link_series.sample(&times, &mut net.links_to_sample()[..self.links]);
    }

    /// A packet of `bytes` of flow `flow`'s data has left the network.
    #[inline]
    pub fn handle_data(&mut self, flow: usize, bytes: u32) {
        if let Some(management) = &mut self.management {
            management.handle_packet(flow, bytes);
        }
    }

    /// Handles `packet`, which has come to `host`; returns false if that is not the end of a background source's route.
    #[inline]
    pub fn handle_arrival<P: BackgroundPacket>(&mut self, now: Time, host: u32, packet: &P) -> bool {
        let Some(index) = host.checked_sub(self.numbering.first_host) else { return false };
        let source = &mut self.background[index as usize];
        source.received_packets += 1;
        source.times.arrive(now, packet.number());
        true
    }

    /// Counts `packet` of `source`, which was lost in the network; returns false if that is no background source.
    pub fn handle_drop<P: BackgroundPacket>(&mut self, source: u32, packet: &P) -> bool {
        let index = source.checked_sub(self.numbering.first_source);
        let Some(background) = index.and_then(|index| self.background.get_mut(index as usize)) else { return false };
        background.dropped_packets += 1;
        background.times.lose(packet.number());
        true
    }

    /// Returns the network's counters so far; `names` are those of the flows.
    pub fn counters<P: Packet + Routed>(&self, net: &Network<P>, names: &[&str]) -> NetworkCounters {
        let mut hold_buffers = HoldBufferCounters::of(net);
        hold_buffers.kept.extend(self.management.iter().flat_map(|management| management.kept_before()));
        NetworkCounters {
            links: net.links()[..self.links].iter().map(|link| *link.stats()).collect(),
            background: self.background_counters(),
            hold_buffers,
            managed: self.management.as_ref().map(|management| management.outcome(names)),
        }
    }

    /// Returns the counters of the background sources so far.
    pub fn background_counters(&self) -> Vec<BackgroundCounters> {
        let of = |source: &Background| BackgroundCounters {
            sent: source.sent_packets,
            dropped: source.dropped_packets,
            received: source.received_packets,
            delays: Some(source.times.delays.clone()),
        };
        self.background.iter().map(of).collect()
    }

    /// Returns the time of each event since the run began, in the spec's order; None: it did not happen.
    pub fn event_times(&self) -> Vec<Option<Time>> {
        ScheduledEvent::times(&self.events)
    }

    /// Returns the event of timer `timer` in the spec, and its time in the network's; None: it is no event's, or it has
    /// not happened.
    pub fn happened(&self, timer: u32) -> Option<(usize, Time)> {
        let event = self.events.get(timer as usize)?;
        Some((event.index, event.happened?))
    }

    /// A note for each event that never happened.
    pub fn missed_events(&self) -> Vec<String> {
        let missed = self.events.iter().filter(|event| event.happened.is_none());
        missed.map(|event| format!("an event never happened: {:?}", event.spec.when)).collect()
    }

    /// Takes the series of links.
    pub fn take_link_series(&mut self) -> LinkSeries {
        std::mem::take(&mut self.link_series)
    }
}
