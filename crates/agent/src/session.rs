//! One session: requests from the front, in turn, until it goes.

use crate::check::{self, Check};
use crate::error::{AgentError, Kind};
use crate::files::Files;
use crate::input::{self, Input, Request};
use crate::output::Output;
use crate::WRONG;
use serde::Deserialize;
use serde_json::{json, Value};
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::thread;

/// Version of the protocol: docs/design/agent.md.
pub const PROTOCOL: u32 = 1;

/// Requests that wait at most; the front's channel holds the others.
const DEPTH: usize = 16;

/// Keys of the request `hello`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    protocol: u32,
}

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
    thread::spawn(move || input::read_all(from, &reading));
    let mut session = Session { output, inputs, greeted: false, files: Files::default() };
    let mut code = ExitCode::SUCCESS;
    for input in received {
        match input {
            Input::Request(request) => session.handle(request),
            Input::Ended { id, result } => session.output.answer(id, result),
            Input::Junk(error) => {
                eprintln!("elephan-agent: {}", error.text);
                session.output.answer(0, Err(error));
                code = ExitCode::from(WRONG);
                break;
            }
            Input::End => break,
        }
    }
    drop(session);
    // All answers are written.
    let _ = writer.join();
    code
}

struct Session {
    output: Output,
    #[allow(dead_code, reason = "of the run's thread, which tells of its end")]
    inputs: SyncSender<Input>,
    greeted: bool,
    files: Files,
}

impl Session {
    fn handle(&mut self, request: Request) {
        let id = request.id;
        let result = self.answer(request);
        self.output.answer(id, result);
    }

    fn answer(&mut self, request: Request) -> Result<Value, AgentError> {
        match request.name.as_str() {
            "hello" => self.greet(&request.keys()?),
            name if !self.greeted => {
                Err(AgentError::new(Kind::Protocol, format_args!("{name} before hello: hello names the protocol")))
            }
            "check" => check::answer(&request.keys::<Check>()?),
            "put" => self.files.put(&request.keys()?),
            other => Err(AgentError::new(Kind::Protocol, format_args!("there is no request {other}"))),
        }
    }

    fn greet(&mut self, hello: &Hello) -> Result<Value, AgentError> {
        if hello.protocol != PROTOCOL {
            let wanted = hello.protocol;
            let text = format!("protocol {wanted} was asked for, and elephan-agent {VERSION} speaks {PROTOCOL}");
            return Err(AgentError::new(Kind::Version, text));
        }
        self.greeted = true;
        let machine = std::env::consts::ARCH;
        Ok(json!({"protocol": PROTOCOL, "version": VERSION, "machine": machine, "pid": std::process::id()}))
    }
}

/// Version of the agent.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
