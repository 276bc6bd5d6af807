//! Connections that come: who gets a place, and the thread that serves it.

use crate::clock;
use crate::connection;
use crate::places::Entry;
use crate::server::{most_connections, Shared};
use crate::wake::Waker;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread::JoinHandle;
use storage::iscsi::ConnectionId;

/// How often a listener looks whether it is to end, ms.
const LOOK_MS: i32 = 200;

/// Takes connections until the target is stopped. `most`: connections that may have logged in.
pub(crate) fn accept(shared: &Arc<Shared>, listener: &TcpListener, most: usize) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut refused = None;
    while !shared.stop.load(Ordering::Relaxed) {
        let mut fd = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry is there.
        unsafe { libc::poll(&mut fd, 1, LOOK_MS) };
        shared.handle_timeout();
        threads.retain(|thread| !thread.is_finished());
        let (socket, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => {
                // Out of descriptors, mostly: who wants in stays before the door, and the listener would not sleep.
                let why = format!("no connection can be taken: {error}");
                if refused.as_ref() != Some(&why) {
                    shared.log().always(why.clone());
                }
                refused = Some(why);
                // SAFETY: no entries are read: it waits.
                unsafe { libc::poll(std::ptr::null_mut(), 0, LOOK_MS) };
                continue;
            }
        };
        refused = None;
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        match enter(shared, &socket, peer, most).and_then(|id| serve(shared, id, socket, peer)) {
            Ok(thread) => threads.push(thread),
            Err(error) => shared.log().connection(clock::now(), format!("{peer}: closed: {error}")),
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// A number for a connection that has a place.
fn enter(shared: &Shared, socket: &TcpStream, peer: SocketAddr, most: usize) -> io::Result<ConnectionId> {
    // Those that are being closed have left their places and still have their threads.
    if shared.open_connections() >= most_connections(most) {
        return Err(io::Error::other(format!("{} connections are open", shared.open_connections())));
    }
    let (now, portal) = (clock::now(), socket.local_addr()?.to_string());
    let mut target = shared.target();
    let id = target.open(now, &portal, clock::entropy());
    let displaced = match shared.places().enter(now, id, peer.ip(), |id| target.login_progress(id)) {
        Entry::Taken => return Ok(id),
        Entry::Instead(displaced) => displaced,
        Entry::Refused(why) => {
            target.handle_closed(id);
            return Err(io::Error::other(why));
        }
    };
    target.close(displaced, "its login took too long, and others waited");
    drop(target);
    shared.wake(&[displaced], None);
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
        // Others may have been aborted or let go on by its end.
        let touched = {
            let mut target = shared.target();
            target.handle_closed(id);
            connection::touched(&mut target)
        };
        shared.remove_waker(id);
        shared.wake(&touched, Some(id));
        shared.log().connection(clock::now(), format!("{peer}: {why}"));
    })
}
