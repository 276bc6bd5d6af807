//! A TUN device, made inside a network namespace.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Why a device could not be made.
#[derive(Debug)]
pub struct TunError {
    what: String,
    error: io::Error,
}

impl fmt::Display for TunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.error)
    }
}

impl std::error::Error for TunError {}

/// The emulator's end of a device. The device is gone when this is dropped.
pub struct Tun(File);

impl Tun {
    /// Makes the device `name` in the namespace whose file is `namespace`. It never exists in any other: a device belongs
    /// to the namespace in which /dev/net/tun is opened, and a thread of its own goes there to do that.
    ///
    /// # Errors
    /// Which step the kernel refused, and why.
    pub fn open(namespace: &str, name: &str) -> Result<Tun, TunError> {
        std::thread::scope(|scope| scope.spawn(|| open_there(namespace, name)).join())
            .unwrap_or_else(|_| Err(TunError { what: "thread".into(), error: io::Error::other("it panicked") }))
    }

    /// Reads one packet; None when none waits.
    ///
    /// # Errors
    /// The kernel's; EIO when the device is down.
    #[inline]
    pub fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        // SAFETY: the buffer is valid for its length.
        let got = unsafe { libc::read(self.0.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) };
        match usize::try_from(got) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(_) => match io::Error::last_os_error() {
                error if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Hands one packet to the namespace's stack. False: the kernel did not take it.
    #[inline]
    pub fn write(&self, packet: &[u8]) -> bool {
        // SAFETY: the buffer is valid for its length.
        let put = unsafe { libc::write(self.0.as_raw_fd(), packet.as_ptr().cast(), packet.len()) };
        usize::try_from(put) == Ok(packet.len())
    }

    /// Its descriptor, to wait on.
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

fn open_there(namespace: &str, name: &str) -> Result<Tun, TunError> {
    use std::os::unix::fs::OpenOptionsExt;
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error| TunError { what, error }
    };
    let there = File::open(namespace).map_err(failed(namespace))?;
    // SAFETY: a plain system call; it moves this thread alone, which ends after this.
    if unsafe { libc::setns(there.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
        return Err(failed("entering the namespace")(io::Error::last_os_error()));
    }
    // O_CLOEXEC comes with File: no program that is started keeps the device alive.
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")
        .map_err(failed("/dev/net/tun"))?;
    // SAFETY: ifreq is plain data, for which zeroes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte stays zero, to end the name.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open and the request is a valid ifreq.
    if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &request) } != 0 {
        return Err(failed("making a TUN device")(io::Error::last_os_error()));
    }
    Ok(Tun(file))
}
