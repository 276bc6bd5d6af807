//! Path tests between agents: one reflects, the other measures.

use crate::common::Hosts;
use serde_json::json;

const KEY: &str = "000102030405060708090a0b0c0d0e0f";

/// Most memory that an agent may take at a far end, kB.
const PEAK_KB_MAX: u64 = 15 * 1024;

fn peak_kb(pid: u64) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn an_agent_reflects_what_shows_the_key_and_another_measures_in_little_memory() {
    let Some(hosts) = Hosts::new("path tests") else { return };
    let [mut measures, mut reflects] = hosts.agents();
    for other in [Hosts::V4[1], Hosts::V6[1]] {
        let number = reflects.send("reflect", json!({"local": other, "key": KEY}));
        let port = reflects.await_event("listening")["port"].as_u64().unwrap();
        let towards = if other.contains(':') { format!("[{other}]:{port}") } else { format!("{other}:{port}") };
        let test = json!({"test": "stamp", "towards": towards, "key": KEY, "count": 20, "interval_ns": 2_000_000});
        let found = measures.ask("measure", test.clone());
        assert_eq!(
            (&found["answer"]["counts"]["packets"], &found["answer"]["counts"]["lost"]),
            (&json!(20), &json!(0))
        );
        let mut stranger = test;
        stranger["key"] = json!("ffffffffffffffffffffffffffffffff");
        stranger["count"] = json!(2);
        stranger["timeout_ns"] = json!(50_000_000);
        let found = measures.ask("measure", stranger);
        assert_eq!(found["answer"]["counts"]["lost"], 2, "{found}");
        reflects.send("stop", json!({"run": number}));
        let ended = [reflects.finish().0, reflects.finish().0];
        let counts = ended.iter().find(|answer| answer["answer"].get("replies").is_some()).unwrap();
        assert_eq!((&counts["answer"]["replies"], &counts["answer"]["wrong_hmac"]), (&json!(20), &json!(2)));
    }
    for agent in [&measures, &reflects] {
        let peak_kb = peak_kb(agent.process.id().into());
        assert!(peak_kb < PEAK_KB_MAX, "{peak_kb} kB");
    }
}

#[test]
fn tests_and_reflectors_that_cannot_be_are_refused_in_a_line() {
    let Some(hosts) = Hosts::new("path tests") else { return };
    let [mut agent, _] = hosts.agents();
    for (request, keys, says) in [
        ("reflect", json!({"key": "12"}), "key: 16 or more hexadecimal digits"),
        ("reflect", json!({"key": KEY, "ports": [9, 3]}), "ports: [first, last]"),
        ("measure", json!({"test": "stamp", "towards": "192.0.2.1:9", "count": 0}), "count 0: 1 packet or more"),
        ("measure", json!({"test": "speed", "towards": "192.0.2.1:9"}), "must be one of"),
    ] {
        let refused = agent.ask(request, keys);
        assert_eq!(refused["error"]["kind"], "input", "{refused}");
        assert!(refused["error"]["text"].as_str().unwrap().contains(says), "{refused}");
    }
}
