//! The CPU time of transfers.

use crate::common::{Agent, Hosts, TOKEN};
use serde_json::{json, Value};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};

fn keys(role: &str, [local, peer]: [&str; 2], more: &Value) -> Value {
    let mut keys = json!({
        "role": role, "local": local, "peer": peer, "token": TOKEN, "idle_ms": 20, "warm_up_ms": 50, "window_ms": 100,
    });
    keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    keys
}

/// Bytes of a packet's data, of an end's answer.
fn mean_payload(told: &Value) -> f64 {
    told["payload_bytes"].as_f64().unwrap_or(0.0) / told["packets"].as_f64().unwrap_or(1.0)
}

#[test]
fn both_ends_tell_packets_of_the_announced_size_and_their_cpu_time() {
    let Some(hosts) = Hosts::new("the cost of packets") else { return };
    let [mut sender, mut receiver] = hosts.agents();
    let of_ipv6 = (Hosts::V6, 1000 - 60, 72);
    for ([one, other], segment, headers) in [(Hosts::V4, 750 - 40, 52), of_ipv6] {
        let full = f64::from(segment) - 12.0;
        let mut measured = || {
            receiver.send("cost", keys("receive", [other, one], &json!({"max_segment_bytes": segment})));
            let port = receiver.await_event("listening")["port"].clone();
            let sent = sender.ask("cost", keys("send", [one, other], &json!({"port": port})));
            (sent, receiver.finish().0)
        };
        let (mut sent, mut received) = measured();
        // A sender that waits for a busy processor writes less at once, and more segments are short.
        for _ in 0..4 {
            if [&sent, &received].iter().all(|told| mean_payload(&told["answer"]) > 0.9 * full) {
                break;
            }
            (sent, received) = measured();
        }
        for told in [&sent["answer"], &received["answer"]] {
            let number = |name: &str| told[name].as_f64().unwrap_or_else(|| panic!("{name}: {sent} {received}"));
            assert_eq!(told["header_bytes"], headers, "{told}");
            // A write's last segment may be shorter.
            let payload = mean_payload(told);
            assert!(payload <= full + 0.5 && payload > 0.9 * full, "{payload} of {full}: {told}");
            let (window_s, cores) = (number("window_s"), number("cores"));
            assert!(window_s >= 0.1 && number("cpu_s") <= cores * (window_s + 0.02), "{told}");
            // The counters have steps of 10 ms for each core.
            assert!(number("busiest_core_s") <= window_s + 0.02, "{told}");
            assert!(number("thread_s") > 0.0, "{told}");
        }
        assert_eq!(sent["answer"]["boot_id"], received["answer"]["boot_id"]);
        assert!(sent["answer"]["rtt_min_s"].as_f64().unwrap() < 0.1, "{sent}");
    }
}

#[test]
fn a_rate_limit_bounds_a_transfer() {
    let Some(hosts) = Hosts::new("the cost of packets") else { return };
    let [mut sender, mut receiver] = hosts.agents();
    let [one, other] = Hosts::V4;
    receiver.send("cost", keys("receive", [other, one], &json!({})));
    let port = receiver.await_event("listening")["port"].clone();
    let sent = sender.ask("cost", keys("send", [one, other], &json!({"port": port, "max_pacing_bps": 80_000_000})));
    let (received, _) = receiver.finish();
    // 1 MB in 100 ms.
    let bytes = received["answer"]["payload_bytes"].as_u64().unwrap();
    assert!(bytes < 2_000_000, "{sent} {received}");
}

#[test]
fn strangers_at_the_senders_address_keep_no_measurement_waiting() {
    let Some(hosts) = Hosts::new("the cost of packets") else { return };
    let [mut sender, mut receiver] = hosts.agents();
    let [one, other] = Hosts::V4;
    receiver.send("cost", keys("receive", [other, one], &json!({})));
    let port = receiver.await_event("listening")["port"].clone();
    let to = SocketAddr::new(other.parse().unwrap(), port.as_u64().unwrap() as u16);
    // Each would have taken 5 s once.
    let silent: Vec<TcpStream> = (0..100).map(|_| hosts.sender.stream(to).unwrap()).collect();
    for stream in silent.iter().step_by(2) {
        let _ = (&mut &*stream).write_all(b"half a token");
    }
    let sent = sender.ask("cost", keys("send", [one, other], &json!({"port": port})));
    assert!(sent["answer"]["payload_bytes"].as_u64() > Some(0), "{sent}");
    let (received, _) = receiver.finish();
    assert!(received["answer"]["payload_bytes"].as_u64() > Some(0), "{received}");
    drop(silent);
}

#[test]
fn what_cannot_be_measured_is_said_in_one_line() {
    let Some(hosts) = Hosts::new("the cost of packets") else { return };
    let [mut sender, mut receiver] = hosts.agents();
    let [one, other] = Hosts::V4;
    let refused = |agent: &mut Agent, keys: Value, kind: &str, says: &str| {
        let error = agent.ask("cost", keys)["error"].clone();
        assert!(error["kind"] == kind && error["text"].as_str().is_some_and(|text| text.contains(says)), "{error}");
    };
    refused(&mut sender, keys("send", [one, other], &json!({"window_ms": 0})), "input", "window_ms: 1 to 600000");
    refused(&mut sender, keys("send", [one, other], &json!({"more": 0})), "input", "unknown field");
    refused(&mut sender, keys("send", [one, other], &json!({"port": 9})), "peer", "TCP 192.0.2.2:9");
    let small = json!({"max_segment_bytes": 5});
    refused(&mut receiver, keys("receive", [other, one], &small), "input", "max_segment_bytes: 5");
    refused(&mut receiver, keys("receive", ["192.0.2.9", one], &json!({})), "port", "TCP 192.0.2.9, port 0");
    // A wrong token is no transfer; and a stop ends the wait for one.
    let number = receiver.send("cost", keys("receive", [other, one], &json!({})));
    let port = receiver.await_event("listening")["port"].clone();
    let wrong = json!({"port": port, "token": "ff".repeat(16)});
    let error = sender.ask("cost", keys("send", [one, other], &wrong))["error"].clone();
    assert_eq!(error["kind"], "peer", "{error}");
    receiver.send("stop", json!({"run": number}));
    let answers = [receiver.finish().0, receiver.finish().0];
    assert!(answers.iter().any(|answer| answer["error"]["kind"] == "stopped"), "{answers:?}");
}
