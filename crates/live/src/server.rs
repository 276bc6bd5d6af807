//! The target on real sockets: portals, connections, and what they share.

use crate::clock;
use crate::connection;
use crate::file::FileMedium;
use crate::patience::Lookers;
use crate::pool::Pool;
use crate::socket::set_congestion;
use crate::wake::Waker;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use storage::iscsi::{ConnectionId, Target, TargetConfig, Work};
use storage::scsi::{Device, Geometry, Identity, Lun, LunConfig, Medium};

/// A file to be served.
#[derive(Clone, Debug)]
pub struct LunFile {
    /// Its place.
    pub path: PathBuf,
    /// Writes are refused.
    pub read_only: bool,
    /// Others that say so too may use the file as well; else it is this target's alone, or that of readers.
    pub shared: bool,
    /// Bytes of a logical block: 512 or 4096.
    pub block_bytes: u32,
}

/// What a server is.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The target.
    pub target: TargetConfig,
    /// Its units, by number.
    pub luns: Vec<LunFile>,
    /// Where to listen; port 0: any that is free.
    pub portals: Vec<SocketAddr>,
    /// Congestion control of the connections, by the kernel's name; None: the namespace's default.
    pub stack: Option<String>,
    /// Connections at a time; a further one is closed at once.
    pub max_connections: usize,
}

/// What connections share.
pub(crate) struct Shared {
    target: Mutex<Target>,
    media: Vec<FileMedium>,
    pools: Vec<Arc<Pool>>,
    /// For the threads of the pools.
    own: Weak<Shared>,
    wakers: Mutex<BTreeMap<ConnectionId, Arc<Waker>>>,
    pub stop: AtomicBool,
    pub(crate) lookers: Lookers,
    /// Why connections ended, the last ones.
    log: Mutex<Vec<String>>,
    /// Connections that there were.
    accepted: AtomicU64,
}

/// Lines of the log that are kept.
const LOG_LINES: usize = 1000;

impl Shared {
    pub(crate) fn target(&self) -> MutexGuard<'_, Target> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wakers(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, Arc<Waker>>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Performs an operation.
    pub(crate) fn perform(&self, lun: usize, op: &storage::scsi::Op) -> storage::scsi::Outcome {
        self.media[lun].perform(op)
    }

    /// Performs an operation if that waits for no drive; else has it performed. None: the outcome comes later.
    pub(crate) fn begin(&self, work: Work) -> Option<(u64, storage::scsi::Outcome)> {
        let medium = &self.media[work.lun];
        if let Some(outcome) = medium.at_once(&work.op) {
            return Some((work.id, outcome));
        }
        let back = self.pools[work.lun].put(&self.own, work)?;
        Some((back.id, self.perform(back.lun, &back.op)))
    }

    /// Wakes the connections, but the caller's own, that have something to send.
    pub(crate) fn wake(&self, ids: &[ConnectionId], but: Option<ConnectionId>) {
        if ids.iter().all(|&id| Some(id) == but) {
            return;
        }
        let wakers = self.wakers();
        ids.iter().filter(|&&id| Some(id) != but).filter_map(|id| wakers.get(id)).for_each(|waker| waker.wake());
    }

    fn note(&self, line: String) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() < LOG_LINES {
            log.push(line);
        }
    }
}

/// A running target.
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
}

/// Names of a unit that stay the same as long as the target's name and the unit's number do.
fn identity(target: &str, index: usize) -> Identity {
    let hash = format!("{target},{index}").bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        // FNV-1a.
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Identity {
        vendor: "ELEPHAN".to_owned(),
        product: "FILE".to_owned(),
        revision: "1".to_owned(),
        serial: format!("{hash:016x}"),
        target: target.to_owned(),
    }
}

impl Server {
    /// Opens the files, listens, and serves in threads of its own.
    ///
    /// # Errors
    /// Which file or portal cannot be opened, and why.
    pub fn start(config: ServerConfig) -> io::Result<Server> {
        let named = |what: String| move |error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"));
        let mut media = Vec::new();
        let mut luns = Vec::new();
        for (index, lun) in config.luns.iter().enumerate() {
            let medium = FileMedium::open(&lun.path, lun.read_only, lun.shared, lun.block_bytes)
                .map_err(named(lun.path.display().to_string()))?;
            let geometry = Geometry { blocks: medium.blocks(), block_bytes: lun.block_bytes, physical_bytes: 4096 };
            luns.push(Lun::new(LunConfig {
                geometry,
                identity: identity(&config.target.name, index),
                read_only: lun.read_only,
                thin: true,
                write_cache: true,
            }));
            media.push(medium);
        }
        let mut listeners = Vec::new();
        for portal in &config.portals {
            let listener = TcpListener::bind(portal).map_err(named(portal.to_string()))?;
            listener.set_nonblocking(true)?;
            set_congestion(listener.as_raw_fd(), config.stack.as_deref())?;
            listeners.push((listener.local_addr()?, listener));
        }
        let shared = Arc::new_cyclic(|own| Shared {
            pools: media.iter().map(|_| Arc::default()).collect(),
            own: Weak::clone(own),
            target: Mutex::new(Target::new(config.target, Device::new(luns))),
            media,
            wakers: Mutex::default(),
            stop: AtomicBool::new(false),
            lookers: Lookers::new(),
            log: Mutex::default(),
            accepted: AtomicU64::new(0),
        });
        let mut server = Server { shared, addresses: Vec::new(), threads: Vec::new() };
        for (address, listener) in listeners {
            server.addresses.push(address);
            let shared = Arc::clone(&server.shared);
            let most = config.max_connections;
            server.threads.push(std::thread::spawn(move || accept(&shared, &listener, most)));
        }
        Ok(server)
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Why connections ended since the last call.
    pub fn drain_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sessions, connections now, connections ever.
    pub fn counts(&self) -> (usize, usize, u64) {
        let target = self.shared.target();
        (target.session_count(), target.connection_count(), self.shared.accepted.load(Ordering::Relaxed))
    }

    /// Asks initiators to log out.
    pub fn request_logout(&self, seconds: u16) {
        self.shared.target().request_logout(seconds);
        self.shared.wakers().values().for_each(|waker| waker.wake());
    }

    /// Closes everything. What was acknowledged is in the files.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.wakers().values().for_each(|waker| waker.wake());
        for thread in self.threads.drain(..) {
            // A listener that panicked has nothing left to close.
            let _ = thread.join();
        }
        // After the connections, which give work.
        self.shared.pools.iter().for_each(|pool| pool.stop());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How often a listener looks whether it is to end, ms.
const LOOK_MS: i32 = 200;

fn accept(shared: &Arc<Shared>, listener: &TcpListener, most: usize) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut refused = None;
    while !shared.stop.load(Ordering::Relaxed) {
        let mut fd = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry is there.
        unsafe { libc::poll(&mut fd, 1, LOOK_MS) };
        shared.target().handle_timeout(clock::now());
        threads.retain(|thread| !thread.is_finished());
        for (number, medium) in shared.media.iter().enumerate() {
            if let Some(news) = medium.news() {
                shared.note(format!("LUN {number}: {news}"));
            }
        }
        let (socket, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => {
                // Out of descriptors, mostly: who wants in stays before the door, and the listener would not sleep.
                let why = format!("no connection can be taken: {error}");
                if refused.as_ref() != Some(&why) {
                    shared.note(why.clone());
                }
                refused = Some(why);
                // SAFETY: no entries are read: it waits.
                unsafe { libc::poll(std::ptr::null_mut(), 0, LOOK_MS) };
                continue;
            }
        };
        refused = None;
        if threads.len() >= most {
            shared.note(format!("{peer}: closed, {most} connections are open already"));
            continue;
        }
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        match serve(shared, socket, peer) {
            Ok(thread) => threads.push(thread),
            Err(error) => shared.note(format!("{peer}: {error}")),
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

fn serve(shared: &Arc<Shared>, socket: TcpStream, peer: SocketAddr) -> io::Result<JoinHandle<()>> {
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)?;
    let portal = socket.local_addr()?.to_string();
    let waker = Arc::new(Waker::new()?);
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("iscsi".to_owned()).spawn(move || {
        let id = shared.target().open(clock::now(), &portal, clock::entropy());
        shared.wakers().insert(id, Arc::clone(&waker));
        let why = connection::run(&shared, id, &socket, &waker);
        // Others may have been aborted or let go on by its end.
        let touched = {
            let mut target = shared.target();
            target.handle_closed(id);
            connection::touched(&mut target)
        };
        shared.wakers().remove(&id);
        shared.wake(&touched, Some(id));
        shared.note(format!("{peer}: {why}"));
    })
}
