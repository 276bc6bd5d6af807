//! The hosts' part of a run beside the spec: hosts, ports, socket settings; JSON from the Python front.

use crate::socket_plan::SocketPlan;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host: a network namespace with one TUN device, standing directly at a node of the spec.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// File of the namespace, such as /run/netns/NAME.
    pub namespace: String,
    /// Name of the device to make there, at most 15 bytes.
    pub device: String,
    /// Address of the device.
    pub address: Ipv4Addr,
    /// Its IPv6 address; null = none.
    #[serde(default)]
    pub ipv6_address: Option<Ipv6Addr>,
    /// Index of the node of the spec at which it stands.
    pub node: usize,
    /// MTU of the device, bytes.
    pub mtu_bytes: u32,
}

impl HostSpec {
    /// The address that flows over IPv6, or over IPv4, have.
    pub fn address_of(&self, is_ipv6: bool) -> IpAddr {
        match self.ipv6_address {
            Some(address) if is_ipv6 => address.into(),
            _ => self.address.into(),
        }
    }
}

/// A flow of the spec as sockets of this machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowPlan {
    /// Host of the sender, index into [`HostPlan::hosts`].
    pub source: usize,
    /// Host of the receiver.
    pub destination: usize,
    /// Port that the receiver listens on, one per flow: it tells flows apart.
    pub port: u16,
    /// Between the IPv6 addresses of its hosts.
    #[serde(default)]
    pub ipv6: bool,
    /// `TCP_CONGESTION` of the sender.
    pub congestion_control: String,
    /// `TCP_WINDOW_CLAMP` of the receiver, bytes.
    pub window_clamp_bytes: u64,
    /// `SO_RCVBUFFORCE` before listening, bytes; null = the kernel's autotuning.
    pub receive_buffer_bytes: Option<u64>,
    /// `SO_SNDBUFFORCE`, bytes; null = the kernel's autotuning.
    pub send_buffer_bytes: Option<u64>,
    /// `TCP_MAXSEG`, bytes; null = from the MTU.
    pub max_segment_bytes: Option<u32>,
    /// Paced by the kernel always.
    pub pacing: bool,
    /// Most payload that it sends, bit/s, paced; null = no limit.
    #[serde(default)]
    pub max_pacing_bps: Option<u64>,
    /// `TCP_RTO_MAX_MS`; null = the kernel's.
    pub rto_max_ms: Option<u32>,
    /// Number of the BPF map in which the sender's congestion control finds commands (congestion/bpf/cwnd_reduction.h);
    /// null = it has none.
    #[serde(default)]
    pub commands: Option<u32>,
    /// The program that makes the connections, in place of sockets with these options. No other flow uses its hosts:
    /// all their packets are the flow's, on any port.
    #[serde(default)]
    pub program: Option<ProgramPlan>,
}

impl FlowPlan {
    /// Its socket options.
    pub fn sockets(&self) -> SocketPlan {
        SocketPlan {
            congestion_control: Some(self.congestion_control.clone()),
            window_clamp_bytes: Some(self.window_clamp_bytes),
            receive_buffer_bytes: self.receive_buffer_bytes,
            send_buffer_bytes: self.send_buffer_bytes,
            max_segment_bytes: self.max_segment_bytes,
            pacing: self.pacing,
            max_pacing_bps: self.max_pacing_bps,
            rto_max_ms: self.rto_max_ms,
        }
    }
}

/// A real program as the traffic of a flow: a server and a client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramPlan {
    /// Name for messages.
    pub name: String,
    /// Command line of the server, which listens on the flow's port until it is ended.
    pub server: Vec<String>,
    /// Command line of the client, which ends when everything has been sent.
    pub client: Vec<String>,
    /// True if the client, at the destination, fetches from the server at the source; false if the client, at the
    /// source, sends to the server at the destination.
    #[serde(default)]
    pub fetches: bool,
    /// Connections that are to carry data at once.
    #[serde(default = "one")]
    pub streams: usize,
    /// True if the client ends well only after the server has confirmed all data.
    pub confirmed: bool,
    /// True if the data goes over UDP: the server, at the destination, is heard when it has the flow's port, and has
    /// received what it has written.
    #[serde(default)]
    pub over_udp: bool,
    /// Folder in which both start, and for their output.
    pub folder: String,
}

fn one() -> usize {
    1
}

/// Way of packets that belong to no flow of the spec (ping, other programs).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoutePlan {
    /// Host that sends, index into [`HostPlan::hosts`].
    pub from: usize,
    /// Host that receives.
    pub to: usize,
    /// Links of the spec, in order.
    pub links: Vec<usize>,
}

/// A router: a node of the spec at which packets leave one link for the next.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterPlan {
    /// Index of the node.
    pub node: usize,
    /// Source of its ICMP messages.
    pub address: Ipv4Addr,
    /// Source of its ICMPv6 messages; null = it sends none.
    #[serde(default)]
    pub ipv6_address: Option<Ipv6Addr>,
}

/// Condition for handing packets that are due together to a host as one, as a network card with GRO does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// Each packet by itself: the receiver acknowledges as it does on a line without such a card.
    Never,
    /// Only packets that are late already.
    #[default]
    Late,
    /// Always.
    Due,
}

/// Knobs of the emulator.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmulatorPlan {
    /// Watch the clock shortly before a packet is due, within bounds, instead of relying on the timer alone.
    pub busy_poll: bool,
    /// See [`Join`].
    pub join: Join,
}

impl Default for EmulatorPlan {
    fn default() -> EmulatorPlan {
        EmulatorPlan { busy_poll: true, join: Join::Late }
    }
}

/// Hosts, flows and default routes of a run on this machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPlan {
    /// All hosts.
    pub hosts: Vec<HostSpec>,
    /// One entry per flow of the spec, in its order; empty when the spec's flows are not run.
    pub flows: Vec<FlowPlan>,
    /// Routes by pair of hosts.
    pub routes: Vec<RoutePlan>,
    /// Routers; at any other node packets pass with the time to live that they have.
    #[serde(default)]
    pub routers: Vec<RouterPlan>,
    /// Knobs.
    #[serde(default)]
    pub emulator: EmulatorPlan,
}
