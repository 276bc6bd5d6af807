//! One end of a copy, from its specification to its report.

use crate::check;
use crate::destination::Destination;
use crate::error::CopyError;
use crate::meeting::{Greeting, Meeting};
use crate::quic_streams::Settling;
use crate::receiver::Receiver;
use crate::run_control::Control;
use crate::sender::Sender;
use crate::session::{lock, Session};
use crate::source::SourceTree;
use copy::{hex, EndReport, EndSpec, Event, Role};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;
use std::sync::OnceLock;

/// Runs one end until the copy is done, has failed or was stopped. Returns when all of its threads have ended and its
/// journal is synced; `told` is called on the calling thread.
///
/// # Errors
/// See [`crate::ErrorKind`]. A file that cannot be copied is no error: it is a fault of the report.
pub fn run_end(spec: &EndSpec, control: &Control, told: &mut dyn FnMut(Event)) -> Result<EndReport, CopyError> {
    let token = check::check(spec)?;
    let _settling = Settling::new(spec);
    let begin_ns = path_net::monotonic_ns();
    let (events, told_events) = channel();
    let session = Session::new(events);
    let meeting = Meeting { spec, control, session: &session, token };
    let mut removals = vec![];
    let (root, manifest) = match spec.role {
        Role::Send => {
            let tree = SourceTree::open(&spec.sources, &spec.options)?.of_copy(&spec.copy);
            let shape = tree.shape();
            let sender = Sender::new(&session, spec, tree)?;
            let user = OnceLock::new();
            meeting.run(&user, Some(shape), |_| Ok((sender, 0)), &told_events, told)?;
            match user.into_inner() {
                Some(sender) => sender.close(session.is_done())?,
                None => Default::default(),
            }
        }
        Role::Receive => {
            let place = OnceLock::new();
            let user = OnceLock::new();
            let open = |greeting: &Greeting| {
                let name = spec.destination.as_deref().unwrap_or_default();
                if spec.options.mirror {
                    crate::own_sources::check(&spec.sources, spec.options.link_to.as_deref(), name)?;
                }
                let destination = Destination::open(name, greeting.shape, &spec.options, &spec.copy)?
                    .with_sources(crate::own_sources::identities(&spec.sources));
                let receiver = Receiver::new(&session, spec, place.get_or_init(|| destination), greeting.shape)?;
                let resumed = receiver.resumed_bytes();
                Ok((receiver, resumed))
            };
            meeting.run(&user, None, open, &told_events, told)?;
            let closed = match user.into_inner() {
                Some(receiver) => {
                    removals = receiver.take_removals();
                    receiver.close(session.is_done())?
                }
                None => Default::default(),
            };
            if let (true, Some(destination)) = (session.is_done(), place.into_inner()) {
                destination.clear();
            }
            closed
        }
    };
    if let (false, Some(error)) = (session.is_done(), session.error()) {
        return Err(error);
    }
    let counters = &session.counters;
    let (faults, faults_more) = session.faults();
    let mounts = std::mem::take(&mut *lock(&session.mounts));
    Ok(EndReport {
        root: hex(&root),
        entries: counters.entries.load(Relaxed),
        files: counters.files_done.load(Relaxed),
        bytes: counters.whole_bytes.load(Relaxed),
        sent_bytes: counters.sent_bytes.load(Relaxed),
        reused_bytes: counters.reused_bytes.load(Relaxed),
        unread_files: counters.unread_files.load(Relaxed),
        retries: counters.retries.load(Relaxed),
        faults,
        faults_more,
        removed: counters.removed.load(Relaxed),
        removals,
        mounts,
        seconds: (path_net::monotonic_ns() - begin_ns) as f64 / 1e9,
        cpu_s: counters.cpu_ns.load(Relaxed) as f64 / 1e9,
        manifest,
    })
}
