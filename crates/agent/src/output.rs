//! Answers and events on their way to the front: a bounded queue and a thread that writes.

use crate::error::AgentError;
use crate::frame;
use serde_json::{json, Value};
use std::io::Write;
use std::sync::mpsc::{sync_channel, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

/// Frames that wait at most.
const DEPTH: usize = 32;

/// The way to the front; clones share the queue.
#[derive(Clone)]
pub struct Output(SyncSender<Value>);

impl Output {
    /// Starts the thread that writes to `into`; it calls `closed` when the front reads no more, and ends when the last
    /// clone is gone.
    pub fn start(
        mut into: impl Write + Send + 'static,
        closed: impl FnOnce() + Send + 'static,
    ) -> (Output, JoinHandle<()>) {
        let (sender, waiting) = sync_channel::<Value>(DEPTH);
        let writer = thread::spawn(move || {
            for message in waiting {
                let written = serde_json::to_vec(&message).map_err(Into::into);
                if let Err(error) = written.and_then(|bytes| frame::write(&mut into, &bytes)) {
                    eprintln!("elephan-agent: writing to the front: {error}");
                    return closed();
                }
            }
        });
        (Output(sender), writer)
    }

    /// Sends the answer to request `id`. Waits while the queue is full.
    pub fn answer(&self, id: u64, result: Result<Value, AgentError>) {
        self.send(match result {
            Ok(answer) => json!({"id": id, "answer": answer}),
            Err(error) => json!({"id": id, "error": error}),
        });
    }

    /// Sends an event of request `id`, `fields` an object. Waits while the queue is full.
    pub fn event(&self, id: u64, name: &str, fields: Value) {
        self.send(event(id, name, fields));
    }

    /// Sends an event that the front may miss: it is dropped while the queue is full.
    pub fn passing_event(&self, id: u64, name: &str, fields: Value) {
        match self.0.try_send(event(id, name, fields)) {
            // Nobody reads any more: the writer has told.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }

    fn send(&self, message: Value) {
        // Nobody reads any more: the writer has told.
        let _ = self.0.send(message);
    }
}

fn event(id: u64, name: &str, fields: Value) -> Value {
    let mut message = json!({"id": id, "event": name});
    if let (Value::Object(message), Value::Object(fields)) = (&mut message, fields) {
        message.extend(fields);
    }
    message
}
