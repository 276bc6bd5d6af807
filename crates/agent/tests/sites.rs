//! Folders, ports and files of programs, and processes apart from their host: made, and gone however the agent ends.

use crate::common::{able, becomes, Agent, Hosts, Namespace};
use serde_json::{json, Value};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

fn place(agent: &mut Agent, more: &Value) -> Value {
    let mut keys = json!({"local": "127.0.0.1"});
    keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent.ask("place", keys)
}

fn folder_of(answer: &Value) -> String {
    answer["answer"]["folder"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn files_are_written_and_compared_below_the_folders_alone_and_go_with_them() {
    let mut agent = Agent::start(None);
    let early = agent.ask("prepare", json!({"ends": []}));
    assert_eq!(early["error"]["kind"], "protocol", "{early}");
    let answer = place(&mut agent, &json!({"disk": true, "servers": [{}, {"more": 20, "least": 8}]}));
    let (folder, disk) = (folder_of(&answer), answer["answer"]["disk"].as_str().unwrap().to_owned());
    let ports = answer["answer"]["ports"].as_array().unwrap();
    assert_eq!(ports[0].as_array().unwrap().len(), 1);
    let [first, last] = [0, 1].map(|end| ports[1][1][end].as_u64().unwrap());
    assert_eq!(last - first, 19);
    let (end, data) = (format!("{folder}/0/source"), format!("{disk}/0/source/source"));
    let prepared = agent.ask(
        "prepare",
        json!({"ends": [{
            "folder": end,
            "files": [{"name": "key", "text": "secret", "mode": 0o600}, {"name": "empty/", "text": "", "mode": 0o755}],
            "data": {"folder": data, "sizes": [3_000_000, 5], "kind": "random"},
        }]}),
    );
    assert_eq!(prepared["answer"], json!({}), "{prepared}");
    let mode = |path: &str| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&format!("{end}/key")), mode(&format!("{end}/empty"))), (0o600, 0o755));
    assert_eq!(mode(&folder) & 0o066, 0);
    assert_eq!(fs::read_to_string(format!("{end}/key")).unwrap(), "secret");
    let files = [format!("{data}/file0"), format!("{data}/file1"), format!("{data}/file2")];
    let digests = agent.ask("digest", json!({"files": files}));
    let digests = &digests["answer"]["files"];
    assert_eq!((&digests[0]["bytes"], &digests[1]["bytes"]), (&json!(3_000_000), &json!(5)));
    assert_eq!(digests[2], Value::Null);
    let sum = Command::new("sha256sum").arg(&files[0]).output().unwrap();
    assert!(String::from_utf8(sum.stdout).unwrap().starts_with(digests[0]["sha256"].as_str().unwrap()));
    for wrong in ["/etc/passwd".to_owned(), format!("{folder}/../x"), format!("{folder}x/y")] {
        let refused = agent.ask("digest", json!({"files": [wrong]}));
        assert_eq!(refused["error"]["kind"], "input", "{refused}");
    }
    // The next one takes the place of this one.
    let next = folder_of(&place(&mut agent, &json!({})));
    assert!(!Path::new(&folder).exists() && !Path::new(&disk).exists() && Path::new(&next).is_dir());
    assert_eq!(agent.ask("leave", json!({}))["answer"], json!({}));
    assert!(!Path::new(&next).exists());
    let last = folder_of(&place(&mut agent, &json!({})));
    assert_eq!(agent.end(), 0);
    assert!(!Path::new(&last).exists());
}

#[test]
fn a_killed_agents_guard_removes_its_folders() {
    let mut agent = Agent::start(None);
    let folder = folder_of(&place(&mut agent, &json!({})));
    fs::write(format!("{folder}/something"), "x").unwrap();
    agent.kill();
    becomes("the guard removes it", 2000, || !Path::new(&folder).exists());
}

#[test]
fn a_folder_of_another_boot_is_removed_by_the_request_clean() {
    let mut agent = Agent::start(None);
    let own = Path::new(&folder_of(&place(&mut agent, &json!({})))).to_owned();
    let name = own.file_name().unwrap().to_string_lossy().into_owned();
    let boot = name.split('-').nth(2).unwrap();
    // The id of no boot.
    let old = own.with_file_name(name.replace(boot, "00000000")).display().to_string();
    fs::create_dir_all(format!("{old}/deeper")).unwrap();
    let cleaned = agent.ask("clean", json!({}));
    assert!(cleaned["answer"]["removed"].is_array(), "{cleaned}");
    // The agent of another test may have been faster.
    assert!(!Path::new(&old).exists(), "{cleaned}");
}

#[test]
fn a_port_of_a_given_range_that_is_taken_is_passed_over() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut agent = Agent::start(None);
    let none = place(&mut agent, &json!({"ports": [port, port], "servers": [{}]}));
    assert_eq!(none["error"]["kind"], "port", "{none}");
}

/// Runs `words` apart from this host, in a namespace's network.
fn apart(plan: &Value, words: &[&str]) -> std::process::Child {
    let binary = env!("CARGO_BIN_EXE_elephan-agent");
    let mut command = Command::new(binary);
    command.args(["apart", &plan.to_string()]).args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_program_apart_has_users_and_a_sink_of_its_own_and_ends_with_all_that_it_started() {
    if !able("mount namespaces") {
        return;
    }
    let mut agent = Agent::start(None);
    let folder = folder_of(&place(&mut agent, &json!({})));
    let sink = format!("{folder}/sink");
    fs::create_dir(&sink).unwrap();
    fs::write(format!("{folder}/passwd"), "nobody-but-me:x:0:0::/:/bin/sh\n").unwrap();
    let plan = json!({"users": folder, "sink": {"folder": sink, "discards": 2}, "own": "/run/mine"});
    let look =
        format!("cat /etc/passwd; ls /run; echo much >{sink}/file1; wc -c <{sink}/file1; setsid sleep 1000 & exit 7");
    let done = apart(&plan, &["/bin/sh", "-c", &look]).wait_with_output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert_eq!(said, "nobody-but-me:x:0:0::/:/bin/sh\nmine\n0\n", "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.status.code(), Some(7));
    // Nothing of it is seen here.
    assert_eq!(fs::read_dir(&sink).unwrap().count(), 0);
    assert!(!fs::read_to_string("/etc/passwd").unwrap().contains("nobody-but-me"));
    let mark = format!("10{:05}", std::process::id());
    let mut killed = apart(&json!({}), &["/bin/sh", "-c", &format!("setsid sleep {mark} & exec sleep {mark}")]);
    let sleeping = || {
        let listed = fs::read_dir("/proc").unwrap().flatten();
        let lines = listed.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| *line == format!("sleep\0{mark}\0").into_bytes()).count()
    };
    becomes("both sleep", 2000, || sleeping() == 2);
    killed.kill().unwrap();
    killed.wait().unwrap();
    becomes("neither is left", 2000, || sleeping() == 0);
}

#[test]
fn check_tells_which_commands_there_are_and_what_they_say() {
    let mut agent = Agent::start(None);
    let wanted = json!({"sh": null, "sha256sum": "--version", "no-such-command": "--version", "../sh": null});
    let answer = agent.ask("check", json!({"programs": wanted}));
    let programs = &answer["answer"]["programs"];
    let commands = programs["commands"].as_object().unwrap();
    assert_eq!(commands.keys().collect::<Vec<_>>(), ["sh", "sha256sum"], "{answer}");
    assert!(commands["sha256sum"]["says"].as_str().unwrap().contains("sha256sum"), "{answer}");
    assert!(programs["disk"]["free_bytes"].as_u64().unwrap() > 0 && programs["disk"]["file_system"].is_string());
}

#[test]
fn a_program_without_a_place_or_a_server_that_fails_is_one_line() {
    let Some(hosts) = Hosts::new("programs") else { return };
    let mut plan = crate::common::Plan::new(1_000_000_000);
    plan = plan.flow(&json!({"kind": "program", "program": "scp", "bytes": 1000}));
    let run = |agent: &mut Agent, folder: &str| {
        let mut keys = plan.receive();
        keys["flows"][0]["program"] = json!({
            "name": "scp", "words": ["/bin/sh", "-c", "echo no disk here >&2; exit 3"], "serves": true,
            "ports": [[5000, 5000]], "streams": 1, "confirmed": true, "folder": folder,
        });
        agent.ask("run", keys)
    };
    let namespace: &Namespace = &hosts.receiver;
    let mut agent = Agent::start(Some(namespace));
    let without = run(&mut agent, "/tmp");
    assert_eq!(without["error"]["kind"], "input", "{without}");
    let folder = folder_of(&place(&mut agent, &json!({})));
    let failed = run(&mut agent, &folder);
    let text = failed["error"]["text"].as_str().unwrap_or_else(|| panic!("{failed}"));
    assert_eq!(text, "flow f0: the server of scp: exit status: 3: no disk here");
    let elsewhere = run(&mut agent, "/tmp");
    assert_eq!(elsewhere["error"]["kind"], "input", "{elsewhere}");
}
