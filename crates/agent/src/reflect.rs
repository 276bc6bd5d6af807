//! Path tests: a STAMP reflector for one key, and tests from this host.

use crate::error::{AgentError, Kind};
use crate::output::Output;
use path_net::{parse_key, run_test, PathError, ReflectorServer};
use path_test::reflector::ReflectorConfig;
use path_test::stamp::Key;
use serde::Deserialize;
use serde_json::{json, Map, Value};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

/// Keys of the request `reflect`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reflect {
    /// Own address; absent: all of them.
    local: Option<IpAddr>,
    /// Range of ports, of which the first free one is taken; absent: the kernel chooses.
    ports: Option<(u16, u16)>,
    /// HMAC key, hexadecimal: packets without it have no answer.
    key: String,
}

fn error(error: PathError) -> AgentError {
    let kind = match error {
        PathError::Stopped => Kind::Stopped,
        PathError::Input(_) => Kind::Input,
        PathError::Io { .. } => Kind::Kernel,
    };
    AgentError::new(kind, error)
}

impl Reflect {
    /// Answers packets with the key until `stop`; returns what it has done.
    pub fn execute(&self, id: u64, output: &Output, stop: &AtomicBool) -> Result<Value, AgentError> {
        let key = parse_key(&self.key).map_err(error)?;
        let mut server = self.open(&key)?;
        let port = server.local().first().map_or(0, SocketAddr::port);
        output.event(id, "listening", json!({ "port": port }));
        server.serve(|| stop.load(Ordering::Relaxed)).map_err(error)?;
        Ok(json!(server.counts()))
    }

    fn open(&self, key: &[u8]) -> Result<ReflectorServer, AgentError> {
        let (first, last) = self.ports.unwrap_or((0, 0));
        if first > last || (self.ports.is_some() && first == 0) {
            return Err(AgentError::input("reflect: ports: [first, last] of 1 to 65535, in order"));
        }
        let locals = match self.local {
            Some(local) => vec![local],
            None => vec![IpAddr::from([0; 4]), IpAddr::from([0; 16])],
        };
        let mut refused = None;
        for port in first..=last {
            let addresses: Vec<SocketAddr> = locals.iter().map(|local| SocketAddr::new(*local, port)).collect();
            // Shorter replies are safe: they answer nobody without the key, and are never longer than what came.
            let config = ReflectorConfig { key: Some(Key::new(key)), is_stateful: true, short_replies: true };
            match ReflectorServer::open(&addresses, config) {
                Ok(server) => return Ok(server),
                Err(error) => refused = Some(error),
            }
        }
        let text = refused.map_or_else(|| "reflect: no port".into(), |error| error.to_string());
        Err(AgentError::new(Kind::Port, text))
    }
}

/// Keys of the request `measure`: those of the test (`path_net::run_test`).
#[derive(Deserialize)]
pub struct Measure {
    #[serde(flatten)]
    test: Map<String, Value>,
}

impl Measure {
    /// Runs the test from this host; returns its outcome.
    pub fn execute(&self, stop: &AtomicBool) -> Result<Value, AgentError> {
        let test = Value::Object(self.test.clone()).to_string();
        let outcome = run_test(&test, &mut || stop.load(Ordering::Relaxed), &mut |_| {}).map_err(error)?;
        if outcome["stopped"] == json!(true) {
            return Err(AgentError::new(Kind::Stopped, "the test was stopped before its end"));
        }
        Ok(outcome)
    }
}
