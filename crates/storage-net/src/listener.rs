//! Accepts connections, and starts a thread for each one admitted.

use crate::clock;
use crate::connection;
use crate::logins::max_open_connections;
use crate::shared::{ready_connections, Shared};
use crate::waker::{milliseconds, Waker};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread::JoinHandle;
use storage::iscsi::{ConnectionId, LoginProgress};

/// Time between two looks of a listener at the stop flag.
const POLL: Timespec = milliseconds(200);

/// Takes connections until the target is stopped. `most`: connections that may have logged in.
pub(crate) fn accept(shared: &Arc<Shared>, listener: &TcpListener, max: usize) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut refused = None;
    while !shared.stop.load(Ordering::Relaxed) {
        // A wait that a signal cut short is followed by the next.
        let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&POLL));
        shared.handle_timeout();
        threads.retain(|thread| !thread.is_finished());
        let (socket, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => {
                // Mostly out of descriptors. The connection stays in the backlog: stop polling the listener, or it
                // wakes at once.
                let why = format!("no connection can be taken: {error}");
                if refused.as_ref() != Some(&why) {
                    shared.log().unlimited(why.clone());
                }
                refused = Some(why);
                let _ = poll(&mut [], Some(&POLL));
                continue;
            }
        };
        refused = None;
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        match admit(shared, &socket, peer, max).and_then(|id| serve(shared, id, socket, peer)) {
            Ok(thread) => threads.push(thread),
            Err(error) => shared.log().connection(clock::now(), format!("{peer}: closed: {error}")),
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// Admits a connection; returns its number.
fn admit(shared: &Shared, socket: &TcpStream, peer: SocketAddr, max: usize) -> io::Result<ConnectionId> {
    // Closing connections no longer count as logins, but still have threads.
    if shared.open_connections() >= max_open_connections(max) {
        return Err(io::Error::other(format!("{} connections are open", shared.open_connections())));
    }
    let (now, portal) = (clock::now(), socket.local_addr()?.to_string());
    let mut target = shared.target();
    let id = target.open(now, &portal, clock::entropy());
    target.set_peer(id, admission::network(peer.ip()));
    let displaced = {
        let mut logins = shared.pending_logins();
        logins.retain(|id| target.login_progress(*id).is_some());
        // A login in progress stays while others have sent nothing.
        logins.admit(now, id, peer.ip(), |id| target.login_progress(*id) == Some(LoginProgress::Begun))
    };
    if let Some(displaced) = displaced {
        target.close(displaced, "it had not logged in, and another connection took its place");
        drop(target);
        shared.wake(&[displaced], None);
    }
    Ok(id)
}

fn serve(shared: &Arc<Shared>, id: ConnectionId, socket: TcpStream, peer: SocketAddr) -> io::Result<JoinHandle<()>> {
    let thread = begin(shared, id, socket, peer);
    if thread.is_err() {
        shared.target().handle_closed(id);
        shared.remove_waker(id);
    }
    thread
}

fn begin(shared: &Arc<Shared>, id: ConnectionId, socket: TcpStream, peer: SocketAddr) -> io::Result<JoinHandle<()>> {
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)?;
    let waker = Arc::new(Waker::new()?);
    shared.add_waker(id, &waker);
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("iscsi".to_owned()).spawn(move || {
        let why = connection::run(&shared, id, &socket, &waker);
        // Its end may have aborted or unblocked commands of other connections.
        let ready = {
            let mut target = shared.target();
            target.handle_closed(id);
            ready_connections(&mut target)
        };
        shared.remove_waker(id);
        shared.wake(&ready, Some(id));
        shared.log().connection(clock::now(), format!("{peer}: {why}"));
    })
}
