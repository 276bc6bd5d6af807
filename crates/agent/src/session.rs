//! One session: requests from the front, in turn, until it goes.

use crate::changes::Hold;
use crate::check::{self, Check};
use crate::copy::{Copy, Forget, ListRemovals, Scan, Steer, Verify};
use crate::error::{AgentError, Kind, WRONG};
use crate::files::Files;
use crate::hex;
use crate::host_cost::Cost;
use crate::input::{self, Heard, Input, Request};
use crate::journal;
use crate::output::Output;
use crate::probe::{Echo, Probe};
use crate::reflect::{Measure, Reflect};
use crate::run::Run;
use crate::site::{PlaceKeys, Site};
use crate::site_files::{DigestKeys, Prepare};
use crate::versions::Versions;
use copy_net::Control;
use rustix::thread::Timespec;
use serde::Deserialize;
use serde_json::{json, Value};
use std::io::{Read, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Version of the protocol: docs/design/agent.md.
pub const PROTOCOL: u32 = 3;

/// Requests that wait at most; the front's channel holds the others.
const DEPTH: usize = 16;

/// Keys of the request `hello`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    protocol: u32,
    /// Seconds of silence after which the front counts as gone.
    lease_s: Option<u32>,
}

/// Keys of the request `stop`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stop {
    run: u64,
}

/// Time for a run to end after the front has gone: 500 times 10 ms.
const END_STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
const END_STEPS: u32 = 500;

/// A request without keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bare {}

/// Serves the front behind `from` and `into` until it goes. Returns the process's exit code: 2 after junk.
pub fn serve(from: impl Read + Send + 'static, into: impl Write + Send + 'static) -> ExitCode {
    let (inputs, received) = sync_channel(DEPTH);
    let closing = inputs.clone();
    let (output, writer) = Output::start(into, move || {
        let _ = closing.send(Input::End);
    });
    let reading = inputs.clone();
    // It ends with the process: nothing interrupts a read of standard input.
    let heard = Heard::now();
    let noting = heard.clone();
    thread::spawn(move || input::read_all(from, noting, &reading));
    let mut session =
        Session { output, inputs, greeted: false, lease: None, files: Files::default(), site: None, run: None };
    let mut code = ExitCode::SUCCESS;
    loop {
        let lease = session.lease.unwrap_or(Duration::MAX);
        // The session has a sender, too: only the time can be over.
        let Ok(input) = received.recv_timeout(lease.saturating_sub(heard.since())) else {
            if heard.since() < lease {
                continue;
            }
            eprintln!("elephan-agent: the front has been silent for its lease");
            break;
        };
        match input {
            Input::Request(request) => session.handle(request),
            Input::Ended { id, result } => session.finish(id, result),
            Input::Junk(error) => {
                eprintln!("elephan-agent: {}", error.text);
                session.output.answer(0, Err(error));
                code = ExitCode::from(WRONG);
                break;
            }
            Input::End => break,
        }
    }
    session.end();
    drop(session);
    // Answers are still written, unless nobody reads them.
    for _ in 0..END_STEPS {
        if writer.is_finished() {
            break;
        }
        let _ = rustix::thread::nanosleep(&END_STEP);
    }
    code
}

struct Session {
    output: Output,
    inputs: SyncSender<Input>,
    greeted: bool,
    /// A front whose machine or network has failed closes no channel.
    lease: Option<Duration>,
    files: Files,
    /// Folders and ports of programs.
    site: Option<Arc<Site>>,
    run: Option<Running>,
}

/// A run, on a thread of its own.
struct Running {
    id: u64,
    /// A copy is told more than to stop.
    control: Arc<Control>,
    thread: JoinHandle<()>,
}

impl Session {
    fn handle(&mut self, request: Request) {
        let id = request.id;
        if request.name == "alive" {
            return;
        }
        let result = match request.name.as_str() {
            // Their answers come when they have ended.
            "run" if self.greeted && self.run.is_none() => match request.keys::<Run>() {
                Ok(run) => {
                    let site = self.site.clone();
                    return self.start(id, move |output, stop| run.execute(id, output, site.as_deref(), stop));
                }
                Err(error) => Err(error),
            },
            "prepare" if self.greeted && self.run.is_none() => match (request.keys::<Prepare>(), self.placed()) {
                (Ok(files), Ok(site)) => return self.start(id, move |_, stop| files.execute(&site, stop)),
                (Err(error), _) | (_, Err(error)) => Err(error),
            },
            "digest" if self.greeted && self.run.is_none() => match (request.keys::<DigestKeys>(), self.placed()) {
                (Ok(files), Ok(site)) => return self.start(id, move |_, stop| files.execute(&site, stop)),
                (Err(error), _) | (_, Err(error)) => Err(error),
            },
            "probe" if self.greeted && self.run.is_none() => match request.keys::<Probe>() {
                Ok(probe) => return self.start(id, move |output, stop| execute_probe(&probe, id, output, stop)),
                Err(error) => Err(error),
            },
            "cost" if self.greeted && self.run.is_none() => match request.keys::<Cost>() {
                Ok(cost) => return self.start(id, move |output, stop| cost.execute(id, output, stop)),
                Err(error) => Err(error),
            },
            "reflect" if self.greeted && self.run.is_none() => match request.keys::<Reflect>() {
                Ok(reflect) => return self.start(id, move |output, stop| reflect.execute(id, output, stop)),
                Err(error) => Err(error),
            },
            "measure" if self.greeted && self.run.is_none() => match request.keys::<Measure>() {
                Ok(measure) => return self.start(id, move |_, stop| measure.execute(stop)),
                Err(error) => Err(error),
            },
            "copy" if self.greeted && self.run.is_none() => match request.keys::<Copy>() {
                Ok(copy) => return self.start_copy(id, move |output, control| copy.execute(id, output, control)),
                Err(error) => Err(error),
            },
            "verify" if self.greeted && self.run.is_none() => match request.keys::<Verify>() {
                Ok(verify) => return self.start(id, move |_, stop| verify.execute(stop)),
                Err(error) => Err(error),
            },
            "scan" if self.greeted && self.run.is_none() => match request.keys::<Scan>() {
                Ok(scan) => return self.start(id, move |_, stop| scan.execute(stop)),
                Err(error) => Err(error),
            },
            "removals" if self.greeted && self.run.is_none() => match request.keys::<ListRemovals>() {
                Ok(list) => return self.start(id, move |_, stop| list.execute(stop)),
                Err(error) => Err(error),
            },
            "forget" if self.greeted && self.run.is_none() => match request.keys::<Forget>() {
                Ok(forget) => return self.start(id, move |_, _| forget.execute()),
                Err(error) => Err(error),
            },
            "versions" if self.greeted && self.run.is_none() => match request.keys::<Versions>() {
                Ok(versions) => return self.start(id, move |_, stop| versions.execute(stop)),
                Err(error) => Err(error),
            },
            "hold" if self.greeted && self.run.is_none() => match request.keys::<Hold>() {
                Ok(hold) => return self.start(id, move |output, stop| hold.execute(id, output, stop)),
                Err(error) => Err(error),
            },
            _ => self.answer(request),
        };
        self.output.answer(id, result);
    }

    fn placed(&self) -> Result<Arc<Site>, AgentError> {
        self.site.clone().ok_or_else(|| AgentError::new(Kind::Protocol, "prepare and digest come after place"))
    }

    /// Does `work` on a thread of its own, as the run.
    fn start(
        &mut self,
        id: u64,
        work: impl FnOnce(&Output, &AtomicBool) -> Result<Value, AgentError> + Send + 'static,
    ) {
        self.start_copy(id, move |output, control| work(output, &control.stop));
    }

    /// See `start`; `work` looks at all of its control.
    fn start_copy(
        &mut self,
        id: u64,
        work: impl FnOnce(&Output, &Control) -> Result<Value, AgentError> + Send + 'static,
    ) {
        let control = Arc::new(Control::default());
        let (output, inputs, controls) = (self.output.clone(), self.inputs.clone(), Arc::clone(&control));
        let thread = thread::spawn(move || {
            // A fault of the agent's own is an answer too; what it changed is undone on the way.
            let ran = catch_unwind(AssertUnwindSafe(|| work(&output, &controls)));
            let result = ran.unwrap_or_else(|_| Err(AgentError::new(Kind::Kernel, "the agent's run panicked")));
            // The session waits for nothing else, or has ended.
            let _ = inputs.send(Input::Ended { id, result });
        });
        self.run = Some(Running { id, control, thread });
    }

    fn finish(&mut self, id: u64, result: Result<Value, AgentError>) {
        if let Some(run) = self.run.take() {
            let _ = run.thread.join();
        }
        self.output.answer(id, result);
    }

    /// Ends the run, if there is one, with all that it changed undone. One that does not end is left to its guard.
    fn end(&mut self) {
        let Some(run) = self.run.take() else { return };
        run.control.stop.store(true, Ordering::Relaxed);
        for _ in 0..END_STEPS {
            if run.thread.is_finished() {
                return;
            }
            let _ = rustix::thread::nanosleep(&END_STEP);
        }
        eprintln!("elephan-agent: the run does not end: its guard undoes what it changed");
        std::process::exit(i32::from(WRONG));
    }

    fn answer(&mut self, request: Request) -> Result<Value, AgentError> {
        match request.name.as_str() {
            "hello" => self.greet(&request.keys()?),
            name if !self.greeted => {
                Err(AgentError::new(Kind::Protocol, format_args!("{name} before hello: hello names the protocol")))
            }
            "stop" => self.stop(&request.keys()?),
            "steer" => self.steer(&request.keys()?),
            name if self.run.is_some() => {
                Err(AgentError::busy(format_args!("{name} during a run: only stop and steer are taken")))
            }
            "clean" => {
                let Bare {} = request.keys()?;
                Ok(json!(journal::clean()))
            }
            "check" => check::answer(&request.keys::<Check>()?),
            "put" => self.files.put(&request.keys()?),
            "place" => {
                // That of the run before goes first.
                self.site = None;
                Ok(self.site.insert(Arc::new(Site::make(&request.keys::<PlaceKeys>()?)?)).answer())
            }
            "leave" => {
                let Bare {} = request.keys()?;
                self.site = None;
                Ok(json!({}))
            }
            other => Err(AgentError::new(Kind::Protocol, format_args!("there is no request {other}"))),
        }
    }

    fn stop(&mut self, stop: &Stop) -> Result<Value, AgentError> {
        match &self.run {
            Some(run) if run.id == stop.run => {
                run.control.stop.store(true, Ordering::Relaxed);
                Ok(json!({}))
            }
            // It has ended meanwhile.
            _ => Ok(json!({})),
        }
    }

    fn steer(&mut self, steer: &Steer) -> Result<Value, AgentError> {
        // One that has ended meanwhile has nothing to steer.
        if let Some(run) = self.run.as_ref().filter(|run| run.id == steer.run) {
            steer.apply(&run.control);
        }
        Ok(json!({}))
    }

    fn greet(&mut self, hello: &Hello) -> Result<Value, AgentError> {
        if hello.protocol != PROTOCOL {
            let wanted = hello.protocol;
            let text = format!("protocol {wanted} was asked for, and elephan-agent {VERSION} speaks {PROTOCOL}");
            return Err(AgentError::new(Kind::Version, text));
        }
        self.greeted = true;
        self.lease = hello.lease_s.map(|seconds| Duration::from_secs(seconds.into()));
        let machine = std::env::consts::ARCH;
        Ok(json!({"protocol": PROTOCOL, "version": VERSION, "machine": machine, "pid": std::process::id()}))
    }
}

/// Does a request `probe`.
fn execute_probe(probe: &Probe, id: u64, output: &Output, stop: &AtomicBool) -> Result<Value, AgentError> {
    let token = hex::token(&probe.token)?;
    if !probe.answers {
        return Ok(json!(probe.ask(token, stop)?));
    }
    let echo = Echo::open(probe.local, probe.port, probe.peer, token)?;
    output.event(id, "listening", json!({"port": echo.port()}));
    probe.answer(&echo, stop);
    Ok(json!({}))
}

/// Version of the agent.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
