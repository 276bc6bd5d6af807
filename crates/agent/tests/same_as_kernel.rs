//! Two agents and the backend kernel over the same emulated path: the same goodput.

use crate::common::{able, bulk, Agent, Namespace, Plan, MS, S};
use kernel::{Clock, Emulator, EmulatorPlan, FlowPlan, HostPlan, HostSpec, RoutePlan};
use serde_json::{json, Value};
use spec::RunSpec;
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use units::Span;

const RATE_BPS: u64 = 100_000_000;
const WINDOW: u64 = 4 << 20;

struct Path {
    emulator: Emulator,
    hosts: [HostSpec; 2],
    namespaces: [Namespace; 2],
}

/// A line of 100 Mbit/s and 20 ms between two namespaces.
fn path() -> Path {
    let namespaces = [Namespace::new(), Namespace::new()];
    let hosts = [0, 1].map(|node: u8| HostSpec {
        namespace: format!("/run/netns/{}", namespaces[usize::from(node)].name),
        device: "path".into(),
        address: Ipv4Addr::new(198, 18, 2, node + 1),
        ipv6_address: None,
        node: node.into(),
        mtu_bytes: 1500,
    });
    let emulator = Emulator::open(&hosts).expect("devices can be made here");
    for (namespace, host) in namespaces.iter().zip(&hosts) {
        namespace.ip(&format!("address add {}/32 dev path", host.address));
        namespace.ip("link set path mtu 1500 up");
        namespace.ip("route add 198.18.0.0/15 dev path");
    }
    Path { emulator, hosts, namespaces }
}

fn host_plan(hosts: &[HostSpec; 2], with_flow: bool) -> HostPlan {
    let flow = FlowPlan {
        source: 0,
        destination: 1,
        port: 10_000,
        ipv6: false,
        congestion_control: "reno".into(),
        window_clamp_bytes: WINDOW,
        receive_buffer_bytes: Some(2 * WINDOW),
        send_buffer_bytes: None,
        max_segment_bytes: None,
        pacing: false,
        max_pacing_bps: None,
        rto_max_ms: None,
        commands: None,
        program: None,
    };
    let route = |from, to, link| RoutePlan { from, to, links: vec![link] };
    HostPlan {
        hosts: hosts.to_vec(),
        flows: if with_flow { vec![flow] } else { vec![] },
        routes: vec![route(0, 1, 0), route(1, 0, 1)],
        routers: vec![],
        emulator: EmulatorPlan::default(),
    }
}

fn spec() -> (Plan, Value) {
    let plan = Plan { window_bytes: WINDOW, warmup_ns: S, ends: ["198.18.2.1", "198.18.2.2"], ..Plan::new(3 * S) };
    let plan = plan.flow(&bulk(None));
    let mut spec = plan.spec();
    for link in spec["links"].as_array_mut().unwrap() {
        link["rate_bps"] = json!(RATE_BPS);
        link["delay_ns"] = json!(10 * MS);
        // A product of rate and round trip.
        link["queue"]["limit_bytes"] = json!(250_000);
    }
    (plan, spec)
}

/// Goodput over the agents and over the backend kernel, bit/s; and the round trip that the agents found, s.
fn both(plan: &Plan, json: &Value) -> (f64, f64, f64) {
    let run: RunSpec = serde_json::from_value(json.clone()).unwrap();
    let mut path_of_kernel = path();
    let hosts = host_plan(&path_of_kernel.hosts, true);
    let (outcome, _) = kernel::run(&run, &hosts, &mut path_of_kernel.emulator, &mut |_, _| ControlFlow::Continue(()))
        .expect("the run ends");
    let Some(experiment::Metric::Real(of_kernel)) = outcome.metrics.get("goodput_bps").cloned() else {
        panic!("a run has a goodput")
    };
    drop(path_of_kernel);

    let mut of_agents = path();
    let valid = experiment::ValidRun::new(&run).unwrap();
    let progress = run.flows.iter().map(|_| 0.into()).collect();
    let carried = host_plan(&of_agents.hosts, false);
    of_agents.emulator.start(valid, &carried, Clock::starting_in(Span::ZERO), progress).unwrap();
    let [sends, receives] = &of_agents.namespaces;
    let mut agents = [Agent::start(Some(sends)), Agent::start(Some(receives))];
    let spec_of = |mut keys: Value| {
        keys["spec"] = json.clone();
        keys
    };
    agents[1].send("run", spec_of(plan.receive()));
    let listening = agents[1].await_event("listening");
    agents[0].send("run", spec_of(plan.send(&listening)));
    let (sent, _) = agents[0].finish();
    let of_hosts = sent["answer"]["outcome"]["metrics"]["goodput_bps"].as_f64().unwrap_or_else(|| panic!("{sent}"));
    (of_hosts, of_kernel, sent["answer"]["path"]["rtt_min_s"].as_f64().unwrap())
}

#[test]
fn two_agents_get_the_goodput_of_the_kernel_backend_over_the_same_path() {
    if !able("agents over an emulated path") {
        return;
    }
    let (plan, json) = spec();
    // Both take real time, and something else may hold up one of them: one undisturbed pair decides.
    let mut pairs = vec![];
    while pairs.len() < 6 {
        pairs.push(both(&plan, &json));
        if agrees(pairs[pairs.len() - 1]) {
            return;
        }
    }
    panic!("agents and kernel, bit/s, and RTT, s: {pairs:?}");
}

/// The backends are to agree within 3 %, and to fill the line of 20 ms.
fn agrees((of_hosts, of_kernel, rtt_s): (f64, f64, f64)) -> bool {
    (of_hosts / of_kernel - 1.0).abs() < 0.03 && of_hosts > 0.9 * RATE_BPS as f64 && (0.020..0.040).contains(&rtt_s)
}
