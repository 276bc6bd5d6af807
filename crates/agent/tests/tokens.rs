//! Connections are taken from one address, with the run's token, in time.

use crate::common::{bulk, Agent, Hosts, Plan, S, TOKEN};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;

/// A stream from a namespace, made on a thread that enters it.
fn stream(hosts: &Hosts, to: SocketAddr) -> std::io::Result<TcpStream> {
    let file = std::fs::File::open(format!("/run/netns/{}", hosts.sender.name)).unwrap();
    let connect = move || {
        rustix::thread::move_into_link_name_space(
            std::os::fd::AsFd::as_fd(&file),
            Some(rustix::thread::LinkNameSpaceType::Network),
        )
        .unwrap();
        TcpStream::connect(to)
    };
    thread::spawn(connect).join().unwrap()
}

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
        let mut stream = stream(&hosts, to).unwrap();
        let _ = stream.write_all(&bytes);
        // Closed, or reset.
        assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)), "{bytes:?}");
    }
    drop(stream(&hosts, to).unwrap());
    let mut sender = Agent::start(Some(&hosts.sender));
    sender.send("run", plan.send(&event));
    let (sent, _) = sender.finish();
    assert_eq!(sent["answer"]["outcome"]["flows"][0]["delivered_bytes"], 1000, "{sent}");
    assert!(receiver.finish().0["answer"].is_object());
}

#[test]
fn too_many_wrong_tokens_end_the_run_and_the_listener() {
    let Some(hosts) = Hosts::new("tokens") else { return };
    let plan = Plan::new(S).flow(&bulk(None));
    let (mut receiver, _, to) = listening(&hosts, &plan);
    for _ in 0..32 {
        let Ok(mut stream) = stream(&hosts, to) else { break };
        let _ = stream.write_all(&[0; 24]);
        let _ = stream.read(&mut [0; 1]);
    }
    let (answer, _) = receiver.finish();
    assert_eq!(answer["error"]["kind"], "token", "{answer}");
    assert!(stream(&hosts, to).is_err(), "nobody listens any more");
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
    assert!(stream(&hosts, to).is_err(), "nobody listens any more");
}
