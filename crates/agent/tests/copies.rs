//! A copy between two agents, a side of it checked again, and what is refused.

use crate::common::Agent;
use serde_json::{json, Value};
use std::fs;
use std::path::{Path, PathBuf};

const SECRET: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const COPY: &str = "00112233445566778899aabbccddeeff";

/// An empty folder of a test's own.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn spec(role: &str, side: &str, more: &Value) -> Value {
    let mut spec = json!({
        "role": role, "side": side, "transport": {"kind": "tcp"}, "streams": 2, "local": "127.0.0.1",
        "token": SECRET, "copy": COPY, "progress_ms": 20,
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "spec": spec })
}

#[test]
fn two_agents_copy_a_folder_one_is_steered_and_both_sides_are_checked_again() {
    let (from, to) = (folder("copy-from"), folder("copy-to"));
    for (name, size) in [("small", 5000), ("large", 3_000_000)] {
        fs::write(from.join(name), (0..size).map(|n: u32| (n.wrapping_mul(n) >> 7) as u8).collect::<Vec<_>>()).unwrap();
    }
    let source = format!("{}/", from.display());
    let [mut sender, mut receiver] = [Agent::start(None), Agent::start(None)];
    let counted = sender.ask("scan", json!({"sources": [&source]}));
    assert_eq!((&counted["answer"]["files"], &counted["answer"]["bytes"]), (&json!(2), &json!(3_005_000)));

    receiver.send("copy", spec("receive", "listen", &json!({"destination": to})));
    let port = receiver.await_event("listening")["port"].clone();
    let keys = json!({"peer": "127.0.0.1", "port": port, "sources": [&source], "rate_bps": 16_000_000});
    let copy = sender.send("copy", spec("send", "connect", &keys));
    assert!(sender.await_event("connected")["rtt_s"].is_number());
    // At the first rate it would take 1.5 s, and longer than the request below waits for nothing else.
    let steered = sender.send("steer", json!({"run": copy, "rate_bps": 0, "streams": 1}));
    let busy = sender.send("check", json!({}));
    let (mut ends, mut answered) = (vec![], vec![]);
    while ends.is_empty() || answered.len() < 2 {
        let message = sender.receive().unwrap();
        match message["id"].as_u64() {
            Some(id) if id == copy && message.get("event").is_none() => ends.push(message),
            Some(id) if id == steered || id == busy => answered.push(message),
            _ => {}
        }
    }
    assert_eq!(answered[0]["answer"], json!({}), "{answered:?}");
    assert_eq!(answered[1]["error"]["kind"], "busy", "{answered:?}");
    let (sent, received) = (&ends[0]["answer"]["report"], receiver.finish().0["answer"]["report"].clone());
    assert_eq!(sent["root"], received["root"], "{ends:?}");
    assert_eq!(received["bytes"], 3_005_000);
    assert_eq!(fs::read(from.join("large")).unwrap(), fs::read(to.join("large")).unwrap());

    let side = |report: &Value, more: Value| {
        let mut keys = json!({"manifest": report["manifest"], "root": report["root"], "from_disk": true});
        keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        keys
    };
    let checked = sender.ask("verify", side(sent, json!({"sources": [&source]})));
    assert_eq!((&checked["answer"]["bytes"], &checked["answer"]["differences"]), (&json!(3_005_000), &json!([])));
    let mut content = fs::read(to.join("small")).unwrap();
    content[4] ^= 1;
    fs::write(to.join("small"), content).unwrap();
    let checked = receiver.ask("verify", side(&received, json!({"destination": to})));
    let differs = &checked["answer"]["differences"];
    assert_eq!(differs, &json!([{"path": "small", "reason": "its content is another one"}]), "{checked}");
    let forgotten = receiver.ask("forget", json!({"copy": COPY, "destination": to}));
    // The copy is done: its manifests stay, since receipts are checked against them.
    assert!(forgotten["answer"]["bytes"].is_u64(), "{forgotten}");
    assert!(Path::new(received["manifest"].as_str().unwrap()).exists(), "{received}");
    assert!(!to.join(".elephan-copy").exists() && to.join("large").exists());
}

#[test]
fn a_copy_is_stopped_and_what_cannot_be_is_refused_in_a_line() {
    let to = folder("copy-stopped");
    let mut agent = Agent::start(None);
    let copy = agent.send("copy", spec("receive", "listen", &json!({"destination": to})));
    agent.await_event("listening");
    agent.send("stop", json!({"run": copy}));
    let ended = [agent.finish().0, agent.finish().0];
    assert!(ended.iter().any(|one| one["error"]["kind"] == "stopped"), "{ended:?}");
    let held = agent.send("hold", json!({}));
    assert_eq!(agent.await_event("held")["id"], held);
    agent.send("stop", json!({"run": held}));
    let ended = [agent.finish().0, agent.finish().0];
    assert!(ended.iter().any(|one| one["answer"]["sysctls_changed"] == json!({})), "{ended:?}");
    for (request, keys, says) in [
        ("copy", json!({"spec": {"role": "send"}}), "missing field"),
        ("copy", spec("receive", "listen", &json!({"destination": to, "more": 1})), "unknown field `more`"),
        ("copy", spec("send", "connect", &json!({"sources": ["/none"], "peer": "127.0.0.1", "port": 1})), "/none"),
        ("scan", json!({"sources": ["/none"]}), "/none"),
        ("forget", json!({"copy": "../../x"}), "a copy's name has 32 hex digits"),
        ("verify", json!({"manifest": "/none", "root": "0"}), "/none"),
    ] {
        agent.send(request, keys);
        let refused = agent.finish().0;
        assert_eq!(refused["error"]["kind"], "input", "{refused}");
        assert!(refused["error"]["text"].as_str().unwrap().contains(says), "{refused}");
    }
}
