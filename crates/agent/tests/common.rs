//! An agent as a process, alone or in a network namespace, and specifications of runs.

use crate::skip::skipped_for_kernel;
use serde_json::{json, Value};
use spec::{TransportSpec, FORMAT};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;

/// The secret of the tests' runs.
pub const TOKEN: &str = "000102030405060708090a0b0c0d0e0f";

/// A running agent.
pub struct Agent {
    pub process: Child,
    pub stdin: Option<ChildStdin>,
    pub stdout: ChildStdout,
    number: u64,
}

impl Agent {
    /// Starts one in the namespace, None: here; and greets it.
    pub fn start(namespace: Option<&Namespace>) -> Agent {
        let mut agent = Agent::start_silently(namespace);
        let hello = agent.ask("hello", json!({"protocol": 3}));
        assert_eq!(hello["answer"]["protocol"], 3, "{hello}");
        agent
    }

    /// Starts one, and says nothing.
    pub fn start_silently(namespace: Option<&Namespace>) -> Agent {
        // Another build of it, such as a static one.
        let other = std::env::var("ELEPHAN_AGENT");
        let binary = other.as_deref().unwrap_or(env!("CARGO_BIN_EXE_elephan-agent"));
        let mut command = match namespace {
            None => Command::new(binary),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &namespace.name, binary]);
                command
            }
        };
        // Folder of what copies leave with their user.
        command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the agent starts");
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take().expect("it is a pipe"));
        Agent { process, stdin, stdout, number: 0 }
    }

    /// Sends a request; returns its number.
    pub fn send(&mut self, name: &str, keys: Value) -> u64 {
        self.number += 1;
        let mut message = json!({"id": self.number, "request": name});
        message.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        self.send_bytes(&frame(message.to_string().as_bytes()));
        self.number
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).expect("the agent reads");
    }

    /// The next frame; None at the end.
    pub fn receive(&mut self) -> Option<Value> {
        let mut length = [0; 4];
        self.stdout.read_exact(&mut length).ok()?;
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.stdout.read_exact(&mut bytes).ok()?;
        Some(serde_json::from_slice(&bytes).expect("a frame is JSON"))
    }

    pub fn ask(&mut self, name: &str, keys: Value) -> Value {
        self.send(name, keys);
        self.receive().expect("an answer comes")
    }

    /// The next event `name` or, where the request ends before it, the answer.
    pub fn await_event(&mut self, name: &str) -> Value {
        loop {
            let message = self.receive().expect("the agent goes on");
            if message["event"] == name || message.get("event").is_none() {
                return message;
            }
        }
    }

    /// The answer or error, and the events before it.
    pub fn finish(&mut self) -> (Value, Vec<Value>) {
        let mut events = vec![];
        loop {
            let message = self.receive().expect("the agent goes on");
            if message.get("event").is_none() {
                return (message, events);
            }
            events.push(message);
        }
    }

    /// The end of its input, and its exit code.
    pub fn end(&mut self) -> i32 {
        drop(self.stdin.take());
        self.process.wait().expect("it ends").code().expect("no signal ends it")
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut frame = (bytes.len() as u32).to_be_bytes().to_vec();
    frame.extend(bytes);
    frame
}

/// A named network namespace, gone when dropped.
pub struct Namespace {
    pub name: String,
}

static NAMESPACES: AtomicU32 = AtomicU32::new(0);

impl Namespace {
    pub fn new() -> Namespace {
        let number = NAMESPACES.fetch_add(1, Ordering::Relaxed);
        let namespace = Namespace { name: format!("eat{}_{number}", std::process::id()) };
        ip(&format!("netns add {}", namespace.name));
        namespace.ip("link set lo up");
        namespace
    }

    /// A TCP connection from here, made on a thread that enters it.
    pub fn stream(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        let file = std::fs::File::open(format!("/run/netns/{}", self.name)).unwrap();
        let connect = move || {
            let network = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), network).unwrap();
            TcpStream::connect(to)
        };
        std::thread::spawn(connect).join().unwrap()
    }

    pub fn ip(&self, arguments: &str) {
        ip(&format!("-n {} {arguments}", self.name));
    }

    /// Sets a sysctl there, as somebody else would.
    pub fn set_sysctl(&self, name: &str, value: &str) {
        let set = ["netns", "exec", &self.name, "sysctl", "-qw", &format!("{name}={value}")];
        assert!(Command::new("ip").args(set).status().unwrap().success());
    }

    /// A sysctl there.
    pub fn sysctl(&self, name: &str) -> String {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let output = Command::new("ip").args(["netns", "exec", &self.name, "cat", &path]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

pub fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().expect("ip runs");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Two hosts with a cable between them, IPv4 and IPv6.
pub struct Hosts {
    pub sender: Namespace,
    pub receiver: Namespace,
}

impl Hosts {
    pub const V4: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
    pub const V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];

    /// None, and the test counted as skipped, where they cannot be made.
    pub fn new(what: &str) -> Option<Hosts> {
        if !able(what) {
            return None;
        }
        let hosts = Hosts { sender: Namespace::new(), receiver: Namespace::new() };
        let (one, other) = (&hosts.sender.name, &hosts.receiver.name);
        let [mac, other_mac] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];
        let peer = format!("peer name wire address {other_mac} netns {other}");
        hosts.sender.ip(&format!("link add wire address {mac} type veth {peer}"));
        let addresses = Self::V4.into_iter().zip(Self::V6);
        for (name, (v4, v6)) in [one, other].into_iter().zip(addresses) {
            ip(&format!("-n {name} address add {v4}/24 dev wire"));
            ip(&format!("-n {name} address add {v6}/64 dev wire nodad"));
            ip(&format!("-n {name} link set wire up"));
        }
        // Neighbours are known from the start: the first question for one may be lost while the cable comes up.
        for (name, to, mac) in [(one, 1, other_mac), (other, 0, mac)] {
            for address in [Self::V4[to], Self::V6[to]] {
                ip(&format!("-n {name} neighbour replace {address} lladdr {mac} dev wire nud permanent"));
            }
        }
        Some(hosts)
    }

    /// An agent at each end: sender, receiver.
    pub fn agents(&self) -> [Agent; 2] {
        [Agent::start(Some(&self.sender)), Agent::start(Some(&self.receiver))]
    }
}

/// Returns true if namespaces can be made here; if not, the test is counted as skipped.
pub fn able(what: &str) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let (net_admin, sys_admin) = (1 << 12, 1 << 21);
    if bits & net_admin == 0 || bits & sys_admin == 0 {
        skipped_for_kernel(&format!("{what}: needs root with CAP_SYS_ADMIN and CAP_NET_ADMIN"));
        return false;
    }
    if Command::new("ip").arg("-V").output().is_err() {
        skipped_for_kernel(&format!("{what}: the program ip (iproute2) is not installed"));
        return false;
    }
    true
}

/// A run over a line of 10 Gbit/s that is only expected: the real path is what it is.
pub struct Plan {
    pub duration_ns: u64,
    pub warmup_ns: u64,
    pub series_interval_ns: Option<u64>,
    pub flows: Vec<Value>,
    pub window_bytes: u64,
    pub ends: [&'static str; 2],
    pub more: Value,
}

impl Plan {
    pub fn new(duration_ns: u64) -> Plan {
        let (flows, more) = (vec![], json!({}));
        let (warmup_ns, series_interval_ns) = (0, None);
        Plan { duration_ns, warmup_ns, series_interval_ns, flows, window_bytes: 4 << 20, ends: Hosts::V4, more }
    }

    pub fn flow(mut self, workload: &Value) -> Plan {
        let transport = TransportSpec { window_bytes: self.window_bytes, ..TransportSpec::default() };
        self.flows.push(json!({
            "name": format!("f{}", self.flows.len()), "group": 0, "source": 0, "destination": 1, "route": [0],
            "return_route": [1], "transport": transport, "start_ns": 0, "stop_ns": null, "workload": workload,
        }));
        self
    }

    /// All flows are one workload's connections.
    pub fn striped(mut self) -> Plan {
        for flow in &mut self.flows {
            flow["distribution"] = json!("striped");
        }
        self
    }

    pub fn spec(&self) -> Value {
        let link = |name: &str, from: usize, to: usize| {
            json!({"name": name, "from": from, "to": to, "rate_bps": 10_000_000_000u64, "delay_ns": 0,
                   "queue": {"kind": "drop_tail", "limit_bytes": 1_000_000, "limit_packets": null},
                   "loss": {"kind": "none"}, "jitter": null})
        };
        json!({
            "format": FORMAT, "seed": 1, "duration_ns": self.duration_ns, "stop_when_done": true,
            "nodes": ["a", "b"], "links": [link("a->b", 0, 1), link("b->a", 1, 0)], "flows": self.flows,
            "background": [], "events": [],
            "measure": {"series_interval_ns": self.series_interval_ns, "warmup_ns": self.warmup_ns, "pcap": null,
                        "pcap_node": 0, "pcap_packets": null},
        })
    }

    fn keys(&self, role: &str, flows: &[Value]) -> Value {
        let [sender, receiver] = self.ends;
        let (local, peer) = if role == "send" { (sender, receiver) } else { (receiver, sender) };
        let mut keys = json!({
            "role": role, "spec": self.spec(), "local": local, "peer": peer, "token": TOKEN, "flows": flows,
            "progress_ms": 20,
        });
        keys.as_object_mut().unwrap().extend(self.more.as_object().unwrap().clone());
        keys
    }

    fn sockets(&self) -> Value {
        json!({"congestion_control": "reno", "window_clamp_bytes": self.window_bytes,
               "receive_buffer_bytes": 2 * self.window_bytes})
    }

    /// Keys of the receiving agent's `run`.
    pub fn receive(&self) -> Value {
        self.keys("receive", &vec![self.sockets(); self.flows.len()])
    }

    /// Keys of the sending agent's `run`, after the receiving one's event `listening`.
    pub fn send(&self, listening: &Value) -> Value {
        let ports = listening["ports"].as_array().unwrap_or_else(|| panic!("{listening}"));
        let with_port = |port: &Value| {
            let mut flow = self.sockets();
            flow["port"] = port.clone();
            flow
        };
        let mut keys = self.keys("send", &ports.iter().map(with_port).collect::<Vec<_>>());
        keys["report_port"] = listening["report_port"].clone();
        keys
    }

    /// Begins the run at both ends.
    pub fn begin(&self, [sender, receiver]: &mut [Agent; 2]) {
        receiver.send("run", self.receive());
        let listening = receiver.await_event("listening");
        sender.send("run", self.send(&listening));
    }

    /// The whole run: answers of the sending and of the receiving agent, and the sender's events.
    pub fn run(&self, agents: &mut [Agent; 2]) -> (Value, Value, Vec<Value>) {
        self.begin(agents);
        let (sent, events) = agents[0].finish();
        let (received, _) = agents[1].finish();
        (sent, received, events)
    }
}

/// Waits until it holds, for so many hundredths of a second.
pub fn becomes(what: &str, hundredths: u32, holds: impl Fn() -> bool) {
    for _ in 0..hundredths {
        if holds() {
            return;
        }
        let _ = rustix::thread::nanosleep(&rustix::thread::Timespec { tv_sec: 0, tv_nsec: 10_000_000 });
    }
    panic!("{what}");
}

pub fn bulk(bytes: Option<u64>) -> Value {
    json!({"kind": "bulk", "bytes": bytes})
}
