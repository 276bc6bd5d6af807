//! Requests, answers, and whatever else may come over the channel.

use crate::common::{frame, Agent};
use serde_json::json;

#[test]
fn another_protocol_is_refused_by_both_their_names_and_the_right_one_is_taken_after_it() {
    let mut agent = Agent::start_silently(None);
    let early = agent.ask("check", json!({}));
    assert_eq!(early["error"]["kind"], "protocol", "{early}");
    let wrong = agent.ask("hello", json!({"protocol": 99}));
    assert_eq!(wrong["error"]["kind"], "version");
    assert!(wrong["error"]["text"].as_str().unwrap().contains("99"), "{wrong}");
    assert_eq!(agent.ask("hello", json!({"protocol": 3}))["answer"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(agent.end(), 0);
}

#[test]
fn a_host_tells_its_kernel_limits_clock_and_ways() {
    let mut agent = Agent::start(None);
    let answer = agent.ask("check", json!({"towards": ["127.0.0.1", "::1"], "folder": "/"}));
    let host = &answer["answer"];
    assert!(host["limits"]["tcp_rmem"].as_array().is_some_and(|three| three.len() == 3), "{host}");
    assert!(host["congestion_controls"]["available"].as_array().unwrap().contains(&json!("reno")));
    assert!(host["clock"]["time_ns"].as_u64().unwrap() > 1 << 60 && host["cores"].as_u64().unwrap() > 0);
    assert!(host["disk"]["free_bytes"].as_u64().unwrap() > 0);
    assert_eq!((&host["routes"][0]["interface"], &host["routes"][0]["source"]), (&json!("lo"), &json!("127.0.0.1")));
    assert!(host["routes"][0]["mtu_bytes"].as_u64().unwrap() > 1000);
    let error = agent.ask("check", json!({"towards": ["nowhere"]}));
    assert_eq!(error["error"]["kind"], "input", "{error}");
}

#[test]
fn a_file_is_handed_over_in_pieces_and_is_in_no_folder() {
    let mut agent = Agent::start(None);
    let first = agent.ask("put", json!({"data": "68656c"}));
    let file = &first["answer"]["file"];
    let second = agent.ask("put", json!({"data": "6c6f", "file": file}));
    let path = second["answer"]["path"].as_str().unwrap().to_owned();
    assert_eq!((second["answer"]["bytes"].as_u64(), std::fs::read(&path).unwrap()), (Some(5), b"hello".to_vec()));
    assert_eq!(agent.ask("put", json!({"data": "xy"}))["error"]["kind"], "input");
    assert_eq!(agent.ask("put", json!({"data": "", "file": 7}))["error"]["kind"], "input");
    assert_eq!(agent.end(), 0);
    assert!(!std::path::Path::new(&path).exists());
}

#[test]
fn junk_ends_the_agent_with_a_word_and_code_2() {
    let deep = "[".repeat(100_000);
    let requests = [
        &b"\xff\xff\xff\xffxx"[..],
        &frame(b"no JSON"),
        &frame(b"[]"),
        &frame(b"{\"id\":-1,\"request\":\"hello\"}"),
        &frame(b"{\"id\":1,\"request\":7}"),
        &frame(b"\xff\xfe"),
        &frame(b""),
        &frame(deep.as_bytes()),
    ];
    for junk in requests {
        let mut agent = Agent::start(None);
        agent.send_bytes(junk);
        let answer = agent.receive().expect("it says why");
        assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(0), &json!("protocol")), "{answer}");
        assert!(!answer["error"]["text"].as_str().unwrap().contains('\n'));
        assert!(agent.receive().is_none());
        assert_eq!(agent.end(), 2);
    }
}

#[test]
fn the_end_of_the_channel_even_within_a_frame_ends_the_agent() {
    for cut in [&b""[..], &b"\0\0"[..], &b"\0\0\0\x09{\"id\""[..]] {
        let mut agent = Agent::start(None);
        agent.send_bytes(cut);
        assert_eq!(agent.end(), 0, "{cut:?}");
    }
    let mut agent = Agent::start_silently(None);
    assert_eq!(agent.end(), 0);
}

#[test]
fn a_run_that_cannot_be_is_refused_with_its_reason() {
    let mut agent = Agent::start(None);
    let plan = crate::common::Plan::new(crate::common::S).flow(&crate::common::bulk(None));
    let mut wrong = |change: &dyn Fn(&mut serde_json::Value), word: &str| {
        let mut keys = plan.receive();
        keys["local"] = json!("127.0.0.1");
        keys["peer"] = json!("127.0.0.1");
        change(&mut keys);
        let answer = agent.ask("run", keys);
        let error = &answer["error"];
        assert_eq!(error["kind"], "input", "{answer}");
        assert!(error["text"].as_str().unwrap().contains(word), "{word}: {error}");
    };
    wrong(&|keys| keys["token"] = json!("abc"), "token");
    wrong(&|keys| keys["flows"] = json!([]), "flows");
    wrong(&|keys| keys["peer"] = json!("::1"), "family");
    wrong(&|keys| keys["extra"] = json!(1), "extra");
    wrong(&|keys| keys["spec"]["format"] = json!(1), "format");
    wrong(&|keys| keys["connect_s"] = json!(-1.0), "connect_s");
    wrong(&|keys| keys["sysctls"] = json!({"kernel.panic": "1"}), "kernel.panic");
    wrong(&|keys| keys["controls"] = json!([{"name": "cubic", "object": "00"}]), "elephan_");
    let frames = json!({"kind": "constant_rate", "frame_bytes": 1000, "rate_bps": 1000, "credits": 3});
    wrong(&|keys| keys["spec"]["flows"][0]["workload"] = frames.clone(), "credits");
}

#[test]
fn a_front_that_is_silent_for_its_lease_counts_as_gone_and_signs_of_life_prolong_it() {
    let mut agent = Agent::start_silently(None);
    let hello = agent.ask("hello", json!({"protocol": 3, "lease_s": 4}));
    assert_eq!(hello["answer"]["protocol"], 3, "{hello}");
    // Longer than the lease.
    for _ in 0..10 {
        let _ = rustix::thread::nanosleep(&rustix::thread::Timespec { tv_sec: 0, tv_nsec: 500_000_000 });
        agent.send("alive", json!({}));
    }
    // A request that takes longer than the lease is one, too.
    let slow = frame(json!({"id": 99, "request": "check"}).to_string().as_bytes());
    for byte in slow.chunks(4) {
        let _ = rustix::thread::nanosleep(&rustix::thread::Timespec { tv_sec: 0, tv_nsec: 500_000_000 });
        agent.send_bytes(byte);
    }
    let answer = agent.receive().expect("it lives");
    assert!(answer["answer"].is_object(), "signs of life have no answer, and it lives: {answer}");
    assert!(agent.process.wait().expect("it ends").success(), "its input is open, and it has ended");
}
