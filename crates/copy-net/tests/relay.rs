//! A relay between two ends: it can cut, damage and hold back what goes through.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Faults of connections; the first one is that of messages.
#[derive(Default)]
pub struct Faults {
    /// Each data connection is cut after so many bytes towards the listener; 0: not.
    pub cut_after: AtomicU64,
    /// Cuts that are left.
    pub cuts: AtomicU64,
    /// The byte at this place of the first data connection that gets there is another; 0: none.
    pub damage_at: AtomicU64,
    /// Nothing goes through while set.
    pub is_held: AtomicBool,
}

/// Listens, and connects each connection to `port` of this host.
pub fn relay(port: u16, faults: Arc<Faults>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", port))) else { return };
            let pairs =
                [(client.try_clone(), server.try_clone(), true), (server.try_clone(), client.try_clone(), false)];
            for (from, to, is_forth) in pairs {
                let (Ok(from), Ok(to)) = (from, to) else { continue };
                let faults = faults.clone();
                std::thread::spawn(move || pass(from, to, number, is_forth, &faults));
            }
        }
    });
    own
}

fn pass(mut from: TcpStream, mut to: TcpStream, number: usize, is_forth: bool, faults: &Faults) {
    let mut buffer = [0; 16_384];
    let mut passed = 0_u64;
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        while faults.is_held.load(Relaxed) {
            std::thread::yield_now();
        }
        if number > 0 && is_forth {
            let cut = faults.cut_after.load(Relaxed);
            if cut > 0 && passed + count as u64 > cut && faults.cuts.load(Relaxed) > 0 {
                faults.cuts.fetch_sub(1, Relaxed);
                break;
            }
            let damage = faults.damage_at.load(Relaxed);
            if (passed..passed + count as u64).contains(&damage) && damage > 0 && faults.damage_at.swap(0, Relaxed) > 0
            {
                buffer[(damage - passed) as usize] ^= 1;
            }
        }
        passed += count as u64;
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
