//! The target on real sockets: portals, connections, and what they share.

use crate::buffer_pool::POOL_BYTES;
use crate::clock;
use crate::file::FileMedium;
use crate::listener::accept;
use crate::logins::max_open_connections;
use crate::pdu_reader::BUFFER_BYTES;
use crate::shared::Shared;
use crate::socket::set_congestion;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread::JoinHandle;
use storage::iscsi::{MemoryConfig, Target, TargetConfig};
use storage::scsi::{Device, Geometry, Identity, Lun, LunConfig};

/// A file to be served.
#[derive(Clone, Debug)]
pub struct LunFile {
    /// Its path.
    pub path: PathBuf,
    /// Writes are refused.
    pub read_only: bool,
    /// Others that share the file may use it too; else it is locked for this target, or for readers.
    pub shared: bool,
    /// Bytes of a logical block: 512 or 4096.
    pub block_bytes: u32,
}

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The target.
    pub target: TargetConfig,
    /// Its units, by number.
    pub luns: Vec<LunFile>,
    /// Addresses to listen on; port 0: any that is free.
    pub portals: Vec<SocketAddr>,
    /// Congestion control of the connections, by the kernel's name; None: the namespace's default.
    pub congestion_control: Option<String>,
    /// Connections that have logged in, at a time; a further login is refused.
    pub max_connections: usize,
    /// All memory that it takes for initiators, bytes; at least what [`plan_memory`] says.
    pub memory_bytes: u64,
}

/// The memory budget of a target.
fn memory(max_connections: usize, limit_bytes: u64) -> MemoryConfig {
    MemoryConfig {
        limit_bytes: Some(limit_bytes.saturating_sub(POOL_BYTES as u64)),
        connections: max_open_connections(max_connections) as u64,
        buffer_bytes: BUFFER_BYTES as u64,
        // FirstBurstLength of initiators that do not negotiate it (RFC 7143, 13.14).
        small_bytes: 65_536,
        ..MemoryConfig::UNLIMITED
    }
}

/// Least memory of a target with `max_connections`, bytes; and FirstBurstLength of the first session
/// of those that have `memory_bytes`, where `first_burst_bytes` would suit it, and `window` commands.
pub fn plan_memory(max_connections: usize, memory_bytes: u64, window: u32, first_burst_bytes: u32) -> (u64, u32) {
    let memory = memory(max_connections, memory_bytes);
    (memory.least_bytes() + POOL_BYTES as u64, memory.first_burst_bytes(window, first_burst_bytes))
}

/// A running target.
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
}

/// The identity of a LUN, stable for a target name and LUN number.
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
    /// A file or portal that cannot be opened, with the reason.
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
            set_congestion(&listener, config.congestion_control.as_deref())?;
            listeners.push((listener.local_addr()?, listener));
        }
        let memory = memory(config.max_connections, config.memory_bytes);
        if memory.limit_bytes.is_some_and(|limit| limit < memory.least_bytes()) {
            let least = memory.least_bytes() + POOL_BYTES as u64;
            let text = format!("{} bytes of memory: at least {least} are needed", config.memory_bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let target = TargetConfig { max_connections: Some(config.max_connections), memory, ..config.target };
        let shared = Shared::new(Target::new(target, Device::new(luns)), media);
        let mut server = Server { shared, addresses: Vec::new(), threads: Vec::new() };
        for (address, listener) in listeners {
            server.addresses.push(address);
            let shared = Arc::clone(&server.shared);
            let max = config.max_connections;
            server.threads.push(std::thread::spawn(move || accept(&shared, &listener, max)));
        }
        Ok(server)
    }

    /// Returns the addresses that it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Log lines since the last call: at most one per second on connections, with the number of suppressed ones.
    pub fn drain_log(&self) -> Vec<String> {
        self.shared.log().drain(clock::now(), self.shared.stop.load(Ordering::Relaxed))
    }

    /// Sessions, connections now, connections ever.
    pub fn counts(&self) -> (usize, usize, u64) {
        let target = self.shared.target();
        (target.session_count(), target.connection_count(), self.shared.accepted.load(Ordering::Relaxed))
    }

    /// Asks initiators to log out.
    pub fn request_logout(&self, seconds: u16) {
        self.shared.target().request_logout(seconds);
        self.shared.wake_all();
    }

    /// Closes everything. Acknowledged data is in the files.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.wake_all();
        for thread in self.threads.drain(..) {
            // A listener that panicked has nothing left to close.
            let _ = thread.join();
        }
        // After the connections, which submit work.
        self.shared.stop_io_threads();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
