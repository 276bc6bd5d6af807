//! Both directions between two devices, as threads that end when told.

use crate::direction::{Direction, DirectionReport};
use crate::packet::Pool;
use crate::tun::{Tun, TunError};
use link::{Link, LinkConfig};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

/// One end: the file of its namespace and the name of the device to make there.
pub struct End<'a> {
    /// Such as /run/netns/NAME.
    pub namespace: &'a str,
    /// At most 15 bytes.
    pub device: &'a str,
}

/// Two devices and what lies between them.
pub struct Path {
    devices: Arc<[Tun; 2]>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<DirectionReport>>,
}

impl Path {
    /// Makes the devices. Nothing is carried before [`Path::start`], so that they can be configured first.
    ///
    /// # Errors
    /// Which step the kernel refused, and why.
    pub fn open(ends: [End<'_>; 2]) -> Result<Path, TunError> {
        let [a, b] = ends.map(|end| Tun::open(end.namespace, end.device));
        let stop = Arc::new(AtomicBool::new(false));
        Ok(Path { devices: Arc::new([a?, b?]), stop, threads: Vec::new() })
    }

    /// Carries packets: `links[0]` from the first end to the second, `links[1]` back, each with the seed of its random
    /// streams. `mtu_bytes` is that of the devices. Does nothing when packets are carried already.
    ///
    /// # Panics
    /// When [`LinkConfig::check`] refuses a configuration.
    pub fn start(&mut self, links: [(LinkConfig, u64); 2], mtu_bytes: usize) {
        if !self.threads.is_empty() {
            return;
        }
        for (from, (config, seed)) in links.into_iter().enumerate() {
            let link = Link::new(config, seed);
            let (devices, stop) = (Arc::clone(&self.devices), Arc::clone(&self.stop));
            self.threads.push(std::thread::spawn(move || {
                let (from, to) = (&devices[from], &devices[1 - from]);
                Direction { from, to, link, pool: Pool::new(mtu_bytes), stop: &stop, spin_ns: 0 }.run()
            }));
        }
    }

    /// Whether a direction has ended that nobody asked to end.
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Ends both directions and says what each did, in the order of the links; nothing when none was started.
    pub fn stop(&mut self) -> Vec<DirectionReport> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = |thread: JoinHandle<DirectionReport>| {
            thread.join().unwrap_or_else(|_| DirectionReport {
                failure: Some("the emulator's thread panicked".into()),
                ..DirectionReport::default()
            })
        };
        self.threads.drain(..).map(ended).collect()
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.stop();
    }
}
