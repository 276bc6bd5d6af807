//! The emulator's thread: reads what hosts send, advances the network to the present, waits.

use super::change::NetworkChange;
use super::direction::Direction;
use super::report::{CarrierCounters, EmulatorReport};
use super::table::{check_route_of, Table};
use super::wait::Waiter;
use super::wake::Wake;
use super::world::World;
use crate::clock;
use crate::packet::Token;
use crate::plan::HostPlan;
use experiment::RunError;
use sim::Network;
use spec::RunSpec;
use std::io;
use std::sync::mpsc::{Receiver, Sender};
use units::Time;

/// Packets read from one host before the next host's turn: at a few us each, events due elsewhere wait for tens of us.
const BURST: usize = 16;

/// More events than one advance of the network ever has.
const ALL: u64 = 1 << 40;

/// A command to the emulator's thread.
pub(super) enum Command {
    SetRoute { flow: usize, direction: Direction, links: Vec<usize>, done: Sender<Result<(), RunError>> },
    Change { change: NetworkChange, done: Sender<Result<(), RunError>> },
    EventTimes(Sender<Vec<Option<Time>>>),
    Snapshot(Sender<CarrierCounters>),
    Stop,
}

pub(super) struct Runner {
    pub spec: RunSpec,
    pub plan: HostPlan,
    pub table: Table,
    pub net: Network<Token>,
    pub world: World,
    /// The descriptor that wakes the thread for commands, then one per host.
    pub waiter: Waiter,
    pub commands: Receiver<Command>,
    pub wake: Wake,
    /// By host: a time at which nothing waited in its device.
    pub empty_at: Vec<Time>,
}

impl Runner {
    /// Carries packets until a command to stop.
    pub fn run(mut self) -> EmulatorReport {
        self.world.report.precedence = clock::precede();
        let (began, cpu) = (clock::monotonic_ns(), clock::thread_cpu_ns());
        self.world.wake(0);
        self.world.environment.set_timers(&mut self.net);
        if let Err(failure) = self.carry() {
            self.world.report.failure = Some(failure);
        }
        let end = self.net.now();
        self.net.flush_drops(&mut self.world);
        let mut report = std::mem::take(&mut self.world.report);
        report.counters = self.world.counters(end, &self.net);
        report.link_series = self.world.environment.take_link_series();
        report.event_times = self.world.environment.event_times();
        report.missed_events = self.world.environment.missed_events();
        report.commands = std::mem::take(&mut self.world.senders.issued);
        report.cpu_ns = clock::thread_cpu_ns() - cpu;
        report.elapsed_ns = clock::monotonic_ns() - began;
        report
    }

    fn carry(&mut self) -> Result<(), String> {
        let waiting = |error: io::Error| format!("waiting for packets: {error}");
        let mut more = false;
        loop {
            let now = self.advance();
            let left = if more { 0 } else { self.net.next_event().since(now).0 };
            let waited = self.waiter.wait(left).map_err(waiting)?;
            let woken = self.world.wake(waited.over_ns);
            for (host, empty_at) in self.empty_at.iter_mut().enumerate() {
                if waited.listened || !self.waiter.is_ready(1 + host) {
                    *empty_at = woken;
                }
            }
            if self.waiter.is_ready(0) && self.obey() {
                return Ok(());
            }
            more = false;
            for host in 0..self.empty_at.len() {
                if self.waiter.is_ready(1 + host) {
                    more |= self.read(host)?;
                }
            }
        }
    }

    /// Brings the network to the present. Each event happens at its own time, not at the time of this call: lateness
    /// does not change the model's decisions.
    fn advance(&mut self) -> Time {
        let now = self.world.look();
        self.net.run(&mut self.world, now, ALL);
        self.world.hand_over();
        now
    }

    /// Reads up to [`BURST`] packets of `host`; whether there may be more.
    fn read(&mut self, host: usize) -> Result<bool, String> {
        for _ in 0..BURST {
            let got = self.world.devices[host].read(self.world.pool.buffer());
            let got = got.map_err(|e| format!("reading from the device of {}: {e}", self.plan.hosts[host].address))?;
            // Events due meanwhile are handled first: the model's time must not go back.
            let now = self.advance();
            let Some(len) = got else {
                self.empty_at[host] = now;
                return Ok(false);
            };
            self.world.report.waited.record(now.since(self.empty_at[host]).0);
            self.admit(host, len);
        }
        Ok(true)
    }

    /// Admits the `len` bytes read from `host` to the network.
    fn admit(&mut self, host: usize, len: usize) {
        let packet = self.world.pool.packet(len);
        let Some(entry) = packet.and_then(|packet| self.table.entry(host as u32, packet)) else {
            self.world.report.unroutable += 1;
            return;
        };
        for token in self.world.pool.take(len, entry.hop, entry.source) {
            if let Err(refused) = self.net.send(token) {
                self.world.lose(refused.packet);
            }
        }
    }

    /// Handles the commands; returns true if one of them is to stop.
    fn obey(&mut self) -> bool {
        self.wake.clear();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Stop => return true,
                Command::Snapshot(to) => {
                    let now = self.advance();
                    // The asking thread may have ended.
                    let _ = to.send(self.world.counters(now, &self.net));
                }
                Command::EventTimes(to) => {
                    self.advance();
                    let _ = to.send(self.world.environment.event_times());
                }
                Command::Change { change, done } => {
                    let _ = done.send(self.change(&change));
                }
                Command::SetRoute { flow, direction, links, done } => {
                    let _ = done.send(self.set_route(flow, direction, &links));
                }
            }
        }
        false
    }

    fn change(&mut self, change: &NetworkChange) -> Result<(), RunError> {
        self.spec = change.applied_to(&self.spec)?;
        // Packets that are due before the change are handled first, by what the network was.
        let now = self.advance();
        self.world.change(now, change, &mut self.net);
        Ok(())
    }

    fn set_route(&mut self, flow: usize, direction: Direction, links: &[usize]) -> Result<(), RunError> {
        check_route_of(&self.spec, &self.plan, flow, direction, links)?;
        let routes = self.world.senders.routes[flow].expect("the plan has this flow");
        self.net.set_path(routes[direction as usize], links);
        Ok(())
    }
}
