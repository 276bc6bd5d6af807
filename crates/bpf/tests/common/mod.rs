//! A connection of this machine's TCP over loopback under a control, and what a machine may lack for it.

use bpf::{loaded, LoadedObject, Log, ObjectFile, Settings};
use congestion::{compile_bpf, CompileError};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

/// Registration by a link, which ends with its process, came with 6.4; cong_control's arguments with 6.10.
pub const LINKS: (u32, u32) = (6, 4);
pub const CONG_CONTROL: (u32, u32) = (6, 10);

/// A file with every hook and every accessor.
pub const EVERYTHING: &str = include_str!("../../../congestion/tests/c/everything.c");

/// Compiles `code` for BPF. None, with a word on why, without clang.
pub fn object(stem: &str, code: &str) -> Option<Vec<u8>> {
    match compile_bpf(Path::new(&format!("{stem}.c")), code, None) {
        Err(CompileError::NoClang) => {
            crate::skip::skipped_for_kernel("clang is not installed (or set CLANG): nothing was compiled for BPF");
            None
        }
        made => {
            let made = made.unwrap_or_else(|error| panic!("{stem}: {error}"));
            assert_eq!(made.warnings, [], "{stem}");
            Some(made.bytes)
        }
    }
}

/// Returns whether this machine cannot load BPF or make a network namespace, with a word on why: root in a container
/// often may not.
pub fn lacks() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let (net_admin, sys_admin) = (1 << 12, 1 << 21);
    if bits & net_admin == 0 || bits & sys_admin == 0 {
        crate::skip::skipped_for_kernel(
            "needs root with CAP_SYS_ADMIN and CAP_NET_ADMIN: nothing was put through the kernel's verifier",
        );
        return true;
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        crate::skip::skipped_for_kernel("this kernel has no BTF: nothing was put through its verifier");
        return true;
    }
    false
}

/// The kernel is at least this version; if not, says that `what` is skipped.
pub fn kernel_since(version: (u32, u32), what: &str) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    let running = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if running < version {
        crate::skip::skipped_for_kernel(&format!(
            "Linux {}.{} or later, this is {}: {what}",
            version.0,
            version.1,
            release.trim()
        ));
    }
    running >= version
}

/// Returns whether the kernel's list of controls has this one.
pub fn is_registered(name: &str) -> bool {
    let listed = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    listed.split_whitespace().any(|known| known == name)
}

/// Returns whether it has gone, or goes within 2 s: a compiler that another test has just begun holds every descriptor
/// until it is executed.
#[allow(clippy::disallowed_methods, reason = "waits for another process")]
pub fn goes(name: &str) -> bool {
    (0..200).any(|_| {
        let gone = !is_registered(name);
        if !gone {
            thread::sleep(Duration::from_millis(10));
        }
        gone
    })
}

/// Observations of one connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Carried {
    /// Bytes that arrived.
    pub bytes: u64,
    /// Window when it was established, segments.
    pub first_window: u32,
}

/// The object, loaded as `settings` make it.
pub fn loaded_with(object: &[u8], settings: &Settings) -> LoadedObject {
    let opened = || {
        let mut file = ObjectFile::open(object, "algorithm")?;
        file.configure(settings)?;
        Ok(file)
    };
    loaded(opened, Log::Statistics).unwrap_or_else(|error| panic!("{error:?}"))
}

/// Registers a control and sends so many bytes under `name` over a loopback of their own. The error says which call
/// failed.
pub fn carried(object: &[u8], settings: &Settings, name: &str, bytes: usize) -> Result<Carried, String> {
    let mut loaded = loaded_with(object, settings);
    let _registration = loaded.register().expect("it is registered");
    // A thread has a network namespace of its own, which goes with it.
    let name = name.to_owned();
    let sent = thread::spawn(move || send(&name, bytes).map_err(|(call, error)| format!("{call}: {error}")));
    sent.join().expect("no panic")
}

fn send(name: &str, bytes: usize) -> Result<Carried, (&'static str, io::Error)> {
    // SAFETY: no pointers.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(("unshare(CLONE_NEWNET)", io::Error::last_os_error()));
    }
    loopback_up().map_err(|error| ("set lo up", error))?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| ("listen", error))?;
    let address = listener.local_addr().map_err(|error| ("listen", error))?;
    let receiver = thread::spawn(move || {
        let (mut peer, _) = listener.accept()?;
        let mut buffer = vec![0; 1 << 16];
        let mut sum = 0;
        loop {
            match peer.read(&mut buffer)? {
                0 => return Ok::<u64, io::Error>(sum),
                read => sum += read as u64,
            }
        }
    });
    let mut sender = connected(name, address.port())?;
    let first_window = window(&sender).map_err(|error| ("getsockopt(TCP_INFO)", error))?;
    let part = vec![0; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        left -= sender.write(&part[..left.min(part.len())]).map_err(|error| ("write", error))?;
    }
    drop(sender);
    let bytes = receiver.join().expect("no panic").map_err(|error| ("read", error))?;
    Ok(Carried { bytes, first_window })
}

/// A connection to a port of loopback; the control is chosen before, so that it is asked from the first ACK on.
fn connected(name: &str, port: u16) -> Result<TcpStream, (&'static str, io::Error)> {
    // SAFETY: no pointers; the descriptor is owned from here on.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(("socket", io::Error::last_os_error()));
        }
        OwnedFd::from_raw_fd(fd)
    };
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
    // SAFETY: the name lives and its length is told.
    let done = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, name.as_ptr().cast(), name.len() as libc::socklen_t)
    };
    if done != 0 {
        return Err(("setsockopt(TCP_CONGESTION)", io::Error::last_os_error()));
    }
    let to = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    let bytes = std::mem::size_of_val(&to) as libc::socklen_t;
    // SAFETY: the address is valid and its size is told.
    if unsafe { libc::connect(socket.as_raw_fd(), std::ptr::from_ref(&to).cast(), bytes) } != 0 {
        return Err(("connect", io::Error::last_os_error()));
    }
    Ok(TcpStream::from(socket))
}

fn window(socket: &TcpStream) -> io::Result<u32> {
    // struct tcp_info: 8 bytes of small fields, then u32; tcpi_snd_cwnd is the nineteenth of those.
    let mut info = [0u8; 104];
    let mut bytes = info.len() as libc::socklen_t;
    // SAFETY: the room lives and its size is told.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &mut bytes)
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    let at = 8 + 4 * 18;
    Ok(u32::from_ne_bytes(info[at..at + 4].try_into().expect("four bytes")))
}

fn loopback_up() -> io::Result<()> {
    // SAFETY: all zeros are a valid request; its name ends, and the descriptor is closed.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = OwnedFd::from_raw_fd(fd);
        if libc::ioctl(fd.as_raw_fd(), libc::SIOCSIFFLAGS, &request) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
