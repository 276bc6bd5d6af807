//! Both ends of a copy in this process, over loopback.

use copy::{CopyOptions, EndReport, EndSpec, Event, Role, Side, TransportSpec};
use copy_net::{run_end, Control, CopyError};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::Once;

/// Both reports and what the sender knew to be durable.
pub struct Ends {
    pub sender: Result<EndReport, CopyError>,
    pub receiver: Result<EndReport, CopyError>,
    /// Bytes that the sender was told to be durable, at last.
    pub acknowledged: u64,
}

/// Points the states that outlive a copy below the target's temporary folder.
pub fn own_state_home() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{}", std::process::id()));
        std::env::set_var("XDG_STATE_HOME", path);
    });
}

/// The specification of one end.
pub fn spec(role: Role, side: Side, copy: &str, options: &CopyOptions) -> EndSpec {
    EndSpec {
        role,
        side,
        transport: TransportSpec::Tcp {
            congestion_control: None,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            max_segment_bytes: None,
        },
        streams: 2,
        local: Some("127.0.0.1".parse().unwrap()),
        peer: Some("127.0.0.1".parse().unwrap()),
        ports: None,
        port: 0,
        token: "5a".repeat(32),
        tls: None,
        copy: copy.to_owned(),
        sources: vec![],
        destination: None,
        options: options.clone(),
        rate_bps: None,
        connect_s: 5.0,
        silence_s: 5.0,
        progress_ms: 5,
    }
}

/// One attempt. `tune` changes both specifications; `watch` is asked with each of the sender's events whether to stop.
pub fn attempt(
    sources: &[String],
    destination: &str,
    copy: &str,
    options: &CopyOptions,
    tune: &dyn Fn(&mut EndSpec),
    watch: &(dyn Fn(&Event) -> bool + Sync),
) -> Ends {
    own_state_home();
    let mut receive =
        EndSpec { destination: Some(destination.to_owned()), ..spec(Role::Receive, Side::Listen, copy, options) };
    let mut send = EndSpec { sources: sources.to_vec(), ..spec(Role::Send, Side::Connect, copy, options) };
    tune(&mut receive);
    tune(&mut send);
    let (ports, port) = channel();
    let mut acknowledged = 0;
    let (sender_control, receiver_control) = (Control::default(), Control::default());
    let (sender, receiver) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            run_end(&receive, &receiver_control, &mut |event| {
                if let Event::Listening { port } = event {
                    let _ = ports.send(port);
                }
            })
        });
        let sender = match port.recv_timeout(std::time::Duration::from_secs(10)) {
            Ok(port) => run_end(&EndSpec { port, ..send.clone() }, &sender_control, &mut |event| {
                if let Event::Progress { durable_bytes, .. } = &event {
                    acknowledged = *durable_bytes;
                }
                if watch(&event) {
                    receiver_control.stop.store(true, Ordering::Relaxed);
                }
            }),
            Err(_) => run_end(&send, &sender_control, &mut |_| {}),
        };
        (sender, receiver.join().unwrap())
    });
    Ends { sender, receiver, acknowledged }
}
