//! Whole runs between two agents.

use crate::common::{bulk, Agent, Hosts, Plan, MS, S};
use serde_json::{json, Value};

#[track_caller]
fn number(value: &Value) -> f64 {
    match value.as_f64() {
        Some(number) => number,
        None => panic!("a number, not {value}"),
    }
}

#[test]
fn all_bytes_of_a_copy_arrive_and_both_agents_end_the_run() {
    let Some(hosts) = Hosts::new("a run between agents") else { return };
    let mut agents = hosts.agents();
    let plan = Plan::new(20 * S).flow(&bulk(Some(50_000_001))).flow(&bulk(Some(1)));
    let plan = Plan { series_interval_ns: Some(MS), ..plan };
    for ends in [Hosts::V4, Hosts::V6] {
        let plan = Plan { ends, flows: plan.flows.clone(), more: json!({}), ..plan };
        let (sent, received, events) = plan.run(&mut agents);
        let outcome = &sent["answer"]["outcome"];
        let delivered: Vec<_> = outcome["flows"].as_array().unwrap().iter().map(|f| &f["delivered_bytes"]).collect();
        assert_eq!(delivered, [50_000_001, 1], "{sent}");
        assert_eq!(outcome["notes"], json!([]));
        let took = number(&outcome["metrics"]["completion_s"]);
        assert!(took > 0.0 && took < 20.0, "{took}");
        // Full segments, and none for the token.
        let packets = number(&outcome["flows"][1]["sent_segments"]);
        assert_eq!((packets, number(&outcome["flows"][1]["delivered_packets"])), (1.0, 1.0));
        assert!(outcome["metrics"].get("dropped_packets").is_none(), "nobody counts them");
        assert_eq!(outcome["links"], json!([{"name": "a->b"}, {"name": "b->a"}]));
        // Both clocks are one.
        let path = &sent["answer"]["path"];
        let (offset, error) = (number(&path["clock_offset_s"]), number(&path["clock_error_s"]));
        assert!(offset.abs() <= error && error < 0.1, "{path}");
        assert_eq!(path["path_mtu_bytes"], 1500);
        for end in [&sent["answer"]["ends"][0], &received["answer"]["ends"][0]] {
            assert_eq!(end["flow"], "f0", "{end}");
            assert!(number(&end["path_mtu_bytes"]) == 1500.0 && number(&end["receive_buffer_bytes"]) > 0.0);
        }
        let rows: usize = events
            .iter()
            .filter(|event| event["event"] == "series")
            .map(|event| event["time_s"].as_array().unwrap().len())
            .sum();
        assert!(rows > 0 && events.iter().any(|event| event["event"] == "connected"));
    }
    let [sender, receiver] = &mut agents;
    assert_eq!((sender.end(), receiver.end()), (0, 0));
}

#[test]
fn windows_at_both_ends_are_those_that_were_asked_for_and_the_ends_prove_it() {
    let Some(hosts) = Hosts::new("a run between agents") else { return };
    hosts.sender.ip("link set wire gso_max_segs 1");
    let mut agents = hosts.agents();
    let plan = Plan { window_bytes: 65_536, ..Plan::new(300 * MS) }.flow(&bulk(None));
    let (sent, received, _) = plan.run(&mut agents);
    let (near, far) = (&sent["answer"]["ends"][0], &received["answer"]["ends"][0]);
    assert_eq!(near["congestion_control"], "reno");
    // The kernel doubles what is asked for.
    assert_eq!(far["receive_buffer_bytes"], 4 * 65_536, "{far}");
    let offered = number(&near["snd_window_max_bytes"]);
    // The kernel may set another clamp between two reads (crates/kernel/src/traffic/socket.rs), up to half the buffer.
    assert!((60_000.0..=2.1 * 65_536.0).contains(&offered), "{offered}");
    assert!(number(&near["in_flight_max_bytes"]) <= offered);
    assert!(number(&far["window_shift"]) <= 1.0, "{far}");
}

#[test]
fn a_run_of_a_fixed_time_counts_at_its_end_and_its_warm_up() {
    let Some(hosts) = Hosts::new("a run between agents") else { return };
    let mut agents = hosts.agents();
    let plan = Plan { warmup_ns: 200 * MS, ..Plan::new(500 * MS) }.flow(&bulk(None));
    let (sent, received, events) = plan.run(&mut agents);
    let flow = &sent["answer"]["outcome"]["flows"][0];
    let all = number(&flow["delivered_bytes"]);
    let measured = number(&flow["goodput_bps"]) * 0.3 / 8.0;
    assert!(measured > 0.2 * all && measured < 0.95 * all, "{measured} of {all}");
    // The receiver's kernel counts the token as well, and what came after the count.
    assert!(number(&received["answer"]["ends"][0]["received_bytes"]) >= all + 24.0);
    assert!(events.iter().any(|event| event["event"] == "progress" && number(&event["delivered_bytes"]) > 0.0));
}

#[test]
fn frames_and_mirrored_writes_are_each_accounted_for() {
    let Some(hosts) = Hosts::new("a run between agents") else { return };
    let mut agents = hosts.agents();
    // 80 Mbit/s of 1000 bytes: 10,000 a second.
    let frames = json!({"kind": "constant_rate", "frame_bytes": 1000, "rate_bps": 80_000_000, "credits": null});
    let trace = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces/tpcc-small.trace")).unwrap();
    let hex: String = trace.iter().map(|byte| format!("{byte:02x}")).collect();
    let put = agents[0].ask("put", json!({"data": hex}));
    let writes = json!({"kind": "replicate", "trace": {"path": put["answer"]["path"], "format": "auto",
                        "time_scale_e6": 4_000_000, "looped": false, "header_bytes": 48}});
    let plan = Plan::new(500 * MS).flow(&frames);
    let (sent, _, _) = plan.run(&mut agents);
    assert!(sent["answer"].is_object(), "{sent}");
    let flow = &sent["answer"]["outcome"]["flows"][0];
    // More where something held up the end of the run.
    assert!((4_000.0..20_000.0).contains(&number(&flow["messages"])), "{sent}");
    let latency = number(&flow["latency_p50_s"]);
    assert!(latency > 0.0 && latency < 2.0, "{latency}");
    // One workload over three connections.
    let plan = (0..3).fold(Plan::new(500 * MS), |plan, _| plan.flow(&writes)).striped();
    let (sent, _, _) = plan.run(&mut agents);
    let group = &sent["answer"]["outcome"]["flow_groups"][0];
    let lanes = sent["answer"]["outcome"]["flows"].as_array().unwrap();
    assert!(lanes.iter().map(|lane| number(&lane["messages"])).sum::<f64>() > 300.0, "{sent}");
    assert!(number(&group["drain_s"]) < 10.0 && number(&group["lag_max_s"]) < 5.0, "{group}");
    let plan = Plan::new(500 * MS).flow(&writes);
    let (sent, _, _) = plan.run(&mut agents);
    let flow = &sent["answer"]["outcome"]["flows"][0];
    assert!(number(&flow["messages"]) > 300.0 && number(&flow["lag_max_bytes"]) > 0.0, "{sent}");
}

#[test]
fn a_stop_ends_the_run_at_both_ends_and_the_agents_serve_on() {
    let Some(hosts) = Hosts::new("a run between agents") else { return };
    let mut agents = hosts.agents();
    let plan = Plan::new(100 * S).flow(&bulk(None));
    plan.begin(&mut agents);
    let [sender, receiver] = &mut agents;
    while number(&sender.await_event("progress")["delivered_bytes"]) == 0.0 {}
    let busy = sender.send("check", json!({}));
    let run = busy - 1;
    let stop = sender.send("stop", json!({"run": run}));
    let mut answers = vec![];
    while answers.len() < 3 {
        answers.push(sender.finish().0);
    }
    let of = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(of(busy)["error"]["kind"], "busy");
    assert_eq!(of(stop)["answer"], json!({}));
    assert_eq!(of(run)["error"]["kind"], "stopped");
    let (other, _) = receiver.finish();
    assert_eq!(other["error"]["kind"], "peer", "{other}");
    assert!(sender.ask("check", json!({}))["answer"].is_object());
    assert!(receiver.ask("check", json!({}))["answer"].is_object());
}

#[test]
fn the_death_of_either_agent_is_the_end_of_the_run_for_the_other() {
    let Some(hosts) = Hosts::new("a run between agents") else { return };
    for dies in [0, 1] {
        let mut agents = hosts.agents();
        Plan::new(100 * S).flow(&bulk(None)).begin(&mut agents);
        while number(&agents[0].await_event("progress")["delivered_bytes"]) == 0.0 {}
        agents[dies].kill();
        let (answer, _) = agents[1 - dies].finish();
        assert_eq!(answer["error"]["kind"], "peer", "{answer}");
        assert!(answer["error"]["text"].as_str().unwrap().contains("gone"), "{answer}");
        assert_eq!(agents[1 - dies].end(), 0);
    }
}

#[test]
fn an_agent_whose_front_goes_ends_the_run_at_both_ends() {
    let Some(hosts) = Hosts::new("a run between agents") else { return };
    for goes in [0, 1] {
        let mut agents = hosts.agents();
        Plan::new(100 * S).flow(&bulk(None)).begin(&mut agents);
        while number(&agents[0].await_event("progress")["delivered_bytes"]) == 0.0 {}
        assert_eq!(agents[goes].end(), 0);
        let (answer, _) = agents[1 - goes].finish();
        assert_eq!(answer["error"]["kind"], "peer", "{answer}");
    }
}

#[test]
fn a_front_that_reads_nothing_holds_up_no_run() {
    let Some(hosts) = Hosts::new("a run between agents") else { return };
    let mut agents = hosts.agents();
    // Events of progress fill the pipe and the queue many times over.
    let mut plan = (0..50).fold(Plan::new(2 * S), |plan, _| plan.flow(&bulk(None)));
    plan.more = json!({"progress_ms": 10});
    plan.begin(&mut agents);
    let [sender, receiver] = &mut agents;
    // The other end ends in time, with nobody reading here.
    let (received, _) = receiver.finish();
    assert!(received["answer"].is_object(), "{received}");
    let (sent, _) = sender.finish();
    assert!(sent["answer"].is_object(), "{sent}");
}

#[test]
fn nobody_who_listens_is_found_out_in_time() {
    let Some(hosts) = Hosts::new("a run between agents") else { return };
    let mut agents = hosts.agents();
    let mut plan = Plan::new(S).flow(&bulk(None));
    plan.more = json!({"connect_s": 0.5});
    let listening = json!({"ports": [9], "report_port": 9});
    let refused = agents[0].ask("run", plan.send(&listening));
    assert_eq!(refused["error"]["kind"], "peer", "{refused}");
    assert!(refused["error"]["text"].as_str().unwrap().contains("192.0.2.2:9"), "{refused}");
    // A host that swallows everything, as a firewall does.
    hosts.receiver.ip("link set wire down");
    let silent = agents[0].ask("run", plan.send(&listening));
    assert_eq!(silent["error"]["kind"], "peer", "{silent}");
    hosts.receiver.ip("link set wire up");
    // And a receiver to whom nobody comes.
    agents[1].send("run", plan.receive());
    let (answer, _) = agents[1].finish();
    assert_eq!(answer["error"]["kind"], "peer", "{answer}");
}

#[test]
fn a_data_port_that_a_firewall_blocks_is_named_though_another_is_open() {
    let Some(hosts) = Hosts::new("a run between agents") else { return };
    let mut agents = hosts.agents();
    let mut plan = Plan::new(1000 * S).flow(&bulk(None)).flow(&bulk(None));
    plan.more = json!({"connect_s": 2.0});
    // Other receive settings have another port.
    let mut receive = plan.receive();
    receive["flows"][1]["window_clamp_bytes"] = json!(100_000);
    agents[1].send("run", receive);
    let listening = agents[1].await_event("listening");
    let (open, blocked) = (&listening["ports"][0], &listening["ports"][1]);
    assert_ne!(open, blocked);
    hosts.receiver.ip(&format!("rule add to {} ipproto tcp sport {blocked} priority 10 blackhole", Hosts::V4[0]));
    agents[0].send("run", plan.send(&listening));
    let (sent, _) = agents[0].finish();
    assert_eq!(sent["error"]["kind"], "peer", "{sent}");
    assert!(sent["error"]["text"].as_str().unwrap().contains(&format!("to port {blocked}?")), "{sent}");
}

#[test]
fn a_port_that_is_taken_is_passed_over_and_a_range_without_any_is_an_error() {
    let Some(hosts) = Hosts::new("a run between agents") else { return };
    let mut one = Agent::start(Some(&hosts.receiver));
    let mut other = Agent::start(Some(&hosts.receiver));
    let mut plan = Plan::new(S).flow(&bulk(None));
    plan.more = json!({"ports": [7000, 7001]});
    let mut ports = vec![];
    for agent in [&mut one, &mut other] {
        agent.send("run", plan.receive());
        ports.push(agent.await_event("listening")["report_port"].clone());
    }
    assert_eq!(ports, [7000, 7001]);
    let mut third = Agent::start(Some(&hosts.receiver));
    let error = third.ask("run", plan.receive());
    assert_eq!(error["error"]["kind"], "port", "{error}");
    assert!(error["error"]["text"].as_str().unwrap().contains("7000"), "{error}");
}
