//! Helpers for tests on the running kernel: specs, and network namespaces without a name, which end with their
//! processes.

use crate::plan::{EmulatorPlan, FlowPlan, HostPlan, HostSpec};
use crate::skip::skipped_for_kernel;
use serde_json::{json, Value};
use spec::{RunSpec, TransportSpec, FORMAT};
use std::process::Command;
use std::sync::mpsc;
use std::thread::JoinHandle;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000_000_000;

/// A network namespace that lives as long as this, held by a thread.
pub(crate) struct Namespace {
    pub path: String,
    /// Arguments of `ip`, and where to say that it is done.
    commands: Option<mpsc::Sender<(String, mpsc::Sender<()>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Namespace {
    pub fn new() -> Namespace {
        let (commands, received) = mpsc::channel::<(String, mpsc::Sender<()>)>();
        let (ids, its_id) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            // SAFETY: plain system calls on this thread, which ends with the namespace.
            let (made, id) = unsafe { (libc::unshare(libc::CLONE_NEWNET), libc::gettid()) };
            assert_eq!(made, 0, "unshare: {}", std::io::Error::last_os_error());
            ids.send(id).unwrap();
            for (arguments, done) in received {
                // A child begins in the namespace of the thread that started it.
                let output = Command::new("ip").args(arguments.split_whitespace()).output().expect("ip runs");
                assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
                done.send(()).unwrap();
            }
        });
        let id = its_id.recv().expect("the thread has its namespace");
        Namespace { path: format!("/proc/self/task/{id}/ns/net"), commands: Some(commands), thread: Some(thread) }
    }

    /// Runs `ip` there.
    pub fn ip(&self, arguments: &str) {
        let (done, is_done) = mpsc::channel();
        self.commands.as_ref().unwrap().send((arguments.to_owned(), done)).unwrap();
        is_done.recv().expect("ip succeeds");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.commands = None;
        let _ = self.thread.take().unwrap().join();
    }
}

/// Returns true if namespaces and devices can be made here; if not, the test is counted as skipped.
pub(crate) fn able(what: &str) -> bool {
    let missing = missing();
    if let Some(missing) = missing {
        skipped_for_kernel(&format!("{what}: {missing}"));
    }
    missing.is_none()
}

fn missing() -> Option<&'static str> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let (net_admin, sys_admin) = (1 << 12, 1 << 21);
    if bits & net_admin == 0 || bits & sys_admin == 0 {
        return Some("needs root with CAP_SYS_ADMIN and CAP_NET_ADMIN");
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return Some("the program ip (iproute2) is not installed");
    }
    (!std::path::Path::new("/dev/net/tun").exists()).then_some("there is no /dev/net/tun")
}

/// Two hosts and a line between them, as the Python front would describe them.
pub(crate) struct Line {
    pub rate_bps: u64,
    pub rtt_ns: u64,
    pub duration_ns: u64,
    pub loss: Value,
    /// Of the way forward; null: none.
    pub policer: Value,
    pub window_bytes: u64,
    pub warmup_ns: u64,
    pub series_interval_ns: Option<u64>,
    pub stop_when_done: bool,
    pub flows: Vec<Value>,
    pub events: Vec<Value>,
}

impl Line {
    pub fn new(rate_bps: u64, rtt_ns: u64, duration_ns: u64) -> Line {
        let loss = json!({"kind": "none"});
        let (flows, events) = (vec![], vec![]);
        Line {
            rate_bps,
            rtt_ns,
            duration_ns,
            loss,
            policer: Value::Null,
            window_bytes: 4 << 20,
            warmup_ns: 0,
            series_interval_ns: None,
            stop_when_done: false,
            flows,
            events,
        }
    }

    pub fn flow(mut self, workload: Value) -> Line {
        let transport = TransportSpec { window_bytes: self.window_bytes, ..TransportSpec::default() };
        let name = format!("f{}", self.flows.len());
        self.flows.push(json!({
            "name": name, "group": 0, "source": 0, "destination": 1, "route": [0], "return_route": [1],
            "transport": transport, "start_ns": 0, "stop_ns": null, "workload": workload,
        }));
        self
    }

    /// `connections` that share `workload`, opened `stagger_ns` after one another.
    pub fn striped(self, connections: u64, stagger_ns: u64, workload: &Value) -> Line {
        (0..connections).fold(self, |line, index| {
            let mut line = line.flow(workload.clone());
            let flow = line.flows.last_mut().expect("it was just added");
            flow["start_ns"] = json!(index * stagger_ns);
            flow["distribution"] = json!("striped");
            line
        })
    }

    pub fn spec(&self) -> RunSpec {
        // A product of rate and RTT, 32 packets at least.
        let limit = (self.rate_bps / 8 * (self.rtt_ns / MS) / 1000).max(48_000);
        let link = |name: &str, from: usize, to: usize, loss: &Value| {
            json!({"name": name, "from": from, "to": to, "rate_bps": self.rate_bps, "delay_ns": self.rtt_ns / 2,
                   "queue": {"kind": "drop_tail", "limit_bytes": limit, "limit_packets": null}, "loss": loss,
                   "jitter": null})
        };
        let mut forward = link("a->b", 0, 1, &self.loss);
        if !self.policer.is_null() {
            forward["policer"] = self.policer.clone();
        }
        let spec = json!({
            "format": FORMAT, "seed": 1, "duration_ns": self.duration_ns, "stop_when_done": self.stop_when_done,
            "nodes": ["a", "b"],
            "links": [forward, link("b->a", 1, 0, &json!({"kind": "none"}))],
            "flows": self.flows, "background": [], "events": self.events,
            "measure": {"series_interval_ns": self.series_interval_ns, "warmup_ns": self.warmup_ns,
                        "pcap": null, "pcap_node": 0, "pcap_packets": null},
        });
        serde_json::from_value(spec).expect("the test's spec parses")
    }

    /// Every flow from the first of `hosts` to the second, under `congestion`.
    pub fn plan(&self, hosts: [HostSpec; 2], congestion: &str) -> HostPlan {
        let flow = |index: usize| FlowPlan {
            source: 0,
            destination: 1,
            port: 10_000 + index as u16,
            ipv6: false,
            congestion_control: congestion.to_owned(),
            window_clamp_bytes: self.window_bytes,
            // The kernel takes twice of it and offers at least half of that as a window.
            receive_buffer_bytes: Some(self.window_bytes),
            send_buffer_bytes: None,
            max_segment_bytes: None,
            pacing: false,
            max_pacing_bps: None,
            rto_max_ms: None,
            commands: None,
            program: None,
        };
        let flows = (0..self.flows.len()).map(flow).collect();
        HostPlan { hosts: hosts.to_vec(), flows, routes: vec![], routers: vec![], emulator: EmulatorPlan::default() }
    }
}

pub(crate) fn bulk(bytes: Option<u64>) -> Value {
    json!({"kind": "bulk", "bytes": bytes})
}
