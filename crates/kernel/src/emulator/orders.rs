//! Orders to senders: written into the map in which a flow's congestion control looks on each ACK (congestion/bpf/trim.h).

use crate::clock;
use crate::plan::HostPlan;
use lab::spec::TrimSpec;
use std::os::fd::RawFd;
use units::Time;

/// BPF_MAP_UPDATE_ELEM of bpf(2), and the part of its attributes that it reads.
const UPDATE: libc::c_long = 2;

#[repr(C)]
struct Attributes {
    map: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// struct cc_ends; as in the packets, the other fields zero.
#[repr(C)]
struct Ends {
    source: u32,
    destination: u32,
    port: u16,
    own: u16,
    number: u32,
}

/// struct cc_order.
#[repr(C)]
struct Order {
    at_ns: u64,
    shorter_us: u64,
    number: u32,
    keep_ppm: u32,
    restores: u32,
    unused: u32,
}

/// An order that was given, or was to be.
#[derive(Clone, Debug)]
pub struct Given {
    /// Index of the event in the spec; behind those, of the move in the manager's ledger.
    pub event: usize,
    /// Index of the flow.
    pub flow: usize,
    /// Its number, by which it is answered.
    pub number: u32,
    /// When it was due, since the run began.
    pub due: Time,
    /// The same by CLOCK_MONOTONIC, ns: by that senders answer.
    pub due_monotonic_ns: u64,
    /// When it was given, ns.
    pub given_monotonic_ns: u64,
    /// Why nobody will hear it.
    pub refused: Option<String>,
}

/// The maps of a run and who is told by which key.
pub(super) struct Orders {
    /// By flow.
    flows: Vec<(Option<RawFd>, [u32; 2], u16)>,
}

impl Orders {
    pub fn new(plan: &HostPlan) -> Orders {
        let of = |host: usize| u32::from_ne_bytes(plan.hosts[host].address.octets());
        let flows = plan.flows.iter().map(|flow| {
            // A program chooses its ports, and its hosts are of no other flow.
            let port = if flow.program.is_some() { 0 } else { flow.port.to_be() };
            (flow.orders, [of(flow.source), of(flow.destination)], port)
        });
        Orders { flows: flows.collect() }
    }

    /// Tells the sender of `flow` to trim its window for event `event`, which was due at `due`, `due_monotonic_ns` by the clock.
    pub fn trim(&self, event: usize, flow: usize, trim: &TrimSpec, due: Time, due_monotonic_ns: u64) -> Given {
        let order = Order {
            at_ns: 0,
            shorter_us: trim.delay_ns / 1_000,
            number: number_of(event),
            // The control takes 0 for "by the RTT"; a part of less than a millionth leaves the least window just as well.
            keep_ppm: trim.keep_ppm.map_or(0, |ppm| ppm.max(1)),
            restores: 0,
            unused: 0,
        };
        self.give(event, flow, order, due, due_monotonic_ns)
    }

    /// Tells it to take back what it gave up for `event`.
    pub fn restore(&self, event: usize, flow: usize, due: Time, due_monotonic_ns: u64) -> Given {
        let restores = number_of(event);
        let order = Order { at_ns: 0, shorter_us: 0, number: restores + 1, keep_ppm: 0, restores, unused: 0 };
        self.give(event, flow, order, due, due_monotonic_ns)
    }

    fn give(&self, event: usize, flow: usize, order: Order, due: Time, due_monotonic_ns: u64) -> Given {
        let now = clock::monotonic_ns();
        let order = Order { at_ns: now, ..order };
        let number = order.number;
        let refused = match self.flows.get(flow) {
            Some(&(Some(map), [source, destination], port)) => {
                let ends = Ends { source, destination, port, own: 0, number: 0 };
                write(map, &ends, &order).err().map(|error| format!("the kernel did not take the order: {error}"))
            }
            _ => Some("its congestion control sets the window on every ACK, and is told nothing".to_owned()),
        };
        Given { event, flow, number, due, due_monotonic_ns, given_monotonic_ns: now, refused }
    }
}

/// Odd; what restores has the next even one.
fn number_of(event: usize) -> u32 {
    2 * event as u32 + 1
}

fn write(map: RawFd, ends: &Ends, order: &Order) -> std::io::Result<()> {
    let attributes = Attributes {
        map: map as u32,
        key: std::ptr::from_ref(ends) as u64,
        value: std::ptr::from_ref(order) as u64,
        flags: 0,
    };
    // SAFETY: the attributes are valid and say their size; key and value live until the call returns, and the kernel refuses a
    // map of other sizes only if it is none of ours: the Python front took it from the loaded object by name.
    let done = unsafe { libc::syscall(libc::SYS_bpf, UPDATE, &attributes, std::mem::size_of::<Attributes>()) };
    if done == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}
