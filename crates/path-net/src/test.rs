//! Path tests against a reflector, by name: STAMP itself, and estimators by trains.

use crate::clock::monotonic_ns;
use crate::error::PathError;
use crate::sessions::{SessionOptions, Sessions};
use crate::train_driver::TrainDriver;
use path_test::estimate::{Cost, Estimator, Next, Outcome};
use path_test::registry;
use path_test::session::Sample;
use path_test::stamp::TimeFormat;
use path_test::statistics::{Counts, Statistics};
use rustix::thread::{nanosleep, Timespec};
use serde::Deserialize;
use serde_json::{json, Value};

/// Time after which a train without any answer is over, ns.
const TRAIN_WAIT_NS: u64 = 2_000_000_000;
/// Shortest key of the HMAC, bytes.
const KEY_MIN: usize = 8;
/// Longest wait for duplicates of the last replies, ns; the longest round trip is enough for most.
const LINGER_MAX_NS: u64 = 100_000_000;
/// Longest sleep between two looks for a stop, ns.
const NAP_NS: u64 = 50_000_000;

/// Keys that all tests have.
#[derive(Deserialize)]
struct Common {
    test: String,
    towards: String,
    key: Option<String>,
}

/// Keys of the test `stamp`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stamp {
    #[serde(default = "count")]
    count: u64,
    #[serde(default = "interval_ns")]
    interval_ns: u64,
    #[serde(default)]
    packet_bytes: u32,
    #[serde(default = "timeout_ns")]
    timeout_ns: u64,
    #[serde(default)]
    traffic_class: u8,
    #[serde(default)]
    time_format: Option<String>,
}

fn count() -> u64 {
    10
}

fn interval_ns() -> u64 {
    100_000_000
}

fn timeout_ns() -> u64 {
    2_000_000_000
}

/// Names of the tests that [`run_test`] knows.
pub fn test_names() -> Vec<&'static str> {
    std::iter::once("stamp").chain(registry::TESTS.iter().copied()).collect()
}

/// A form of time stamps by its name.
///
/// # Errors
/// There is none of this name.
pub fn time_format(name: &str) -> Result<TimeFormat, PathError> {
    match name {
        "ntp" => Ok(TimeFormat::Ntp),
        "ptp" => Ok(TimeFormat::Ptp),
        other => Err(PathError::Input(format!("time_format {other}: ntp or ptp would be right"))),
    }
}

/// A key of hexadecimal digits.
///
/// # Errors
/// It is none, or has fewer than 8 bytes.
pub fn parse_key(text: &str) -> Result<Vec<u8>, PathError> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| Some((digit(pair[0])? << 4 | digit(*pair.get(1)?)?) as u8);
    let key: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
    let wrong = || PathError::Input(format!("key: {} or more hexadecimal digits, in pairs, are needed", 2 * KEY_MIN));
    key.filter(|key| key.len() >= KEY_MIN).ok_or_else(wrong)
}

/// Runs the test that `test_json` names: `test`, `towards`, `key` (hexadecimal, optional), and the keys of that test.
/// `tell` hears of each sample or train. Returns the outcome as JSON; that of `stamp` has `counts` and `stopped`, too.
///
/// # Errors
/// Keys that are wrong; no such reflector; the kernel refuses something; an estimator was told to stop.
pub fn run_test(
    test_json: &str,
    stop: &mut dyn FnMut() -> bool,
    tell: &mut dyn FnMut(Value),
) -> Result<Value, PathError> {
    let wrong = |what: &str| {
        let what = what.to_owned();
        move |error: serde_json::Error| PathError::Input(format!("{what}: {error}"))
    };
    let mut test: Value = serde_json::from_str(test_json).map_err(wrong("test"))?;
    let common = Common::deserialize(&test).map_err(wrong("test"))?;
    let key = common.key.as_deref().map(parse_key).transpose()?;
    if let Some(keys) = test.as_object_mut() {
        keys.remove("towards");
        keys.remove("key");
    }
    if common.test != "stamp" {
        let mut estimator = registry::estimator(&test.to_string()).map_err(PathError::Input)?;
        let mut driver = TrainDriver::open(&common.towards, key.as_deref(), TRAIN_WAIT_NS)?;
        let mut on_train = |packets, bytes| tell(json!({"train": {"packets": packets, "bytes": bytes}}));
        return Ok(json!(run_estimator(estimator.as_mut(), &mut driver, stop, &mut on_train)?));
    }
    if let Some(keys) = test.as_object_mut() {
        keys.remove("test");
    }
    let stamp: Stamp = serde_json::from_value(test).map_err(wrong("test stamp"))?;
    if stamp.count == 0 {
        return Err(PathError::Input("test stamp: count 0: 1 packet or more is needed".into()));
    }
    let options = SessionOptions {
        towards: common.towards,
        key,
        interval_ns: stamp.interval_ns,
        packet_bytes: stamp.packet_bytes,
        timeout_ns: stamp.timeout_ns,
        count: Some(stamp.count),
        traffic_class: stamp.traffic_class,
        format: time_format(stamp.time_format.as_deref().unwrap_or("ntp"))?,
    };
    let found = run_stamp(&options, stop, &mut |sample| tell(json!({ "sample": sample })))?;
    let mut outcome = json!(found.outcome);
    outcome["counts"] = json!(found.counts);
    outcome["stopped"] = json!(found.is_stopped);
    Ok(outcome)
}

/// A STAMP session with an end, and what it found.
pub struct StampResult {
    /// The estimates.
    pub outcome: Outcome,
    /// Loss and order.
    pub counts: Counts,
    /// True where a stop ended it before its time.
    pub is_stopped: bool,
}

/// Runs a session of `options` to its end, and hands each sample to `on_sample`.
///
/// # Errors
/// No such reflector, a key that cannot be, the kernel refuses a socket.
pub fn run_stamp(
    options: &SessionOptions,
    stop: &mut dyn FnMut() -> bool,
    on_sample: &mut dyn FnMut(&Sample),
) -> Result<StampResult, PathError> {
    let mut sessions = Sessions::default();
    let number = sessions.add(options, 0)?;
    let begin_ns = monotonic_ns();
    let mut statistics = Statistics::default();
    let mut is_stopped = false;
    let mut longest_ns = 0;
    loop {
        for (_, sample) in sessions.poll(NAP_NS)? {
            statistics.handle_sample(&sample);
            longest_ns = longest_ns.max(sample.rtt_ns.unwrap_or(0));
            on_sample(&sample);
        }
        if sessions.is_done() {
            break;
        }
        if stop() {
            is_stopped = true;
            break;
        }
    }
    if !is_stopped {
        sessions.linger(longest_ns.min(LINGER_MAX_NS))?;
    }
    statistics.add_duplicates(sessions.untold_duplicates(number));
    let (packets, bytes) = sessions.sent(number);
    let cost = Cost { packets, bytes, seconds: monotonic_ns().saturating_sub(begin_ns) as f64 / 1e9 };
    let mut outcome = statistics.outcome(cost, sessions.clock(number), sessions.lost_forward(number));
    let counts = statistics.counts();
    if counts.packets > 0 && counts.lost == counts.packets {
        outcome.notes.push(match sessions.fault(number) {
            Some(fault) => fault.to_owned(),
            None => no_reply(options),
        });
    }
    let unused = sessions.unused(number);
    for (count, what) in [
        (unused.wrong_hmac, "replies had a wrong HMAC: another key"),
        (unused.late, "replies came after their packet had been given up"),
        (unused.strange, "packets were no replies to this session"),
        (
            unused.timestamps,
            "replies had time stamps of the reflector that the round trip contradicts (two clocks, or no receive \
             timestamp): of these, the round trip includes the reflector's own time, and nothing tells the directions",
        ),
    ] {
        if count > 0 {
            outcome.notes.push(format!("{count} {what}"));
        }
    }
    Ok(StampResult { outcome, counts, is_stopped })
}

/// Largest packet that every IPv4 host accepts (RFC 791, 3.2).
const PASSES_ANYWHERE: u32 = 576;

fn no_reply(options: &SessionOptions) -> String {
    let none = format!("no reply from {}: is there a reflector, with this key?", options.towards);
    if options.packet_bytes <= PASSES_ANYWHERE {
        return none;
    }
    let bytes = options.packet_bytes;
    format!("{none} Or the path drops packets of {bytes} bytes: elephan measure mtu {}", options.towards)
}

/// Runs an estimator against the driver's reflector; `on_train` hears of each train, with its packets and bytes.
///
/// # Errors
/// A train that cannot be sent; told to stop.
pub fn run_estimator(
    estimator: &mut dyn Estimator,
    driver: &mut TrainDriver,
    stop: &mut dyn FnMut() -> bool,
    on_train: &mut dyn FnMut(u64, u64),
) -> Result<Outcome, PathError> {
    loop {
        match estimator.poll_next(driver.now_ns()) {
            Next::Done(outcome) => return Ok(outcome),
            Next::Send { at_ns, train } => {
                loop {
                    if stop() {
                        return Err(PathError::Stopped);
                    }
                    let left = at_ns.saturating_sub(driver.now_ns()).min(NAP_NS);
                    if left == 0 {
                        break;
                    }
                    let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: left as i64 });
                }
                on_train(train.offsets_ns.len() as u64, train.bytes());
                let report = driver.send(&train, stop)?;
                estimator.handle_report(driver.now_ns(), &report);
            }
        }
    }
}
