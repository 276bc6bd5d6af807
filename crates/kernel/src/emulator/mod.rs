//! The emulated network: the scenario's links, routes, events and background traffic in wall-clock time between TUN
//! devices.
//!
//! One thread has everything: the simulator's own [`sim::Network`] over the scenario's links, advanced to the present
//! before each look at a device. A host is a device in a namespace, standing directly at its node; routers are inside
//! the network. Its time runs from when the thread starts, so that packets are carried before the run begins, too.

mod change;
mod direction;
mod report;
mod routers;
mod runner;
mod sender_commands;
mod table;
mod wait;
mod wake;
mod world;

pub use change::{BackgroundRateChange, MtuChange, NetworkChange, PolicerChange};
pub use direction::Direction;
pub use report::{CarrierCounters, EmulatorReport};
pub use routers::RouterCounters;
pub use sender_commands::IssuedCommand;

use crate::clock::Clock;
use crate::plan::{HostPlan, HostSpec};
use crate::tun::{Tun, TunError};
use experiment::{Environment, Numbering, RunError, ValidRun};
use routers::Routers;
use runner::{Command, Runner};
use sender_commands::CommandMaps;
use sim::{Network, Routes};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use table::Table;
use units::Time;
use wait::Waiter;
use wake::Wake;
use world::{HostSenders, World};

/// The thread at work.
struct Running {
    thread: JoinHandle<EmulatorReport>,
    commands: Sender<Command>,
    wake: Wake,
}

impl Running {
    fn send(&self, command: Command) {
        // A thread that has ended receives nothing: a caller that waits for an answer learns that from the closed
        // channel.
        let _ = self.commands.send(command);
        self.wake.set();
    }
}

/// The devices of all hosts and the network between them.
pub struct Emulator {
    devices: Arc<[Tun]>,
    running: Option<Running>,
}

impl Emulator {
    /// Makes the devices. Nothing is carried before [`Emulator::start`], so that they can be configured first.
    ///
    /// # Errors
    /// The step that the kernel refused, with its reason.
    pub fn open(hosts: &[HostSpec]) -> Result<Emulator, TunError> {
        let devices =
            hosts.iter().map(|host| Tun::open(&host.namespace, &host.device)).collect::<Result<Vec<_>, _>>()?;
        Ok(Emulator { devices: devices.into(), running: None })
    }

    /// Carries packets from here on; events and background sources follow `clock`. `progress` holds, per flow of the
    /// spec, the payload bytes that it has delivered, for events that wait for a flow's rate. Does nothing when started
    /// already.
    ///
    /// # Errors
    /// The contradiction in the plan.
    pub fn start(
        &mut self,
        run: ValidRun<'_>,
        plan: &HostPlan,
        clock: Clock,
        progress: Arc<[AtomicU64]>,
    ) -> Result<(), RunError> {
        if self.running.is_some() {
            return Ok(());
        }
        if plan.hosts.len() != self.devices.len() {
            let (planned, open) = (plan.hosts.len(), self.devices.len());
            return Err(RunError::Spec(format!("the plan has {planned} hosts, but {open} devices are open")));
        }
        let spec = run.spec();
        let (own, begin) = clock.including_now();
        let mut routes = Routes::default();
        let table = Table::new(spec, plan, &mut routes)?;
        let flow_routes = table.flow_routes(spec, plan);
        let routers = Routers::new(spec, plan, &table, &mut routes)?;
        let numbering = Numbering {
            first_host: self.devices.len() as u32,
            first_source: 2 * spec.flows.len() as u32,
            first_timer: spec.events.len() as u32,
        };
        let mut environment = Environment::new(run, &spec.flows.iter().collect::<Vec<_>>(), begin, numbering);
        for (flow, sides) in flow_routes.iter().enumerate() {
            if let Some(sides) = sides {
                environment.add_alternates(run, flow, *sides, &mut routes);
            }
        }
        environment.add_background(run, &mut routes);
        // Not ahead of time: a loss counts when it happens, and any route may come to cross any link.
        let (links, pacers) = environment.links(run, false);
        let (timers, early) = (environment.sampler_timer() as usize + 1, environment.early_timers());
        let senders = HostSenders {
            routes: flow_routes,
            progress,
            maps: CommandMaps::new(plan),
            clock: own,
            begin,
            events: spec.events.len(),
            issued: vec![],
        };
        let names = spec.flows.iter().map(|flow| flow.name.clone()).collect();
        let world = World::new(Arc::clone(&self.devices), environment, senders, routers, names, plan.emulator.join);
        let wake = Wake::new().map_err(|e| RunError::Spec(format!("eventfd: {e}")))?;
        let descriptors =
            std::iter::once(wake.descriptor()).chain(self.devices.iter().map(Tun::descriptor)).collect::<Vec<_>>();
        let (commands, obeyed) = channel();
        let runner = Runner {
            spec: spec.clone(),
            plan: plan.clone(),
            table,
            net: Network::new(links, pacers, routes, timers, early),
            world,
            waiter: Waiter::new(descriptors.into_iter(), plan.emulator.busy_poll),
            commands: obeyed,
            wake: wake.share(),
            empty_at: vec![Time::ZERO; self.devices.len()],
        };
        let thread = std::thread::spawn(move || runner.run());
        self.running = Some(Running { thread, commands, wake });
        Ok(())
    }

    /// Moves packets of flow `flow` to `links`, each at the router at which its old and its new route part; packets
    /// past it stay on the old one.
    ///
    /// # Errors
    /// There is no such flow, the links do not lead from its one end to the other, or nothing is carried.
    pub fn set_route(&self, flow: usize, direction: Direction, links: &[usize]) -> Result<(), RunError> {
        self.order(|done| Command::SetRoute { flow, direction, links: links.to_vec(), done })
    }

    /// Changes the network, all at one time, or nothing of it. Packets inside stay as they are, but for those on a link
    /// that goes down.
    ///
    /// # Errors
    /// The part of the change that does not fit the network, or nothing is carried.
    pub fn change(&self, change: NetworkChange) -> Result<(), RunError> {
        self.order(|done| Command::Change { change, done })
    }

    /// The time of each event since the run began, None: it has not happened; None when nothing is carried.
    pub fn event_times(&self) -> Option<Vec<Option<Time>>> {
        self.ask(Command::EventTimes)
    }

    /// The network's counters now; None when nothing is carried.
    pub fn snapshot(&self) -> Option<CarrierCounters> {
        self.ask(Command::Snapshot)
    }

    /// Asks for something that may be refused.
    fn order(&self, command: impl FnOnce(Sender<Result<(), RunError>>) -> Command) -> Result<(), RunError> {
        self.ask(command).unwrap_or_else(|| Err(RunError::Spec("the emulator does not run".into())))
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        let (answer, answered) = channel();
        self.running.as_ref()?.send(command(answer));
        answered.recv().ok()
    }

    /// Returns true if it has ended by itself.
    pub fn has_failed(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.thread.is_finished())
    }

    /// Ends it and returns its report; None if it was not started. The devices stay until this is dropped.
    pub fn stop(&mut self) -> Option<EmulatorReport> {
        let running = self.running.take()?;
        running.send(Command::Stop);
        let panicked =
            |_| EmulatorReport { failure: Some("the emulator's thread panicked".into()), ..EmulatorReport::default() };
        Some(running.thread.join().unwrap_or_else(panicked))
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop();
    }
}
