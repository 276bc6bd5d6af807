//! A run's changes of its host are undone, however the agent ends.

use crate::common::{becomes, bulk, Agent, Hosts, Namespace, Plan, S};
use serde_json::{json, Value};
use std::fs;
use std::path::Path;

const NAME: &str = "net.ipv4.tcp_rmem";
const OTHER: &str = "4096 200000 3000000";

/// An agent that listens with a sysctl changed.
fn changed(namespace: &Namespace, plan: &Plan) -> Agent {
    let mut agent = Agent::start(Some(namespace));
    agent.send("run", plan.receive());
    let event = agent.await_event("listening");
    assert_eq!(event["event"], "listening", "{event}");
    assert_eq!(namespace.sysctl(NAME), OTHER);
    agent
}

fn plan() -> Plan {
    let mut plan = Plan::new(S).flow(&bulk(None));
    plan.more = json!({"sysctls": {NAME: OTHER}, "connect_s": 60.0});
    plan
}

/// Journals of a process.
fn journals(process: u32) -> usize {
    let Ok(listed) = fs::read_dir("/run/elephan") else { return 0 };
    listed.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("{process}-"))).count()
}

/// The guard that an agent has started.
fn guard_of(process: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let all = fs::read_dir(format!("/proc/{process}/task"))
        .unwrap()
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let all: Vec<u32> = all.chain([children]).flat_map(|text| numbers(&text)).collect();
    *all.first().expect("it has started one")
}

fn numbers(text: &str) -> Vec<u32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn a_sysctl_has_its_former_value_after_the_run_and_after_the_channel() {
    let Some(hosts) = Hosts::new("sysctls") else { return };
    let before = hosts.receiver.sysctl(NAME);
    let mut agents = hosts.agents();
    let mut plan = plan();
    plan.duration_ns = S / 10;
    let (sent, received, _) = plan.run(&mut agents);
    assert!(sent["answer"].is_object() && received["answer"].is_object(), "{sent} {received}");
    assert_eq!((hosts.sender.sysctl(NAME), hosts.receiver.sysctl(NAME)), (before.clone(), before.clone()));
    let mut agent = changed(&hosts.receiver, &plan);
    let process = agent.process.id();
    assert_eq!(agent.end(), 0);
    assert_eq!((hosts.receiver.sysctl(NAME), journals(process)), (before, 0));
}

#[test]
fn a_killed_agents_guard_restores_its_sysctls() {
    let Some(hosts) = Hosts::new("sysctls") else { return };
    let before = hosts.receiver.sysctl(NAME);
    let mut agent = changed(&hosts.receiver, &plan());
    let process = agent.process.id();
    assert_eq!(journals(process), 1);
    agent.kill();
    becomes("the guard restores it", 1000, || hosts.receiver.sysctl(NAME) == before && journals(process) == 0);
}

#[test]
fn where_the_guard_was_killed_too_the_request_clean_restores() {
    let Some(hosts) = Hosts::new("sysctls") else { return };
    let before = hosts.receiver.sysctl(NAME);
    let mut agent = changed(&hosts.receiver, &plan());
    let process = agent.process.id();
    let guard = guard_of(process);
    let pid = rustix::process::Pid::from_raw(guard as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    // Its agent lives: nothing is undone.
    let mut other = Agent::start(Some(&hosts.receiver));
    assert_eq!(other.ask("clean", json!({}))["answer"]["restored"], json!([]));
    agent.kill();
    assert_eq!(hosts.receiver.sysctl(NAME), OTHER);
    // In another namespace it is not that one's.
    let elsewhere = Agent::start(Some(&hosts.sender)).ask("clean", json!({}));
    assert_eq!(elsewhere["answer"]["restored"], json!([]), "{elsewhere}");
    let cleaned = other.ask("clean", json!({}));
    assert_eq!(cleaned["answer"]["restored"], json!([NAME]), "{cleaned}");
    assert_eq!((hosts.receiver.sysctl(NAME), journals(process)), (before, 0));
}

#[test]
fn a_value_that_somebody_else_has_set_since_stays() {
    let Some(hosts) = Hosts::new("sysctls") else { return };
    let mut agent = changed(&hosts.receiver, &plan());
    let process = agent.process.id();
    let theirs = "4096 100000 1000000";
    hosts.receiver.set_sysctl(NAME, theirs);
    agent.kill();
    becomes("the guard ends", 1000, || journals(process) == 0);
    assert_eq!(hosts.receiver.sysctl(NAME), theirs);
}

#[test]
fn two_runs_share_a_value_and_the_last_one_restores_it() {
    let Some(hosts) = Hosts::new("sysctls") else { return };
    let before = hosts.receiver.sysctl(NAME);
    for last_is_killed in [false, true] {
        let mut first = changed(&hosts.receiver, &plan());
        let mut third = Agent::start(Some(&hosts.receiver));
        let mut other = plan();
        other.more = json!({"sysctls": {NAME: "4096 111111 2222222"}});
        let busy = third.ask("run", other.receive());
        assert_eq!(busy["error"]["kind"], "busy", "{busy}");
        let mut second = changed(&hosts.receiver, &plan());
        let process = second.process.id();
        let held = &third.ask("clean", json!({}))["answer"]["held"];
        assert_eq!(held, &json!([{"process": first.process.id().to_string(), "changes": [NAME]}]));
        // Its change is the other's from here on.
        assert_eq!(first.end(), 0);
        assert_eq!(hosts.receiver.sysctl(NAME), OTHER);
        if last_is_killed {
            second.kill();
        } else {
            assert_eq!(second.end(), 0);
        }
        becomes("it is restored", 1000, || hosts.receiver.sysctl(NAME) == before && journals(process) == 0);
    }
}

#[test]
fn a_value_that_a_run_relies_on_is_held_and_a_change_by_somebody_else_is_told() {
    let Some(hosts) = Hosts::new("sysctls") else { return };
    let before = hosts.receiver.sysctl(NAME);
    let mut agents = hosts.agents();
    let mut plan = plan();
    plan.duration_ns = S / 10;
    plan.more = json!({"sysctls": {NAME: before}});
    let (sent, _, _) = plan.run(&mut agents);
    assert!(sent["answer"].is_object() && sent["answer"].get("sysctls_changed").is_none(), "{sent}");
    plan.duration_ns = 100 * S;
    plan.begin(&mut agents);
    while agents[0].await_event("progress")["delivered_bytes"] == 0 {}
    let mut third = Agent::start(Some(&hosts.receiver));
    let busy = third.ask("run", self::plan().receive());
    assert_eq!(busy["error"]["kind"], "busy", "{busy}");
    assert_eq!(hosts.receiver.sysctl(NAME), before);
    agents.iter_mut().for_each(|agent| assert_eq!(agent.end(), 0));
    let mut agents = hosts.agents();
    plan.duration_ns = 3 * S;
    plan.begin(&mut agents);
    while agents[0].await_event("progress")["delivered_bytes"] == 0 {}
    hosts.receiver.set_sysctl(NAME, OTHER);
    let [sent, received] = agents.each_mut().map(|agent| agent.finish().0);
    assert!(sent["answer"].is_object() && sent["answer"].get("sysctls_changed").is_none(), "{sent}");
    assert_eq!(received["answer"]["sysctls_changed"], json!({NAME: OTHER}), "{received}");
}

#[test]
fn a_value_that_is_refused_leaves_nothing() {
    let Some(hosts) = Hosts::new("sysctls") else { return };
    let before = hosts.receiver.sysctl(NAME);
    let mut second = Agent::start(Some(&hosts.receiver));
    let mut wrong = plan();
    wrong.more = json!({"sysctls": {NAME: OTHER, "net.ipv4.tcp_wmem": "nonsense"}});
    let refused = second.ask("run", wrong.receive());
    assert_eq!(refused["error"]["kind"], "kernel", "{refused}");
    assert_eq!(hosts.receiver.sysctl(NAME), before);
}

/// An object of the built-in algorithm for BPF; None, and the test counted as skipped, where it cannot be made.
fn object() -> Option<String> {
    let code = congestion::find("scalable").expect("built in").code().to_owned();
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        crate::skip::skipped_for_kernel("this kernel has no BTF");
        return None;
    }
    match congestion::compile_bpf(Path::new("scalable.c"), &code, None) {
        Err(congestion::CompileError::NoClang) => {
            crate::skip::skipped_for_kernel("clang is not installed (or set CLANG)");
            None
        }
        made => Some(made.expect("it compiles").bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
    }
}

fn registered(name: &str) -> bool {
    bpf::registered("elephan_").unwrap().iter().any(|one| one.name == name)
}

#[test]
fn a_control_carries_the_run_and_goes_with_it_even_when_its_agent_is_killed() {
    let Some(hosts) = Hosts::new("controls") else { return };
    let Some(object) = object() else { return };
    let mut agents = hosts.agents();
    // Names of controls are the whole machine's.
    let name = format!("elephan_t{:x}", std::process::id() & 0xffff);
    let mut plan = Plan::new(S / 5).flow(&bulk(None));
    let control = json!([{"name": name, "object": object, "label": "test", "parameters": {}}]);
    let under = |keys: &mut Value| {
        keys["controls"] = control.clone();
        keys["flows"][0]["congestion_control"] = json!(name);
    };
    let begin = |plan: &Plan, agents: &mut [Agent; 2]| {
        agents[1].send("run", plan.receive());
        let mut keys = plan.send(&agents[1].await_event("listening"));
        under(&mut keys);
        agents[0].send("run", keys);
    };
    begin(&plan, &mut agents);
    let (sent, _) = agents[0].finish();
    assert_eq!(sent["answer"]["ends"][0]["congestion_control"], json!(name), "{sent}");
    assert!(agents[1].finish().0["answer"].is_object());
    assert!(!registered(&name));
    plan.duration_ns = 100 * S;
    begin(&plan, &mut agents);
    while agents[0].await_event("progress")["delivered_bytes"] == 0 {}
    assert!(registered(&name));
    agents[0].kill();
    becomes("it goes with its agent", 1000, || !registered(&name));
}

#[test]
fn an_object_that_is_none_is_refused_and_nothing_stays() {
    let Some(hosts) = Hosts::new("controls") else { return };
    let mut agent = Agent::start(Some(&hosts.receiver));
    let mut plan = plan();
    plan.more["controls"] = json!([{"name": "elephan_none", "object": "7f454c46"}]);
    let before = hosts.receiver.sysctl(NAME);
    let refused = agent.ask("run", plan.receive());
    assert_eq!(refused["error"]["kind"], "kernel", "{refused}");
    assert_eq!((hosts.receiver.sysctl(NAME), journals(agent.process.id())), (before, 0));
}
