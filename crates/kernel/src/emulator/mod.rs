//! The emulated network: the scenario's links, routes, events and background traffic in wall-clock time between TUN devices.
//!
//! One thread has everything: the simulator's own [`sim::Network`] over the scenario's links, advanced to the present before
//! each look at a device. A host is a device in a namespace, standing directly at its node; routers are inside the network.
//! Its time runs from when the thread starts, so that packets are carried before the run begins, too.

mod orders;
mod report;
mod runner;
mod table;
mod wait;
mod world;

pub use orders::Given;
pub use report::{EmulatorReport, NetworkCounters};

use crate::clock::Clock;
use crate::plan::{HostPlan, HostSpec};
use crate::tun::{Tun, TunError};
use experiment::spec::RunSpec;
use experiment::{network, ways, LabError, Management};
use link::Pacers;
use orders::Orders;
use runner::{Command, Runner};
use sim::{Network, Routes};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use table::Table;
use units::Time;
use wait::Waiter;
use world::World;

/// Which way of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the flow's source to its destination: data.
    There,
    /// Back: acknowledgements.
    Back,
}

/// A descriptor that wakes the thread.
struct Wake(Arc<File>);

impl Wake {
    fn new() -> std::io::Result<Wake> {
        // SAFETY: a plain system call; the descriptor is new and owned by the File alone.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: as above.
        Ok(Wake(Arc::new(unsafe { File::from_raw_fd(fd) })))
    }

    fn set(&self) {
        // A counter of 2^64 - 1 wake-ups that nobody read is the only thing that can refuse this.
        let _ = (&*self.0).write(&1u64.to_ne_bytes());
    }

    fn clear(&self) {
        // Nothing to clear is no error.
        let _ = (&*self.0).read(&mut [0; 8]);
    }
}

/// The thread at work.
struct Running {
    thread: JoinHandle<EmulatorReport>,
    commands: Sender<Command>,
    wake: Wake,
}

impl Running {
    fn tell(&self, command: Command) {
        // A thread that has ended hears nothing: whoever waits for an answer learns that from the closed channel.
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
    /// Which step the kernel refused, and why.
    pub fn open(hosts: &[HostSpec]) -> Result<Emulator, TunError> {
        let devices =
            hosts.iter().map(|host| Tun::open(&host.namespace, &host.device)).collect::<Result<Vec<_>, _>>()?;
        Ok(Emulator { devices: devices.into(), running: None })
    }

    /// Carries packets from here on; events and background sources follow `clock`. `progress` holds, per flow of the spec, the
    /// payload bytes that it has delivered, for events that wait for a flow's rate. Does nothing when started already.
    ///
    /// # Errors
    /// What in the spec or the plan does not hold together.
    pub fn start(
        &mut self,
        spec: &RunSpec,
        plan: &HostPlan,
        clock: Clock,
        progress: Arc<[AtomicU64]>,
    ) -> Result<(), LabError> {
        if self.running.is_some() {
            return Ok(());
        }
        if plan.hosts.len() != self.devices.len() {
            let (planned, open) = (plan.hosts.len(), self.devices.len());
            return Err(LabError::Spec(format!("the plan has {planned} hosts, but {open} devices are open")));
        }
        let (own, begin) = clock.including_now();
        let mut routes = Routes::default();
        let table = Table::new(spec, plan, &mut routes)?;
        let flow_routes = table.flow_routes(spec, plan);
        let management = Management::new(spec, &spec.flows.iter().collect::<Vec<_>>(), begin)?;
        for (flow, sides) in flow_routes.iter().enumerate() {
            if let Some(sides) = sides {
                ways::add_of_flow(spec, flow, *sides, &mut routes);
                if let Some(management) = &management {
                    management.add_ways(flow, sides[0], &mut routes);
                }
            }
        }
        let (devices, join) = (Arc::clone(&self.devices), plan.emulator.join);
        let mut world = World::new(spec, devices, own, begin, progress, join, &mut routes)?;
        (world.flow_routes, world.management) = (flow_routes, management);
        world.orders = Some(Orders::new(plan));
        // Not ahead of time: a loss counts when it happens, and any route may come to lead over any link.
        let mut pacers = Pacers::default();
        let mut links = network::links(spec, false, &mut pacers)?;
        links.extend(world.management.iter().flat_map(|management| management.gates(&mut pacers)));
        let (timers, early) = world.timers();
        let wake = Wake::new().map_err(|e| LabError::Spec(format!("eventfd: {e}")))?;
        let descriptors =
            std::iter::once(wake.0.as_raw_fd()).chain(self.devices.iter().map(Tun::descriptor)).collect::<Vec<_>>();
        let (commands, obeyed) = channel();
        let runner = Runner {
            spec: spec.clone(),
            plan: plan.clone(),
            table,
            net: Network::new(links, pacers, routes, timers, early),
            world,
            waiter: Waiter::new(descriptors.into_iter(), plan.emulator.busy_poll),
            commands: obeyed,
            wake: Wake(Arc::clone(&wake.0)),
            empty_at: vec![Time::ZERO; self.devices.len()],
        };
        let thread = std::thread::spawn(move || runner.run());
        self.running = Some(Running { thread, commands, wake });
        Ok(())
    }

    /// Packets of flow `flow` go over `links` from here on, each from the router on where its way and this one part; those past
    /// it stay on theirs.
    ///
    /// # Errors
    /// There is no such flow, the links do not lead from its one end to the other, or nothing is carried.
    pub fn set_route(&self, flow: usize, way: Way, links: &[usize]) -> Result<(), LabError> {
        let ask = |done| Command::SetRoute { flow, way, links: links.to_vec(), done };
        self.ask(ask).unwrap_or_else(|| Err(LabError::Spec("the emulator does not run".into())))
    }

    /// The network's counters now; None when nothing is carried.
    pub fn snapshot(&self) -> Option<NetworkCounters> {
        self.ask(Command::Snapshot)
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        let (answer, answered) = channel();
        self.running.as_ref()?.tell(command(answer));
        answered.recv().ok()
    }

    /// Whether it has ended by itself.
    pub fn has_failed(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.thread.is_finished())
    }

    /// Ends it and says what it did; None when it was not started. The devices stay until this is dropped.
    pub fn stop(&mut self) -> Option<EmulatorReport> {
        let running = self.running.take()?;
        running.tell(Command::Stop);
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
