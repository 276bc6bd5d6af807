//! Path tests against a reflector: STAMP itself, and estimators by trains.

use crate::clock::monotonic_ns;
use crate::error::PathError;
use crate::sessions::{SessionOptions, Sessions};
use crate::train_driver::TrainDriver;
use path_test::estimate::{Cost, Estimator, Next, Outcome};
use path_test::session::Sample;
use path_test::statistics::{Counts, Statistics};
use rustix::thread::{nanosleep, Timespec};

/// Longest sleep between two looks for a stop, ns.
const NAP_NS: u64 = 50_000_000;

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
    loop {
        for (_, sample) in sessions.poll(NAP_NS)? {
            statistics.handle_sample(&sample);
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
    let (packets, bytes) = sessions.sent(number);
    let cost = Cost { packets, bytes, seconds: monotonic_ns().saturating_sub(begin_ns) as f64 / 1e9 };
    let mut outcome = statistics.outcome(cost, sessions.clock(number), sessions.lost_forward(number));
    let counts = statistics.counts();
    if counts.packets > 0 && counts.lost == counts.packets {
        outcome.notes.push(match sessions.fault(number) {
            Some(fault) => fault.to_owned(),
            None => format!("no reply from {}: is there a reflector, with this key?", options.towards),
        });
    }
    let unused = sessions.unused(number);
    for (count, what) in [
        (unused.wrong_hmac, "replies had a wrong HMAC: another key"),
        (unused.late, "replies came after their packet had been given up"),
        (unused.strange, "packets were no replies to this session"),
    ] {
        if count > 0 {
            outcome.notes.push(format!("{count} {what}"));
        }
    }
    Ok(StampResult { outcome, counts, is_stopped })
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
