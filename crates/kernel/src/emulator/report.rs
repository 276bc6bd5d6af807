//! The emulator's report: counters of the network and of the emulator itself.

use super::routers::RouterCounters;
use super::sender_commands::IssuedCommand;
use experiment::{LinkSeries, NetworkCounters};
use units::{Histogram, Time};

/// Counters of the emulated network, as its model decided.
#[derive(Clone, Debug, Default)]
pub struct CarrierCounters {
    /// Time of reading, since the run began.
    pub at: Time,
    /// Of links, background sources, hold buffers and the manager.
    pub network: NetworkCounters,
    /// Packets of each flow, of either direction, lost in the network.
    pub flow_drops: Vec<u64>,
}

/// Everything that the emulator did.
#[derive(Clone, Default)]
pub struct EmulatorReport {
    /// The network's counters at the end.
    pub counters: CarrierCounters,
    /// Empty unless the spec asks for series.
    pub link_series: LinkSeries,
    /// Delivery into the far device against the time that the model gave, ns per packet.
    pub lateness: Histogram,
    /// Upper bound of the time that packets waited in a device before the emulator read them, ns per packet.
    pub waited: Histogram,
    /// Packets that the far device did not take: the emulator's doing.
    pub refused: u64,
    /// Packets handed over joined with others.
    pub joined: u64,
    /// Work of the network's routers beside forwarding.
    pub routers: RouterCounters,
    /// Packets for which there is no route, dropped.
    pub unroutable: u64,
    /// Times that the thread could not run or wake up for 5 ms or more, for example because the host of a virtual
    /// machine gave it no CPU time.
    pub stalls: u64,
    /// Sum of these times, ns.
    pub stalled_ns: u64,
    /// CPU time of the thread, ns: that which both stacks spend on a packet while it is handed over included.
    pub cpu_ns: u64,
    /// CPU time of the thread that has a run's sockets, ns; none where a path has no run.
    pub traffic_cpu_ns: u64,
    /// Time that the thread ran, ns.
    pub elapsed_ns: u64,
    /// True if the scheduler gave it precedence over ordinary programs.
    pub precedence: bool,
    /// Reason that it ended before it was asked to.
    pub failure: Option<String>,
    /// Time of each event since the run began; None: it did not happen.
    pub event_times: Vec<Option<Time>>,
    /// Notes on events that never happened.
    pub missed_events: Vec<String>,
    /// Commands given to senders.
    pub commands: Vec<IssuedCommand>,
}
