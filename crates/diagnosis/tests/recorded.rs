//! Flows of a known limit, recorded by evaluation/diagnosis over emulated paths: every fourth sample of each.

use diagnosis::{diagnose, Diagnosis, Flow, Limit, Role, Sample};
use serde_json::{Map, Value};
use std::path::Path;

/// Reads tests/recorded/NAME.csv: a line with congestion control and path, the names of the fields, a line per sample.
pub fn flow(name: &str) -> Flow {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(format!("{name}.csv"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut lines = text.lines();
    let congestion_control = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
    let names: Vec<_> = lines.next().unwrap().split(',').collect();
    let sample = |line: &str| -> Sample {
        let value = |text: &str| if text.is_empty() { Value::Null } else { text.parse().unwrap() };
        let fields: Map<_, _> = names.iter().zip(line.split(',')).map(|(n, v)| ((*n).to_owned(), value(v))).collect();
        serde_json::from_value(Value::Object(fields)).unwrap()
    };
    Flow {
        local: "192.0.2.1:50000".into(),
        remote: "192.0.2.2:5001".into(),
        congestion_control,
        samples: lines.map(sample).collect(),
        ..Flow::default()
    }
}

fn diagnosed(name: &str) -> Diagnosis {
    diagnose(&flow(name)).unwrap_or_else(|| panic!("{name}: nothing moved"))
}

#[test]
fn each_limit_is_found_by_the_sender_s_counters() {
    for (name, limit) in [
        ("application-steady", Limit::Application),
        ("application-bursts", Limit::Application),
        ("receiving_application-slow_reader", Limit::ReceivingApplication),
        ("receiving_application-closed_window", Limit::ReceivingApplication),
        ("send_buffer-cubic", Limit::SendBuffer),
        ("send_buffer-bbr", Limit::SendBuffer),
        ("receive_window-cubic", Limit::ReceiveWindow),
        ("receive_window-bbr", Limit::ReceiveWindow),
        ("pacing-reno", Limit::Pacing),
        ("loss-reno", Limit::Loss),
        ("loss-short_path", Limit::Loss),
        ("queue-cubic", Limit::Queue),
        ("queue-four_flows", Limit::Queue),
        ("queue-bbr", Limit::Queue),
        ("policer-cubic", Limit::Policer),
        ("policer-bbr", Limit::Policer),
        ("start_up-cubic", Limit::StartUp),
    ] {
        let found = diagnosed(name);
        assert_eq!((found.role, found.limit), (Role::Sender, Some(limit)), "{name}: {found:?}");
        let counters = found.counters.unwrap();
        assert!(found.bytes > 0 && counters.seconds > 0.05 && !found.because.is_empty(), "{name}: {counters:?}");
    }
}

#[test]
fn a_receiving_end_names_its_own_limits_and_no_other() {
    for (name, limit) in [
        ("receiver-receiving_application", Some(Limit::ReceivingApplication)),
        ("receiver-receive_window", Some(Limit::ReceiveWindow)),
        ("receiver-loss", None),
    ] {
        let found = diagnosed(name);
        assert_eq!((found.role, found.limit), (Role::Receiver, limit), "{name}: {found:?}");
    }
    assert!(diagnosed("receiver-loss").because.contains("behind a gap: watch the sender"));
}

#[test]
fn of_a_path_through_a_policer_the_rate_from_loss_to_loss_is_constant() {
    let counters = |name| diagnosed(name).counters.unwrap();
    let (policer, loss) = (counters("policer-cubic"), counters("loss-short_path"));
    assert!(policer.rate_variation < Some(0.12) && policer.window_for_losses > Some(1.35), "{policer:?}");
    assert!(loss.window_for_losses < Some(1.35), "{loss:?}");
}
