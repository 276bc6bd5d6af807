//! Commands to senders: written into the map that a flow's congestion control reads on each ACK
//! (congestion/bpf/cwnd_reduction.h).

use crate::clock;
use crate::plan::HostPlan;
use bpf::Map;
use experiment::{AddressedCommand, Preparation, SenderCommand};
use std::collections::{BTreeMap, BTreeSet};
use units::Time;

/// struct cc_ends; as in the packets, the other fields zero.
struct Ends {
    source: u32,
    destination: u32,
    port: u16,
}

impl Ends {
    /// Bytes of struct cc_ends; in an command the sender's port and the number are 0.
    fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.source.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.destination.to_ne_bytes());
        bytes[8..10].copy_from_slice(&self.port.to_ne_bytes());
        bytes
    }
}

/// struct cc_command.
struct Command {
    at_ns: u64,
    shorter_us: u64,
    number: u32,
    keep_ppm: u32,
    restores: u32,
}

impl Command {
    /// Its bytes; the last four are unused.
    fn bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.at_ns.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.shorter_us.to_ne_bytes());
        for (at, word) in [(16, self.number), (20, self.keep_ppm), (24, self.restores)] {
            bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// A command that was given, or was to be.
#[derive(Clone, Debug)]
pub struct IssuedCommand {
    /// Index of the event in the spec; behind those, of the move in the manager's move log.
    pub event: usize,
    /// Index of the flow.
    pub flow: usize,
    /// Its number, by which it is answered.
    pub number: u32,
    /// Time at which it was due, since the run began.
    pub due: Time,
    /// The same by CLOCK_MONOTONIC, ns: by that senders answer.
    pub due_monotonic_ns: u64,
    /// Time at which it was given, ns.
    pub given_monotonic_ns: u64,
    /// Reason that it could not be delivered.
    pub refused: Option<String>,
}

/// The maps of a run, and the keys of its senders.
pub(super) struct CommandMaps {
    /// By number; where one cannot be opened, why not.
    maps: BTreeMap<u32, Result<Map, bpf::Error>>,
    /// By flow: the number of its map and its ends.
    flows: Vec<(Option<u32>, Ends)>,
}

impl CommandMaps {
    pub fn new(plan: &HostPlan) -> CommandMaps {
        let of = |host: usize| u32::from_ne_bytes(plan.hosts[host].address.octets());
        let flows = plan.flows.iter().map(|flow| {
            // A program chooses its ports, and its hosts are of no other flow.
            let port = if flow.program.is_some() { 0 } else { flow.port.to_be() };
            (flow.commands, Ends { source: of(flow.source), destination: of(flow.destination), port })
        });
        // Opened here, one for all flows of a control, so that an command is one system call.
        let numbers: BTreeSet<u32> = plan.flows.iter().filter_map(|flow| flow.commands).collect();
        let maps = numbers.into_iter().map(|number| (number, Map::open(number))).collect();
        CommandMaps { maps, flows: flows.collect() }
    }

    /// Gives a command, which was due at `due`, `due_monotonic_ns` by the clock. `number`: its move, events first, then
    /// the entries of the manager's log. None: the hosts need no command.
    pub fn give(
        &self,
        addressed: &AddressedCommand,
        number: usize,
        due: Time,
        due_monotonic_ns: u64,
    ) -> Option<IssuedCommand> {
        let command = match &addressed.command {
            // The hosts have their reordering tolerance from the start.
            SenderCommand::Prepare(Preparation { cwnd_reduction: None, .. }) => return None,
            SenderCommand::Prepare(Preparation { cwnd_reduction: Some(reduction), .. }) => Command {
                at_ns: 0,
                shorter_us: reduction.delay_ns / 1_000,
                number: number_of(number),
                // The control takes 0 for "by the RTT"; a part of less than a millionth leaves the least window just as
                // well.
                keep_ppm: reduction.cwnd_fraction_ppm.map_or(0, |ppm| ppm.max(1)),
                restores: 0,
            },
            SenderCommand::Restore => {
                let restores = number_of(number);
                Command { at_ns: 0, shorter_us: 0, number: restores + 1, keep_ppm: 0, restores }
            }
        };
        Some(self.write(number, addressed.flow, command, due, due_monotonic_ns))
    }

    fn write(&self, event: usize, flow: usize, command: Command, due: Time, due_monotonic_ns: u64) -> IssuedCommand {
        let now = clock::monotonic_ns();
        let command = Command { at_ns: now, ..command };
        let number = command.number;
        let to = self.flows.get(flow).and_then(|(map, ends)| Some((self.maps.get(map.as_ref()?)?, ends)));
        let refused = match to {
            Some((Ok(map), ends)) => map.update(&ends.bytes(), &command.bytes()).err().map(|error| not_taken(&error)),
            Some((Err(error), _)) => Some(not_taken(error)),
            None => Some("its congestion control sets the window on every ACK, and gets no command".to_owned()),
        };
        IssuedCommand { event, flow, number, due, due_monotonic_ns, given_monotonic_ns: now, refused }
    }
}

/// Odd; what restores has the next even one.
fn number_of(event: usize) -> u32 {
    2 * event as u32 + 1
}

fn not_taken(error: &bpf::Error) -> String {
    format!("the kernel did not take the command: {error}")
}
