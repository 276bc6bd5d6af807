//! Two ends of a copy in one process, over TCP on loopback.

use crate::relay::{relay, Faults};
use copy::{CopyOptions, EndReport, EndSpec, Event, Role, Side, TlsSpec, TransportSpec};
use copy_net::{run_end, Control, CopyError};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::Arc;

/// Keys and names of one copy.
pub struct Pair {
    pub send: EndSpec,
    pub receive: EndSpec,
    pub send_control: Control,
    pub receive_control: Control,
    faults: Option<Arc<Faults>>,
}

/// Reports and events of both ends.
pub struct Ended {
    pub send: Result<EndReport, CopyError>,
    pub receive: Result<EndReport, CopyError>,
    pub send_events: Vec<Event>,
}

impl Pair {
    pub fn new(sources: &[&str], destination: &Path, options: CopyOptions) -> Pair {
        state_home();
        let keys = rcgen::generate_simple_self_signed(vec!["elephan".into()]).unwrap();
        let certificate = copy::hex(keys.cert.der());
        let name = blake3::hash(format!("{sources:?} {}", destination.display()).as_bytes());
        let send = EndSpec {
            role: Role::Send,
            side: Side::Connect,
            transport: TransportSpec::Tcp {
                congestion_control: None,
                send_buffer_bytes: None,
                receive_buffer_bytes: None,
                max_segment_bytes: None,
            },
            streams: 3,
            local: None,
            peer: Some([127, 0, 0, 1].into()),
            ports: None,
            port: 0,
            token: copy::hex(&[7; 32]),
            tls: Some(TlsSpec { certificate: certificate.clone(), key: None }),
            copy: copy::hex(&name.as_bytes()[..16]),
            sources: sources.iter().map(|source| source.to_string()).collect(),
            destination: None,
            options,
            rate_bps: None,
            connect_s: 10.0,
            silence_s: 20.0,
            progress_ms: 100,
        };
        let receive = EndSpec {
            role: Role::Receive,
            side: Side::Listen,
            tls: Some(TlsSpec { certificate, key: Some(copy::hex(&keys.signing_key.serialize_der())) }),
            sources: vec![],
            destination: Some(destination.to_string_lossy().into_owned()),
            ..send.clone()
        };
        Pair { send, receive, send_control: Control::default(), receive_control: Control::default(), faults: None }
    }

    /// The other end listens.
    pub fn turned(mut self) -> Pair {
        std::mem::swap(&mut self.send.side, &mut self.receive.side);
        std::mem::swap(&mut self.send.tls, &mut self.receive.tls);
        self
    }

    /// Connections go through a relay.
    pub fn through(mut self, faults: Arc<Faults>) -> Pair {
        self.faults = Some(faults);
        self
    }

    /// Runs both ends to their ends.
    pub fn run(&self) -> Ended {
        self.run_watched(&|_| {})
    }

    /// Runs both ends; `watch` sees the events of both.
    pub fn run_watched(&self, watch: &(dyn Fn(&Event) + Sync)) -> Ended {
        let (give, take) = channel();
        let (listen, connect) = match self.send.side {
            Side::Listen => ((&self.send, &self.send_control), (&self.receive, &self.receive_control)),
            Side::Connect => ((&self.receive, &self.receive_control), (&self.send, &self.send_control)),
        };
        std::thread::scope(|scope| {
            let listener = scope.spawn(move || {
                let mut events = vec![];
                let result = run_end(listen.0, listen.1, &mut |event| {
                    if let Event::Listening { port } = event {
                        let _ = give.send(port);
                    }
                    watch(&event);
                    events.push(event);
                });
                (result, events)
            });
            let connector = scope.spawn(move || {
                let mut events = vec![];
                let Ok(port) = take.recv() else {
                    return (Err(CopyError { kind: copy_net::ErrorKind::Peer, text: "no port".into() }), events);
                };
                let port = match &self.faults {
                    Some(faults) => relay(port, faults.clone()),
                    None => port,
                };
                let spec = EndSpec { port, ..connect.0.clone() };
                let result = run_end(&spec, connect.1, &mut |event| {
                    watch(&event);
                    events.push(event);
                });
                (result, events)
            });
            let (listened, connected) = (listener.join().unwrap(), connector.join().unwrap());
            let (send, receive) = match self.send.side {
                Side::Listen => (listened, connected),
                Side::Connect => (connected, listened),
            };
            Ended { send: send.0, receive: receive.0, send_events: send.1 }
        })
    }
}

/// States of this process's copies go below the target's own temporary folder.
fn state_home() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{}", std::process::id()));
        std::env::set_var("XDG_STATE_HOME", path);
    });
}
