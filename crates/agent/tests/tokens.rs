//! Connections are taken from one address, with the run's token, in time.

use crate::common::{bulk, Agent, Hosts, Plan, S, TOKEN};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

fn preamble(token: &str, number: u32, version: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..16).map(|at| u8::from_str_radix(&token[2 * at..2 * at + 2], 16).unwrap()).collect();
    bytes.extend(number.to_be_bytes());
    bytes.extend(version.to_be_bytes());
    bytes
}

fn listening(hosts: &Hosts, plan: &Plan) -> (Agent, serde_json::Value, SocketAddr) {
    let mut agent = Agent::start(Some(&hosts.receiver));
    agent.send("run", plan.receive());
    let event = agent.await_event("listening");
    let port = event["report_port"].as_u64().unwrap() as u16;
    (agent, event, SocketAddr::new(Hosts::V4[1].parse::<IpAddr>().unwrap(), port))
}

#[test]
fn wrong_tokens_close_their_connections_and_the_run_goes_on_without_them() {
    let Some(hosts) = Hosts::new("tokens") else { return };
    let plan = Plan::new(S).flow(&bulk(Some(1000)));
    let (mut receiver, event, to) = listening(&hosts, &plan);
    let wrong_token = "ff".repeat(16);
    // A wrong token; a wrong version; a flow before the reports; a flow that there is not; noise; nothing at all.
    let shown = [
        preamble(&wrong_token, u32::MAX, 2),
        preamble(TOKEN, u32::MAX, 3),
        preamble(TOKEN, 0, 2),
        preamble(TOKEN, 77, 2),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
    ];
    for bytes in shown {
        let mut stream = hosts.sender.stream(to).unwrap();
        let _ = stream.write_all(&bytes);
        // Closed, or reset.
        assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)), "{bytes:?}");
    }
    drop(hosts.sender.stream(to).unwrap());
    let mut sender = Agent::start(Some(&hosts.sender));
    sender.send("run", plan.send(&event));
    let (sent, _) = sender.finish();
    assert_eq!(sent["answer"]["outcome"]["flows"][0]["delivered_bytes"], 1000, "{sent}");
    assert!(receiver.finish().0["answer"].is_object());
}

#[test]
fn strangers_at_the_senders_address_end_no_run() {
    let Some(hosts) = Hosts::new("tokens") else { return };
    let plan = Plan::new(S).flow(&bulk(Some(1000)));
    let (mut receiver, event, to) = listening(&hosts, &plan);
    // More than the 32 that ended a run once, and more than the listener keeps at once.
    for _ in 0..100 {
        let mut stream = hosts.sender.stream(to).unwrap();
        let _ = stream.write_all(&[0; 24]);
    }
    let silent: Vec<TcpStream> = (0..350).map(|_| hosts.sender.stream(to).unwrap()).collect();
    for stream in silent.iter().step_by(2) {
        let _ = (&mut &*stream).write_all(b"half a token");
    }
    let mut sender = Agent::start(Some(&hosts.sender));
    sender.send("run", plan.send(&event));
    let (sent, _) = sender.finish();
    assert_eq!(sent["answer"]["outcome"]["flows"][0]["delivered_bytes"], 1000, "{sent}");
    let (taken, _) = receiver.finish();
    assert!(taken["answer"]["strangers"].as_u64().is_some_and(|count| count >= 100), "{taken}");
    drop(silent);
}

#[test]
fn a_connection_from_another_address_is_closed_whatever_it_shows() {
    let Some(hosts) = Hosts::new("tokens") else { return };
    hosts.sender.ip("address add 192.0.2.9/24 dev wire");
    let mut plan = Plan::new(S).flow(&bulk(Some(1000)));
    plan.more = json!({"connect_s": 3.0});
    // The run is for another address than that from which it comes.
    let mut keys = plan.receive();
    keys["peer"] = json!("192.0.2.9");
    let mut receiver = Agent::start(Some(&hosts.receiver));
    receiver.send("run", keys);
    let event = receiver.await_event("listening");
    let mut sender = Agent::start(Some(&hosts.sender));
    let refused = sender.ask("run", plan.send(&event));
    assert_eq!(refused["error"]["kind"], "peer", "{refused}");
    let mut from_there = plan.send(&event);
    from_there["local"] = json!("192.0.2.9");
    sender.send("run", from_there);
    let (sent, _) = sender.finish();
    assert_eq!(sent["answer"]["outcome"]["flows"][0]["delivered_bytes"], 1000, "{sent}");
    assert_eq!(receiver.finish().0["answer"]["strangers"], 1);
}

#[test]
fn the_listener_is_gone_when_all_connections_have_come() {
    let Some(hosts) = Hosts::new("tokens") else { return };
    let plan = Plan::new(100 * S).flow(&bulk(None));
    let (receiver, event, to) = listening(&hosts, &plan);
    let mut agents = [Agent::start(Some(&hosts.sender)), receiver];
    agents[0].send("run", plan.send(&event));
    while agents[0].await_event("progress")["delivered_bytes"] == 0 {}
    assert!(hosts.sender.stream(to).is_err(), "nobody listens any more");
}
