//! A TUN device, made inside a network namespace.

use crate::namespace;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Reason that a device could not be made.
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
    /// Makes the device `name` in the namespace whose file is `namespace`. It never exists in any other: a device
    /// belongs to the namespace in which /dev/net/tun is opened.
    ///
    /// # Errors
    /// The step that the kernel refused, with its reason.
    pub fn open(namespace: &str, name: &str) -> Result<Tun, TunError> {
        let failed = |error| TunError { what: format!("entering the namespace {namespace}"), error };
        namespace::within(namespace, || open_here(name)).map_err(failed)?
    }

    /// Reads one packet with its prefix ([`crate::segment`]); None when none waits.
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

    /// Hands one packet, with its prefix, to the namespace's transport, in two pieces. False: the kernel did not take
    /// it.
    #[inline]
    pub fn write(&self, head: &[u8], tail: &[u8]) -> bool {
        let piece = |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let pieces = [piece(head), piece(tail)];
        // SAFETY: both pieces are valid for their lengths, and only read.
        let put = unsafe { libc::writev(self.0.as_raw_fd(), pieces.as_ptr(), pieces.len() as libc::c_int) };
        usize::try_from(put) == Ok(head.len() + tail.len())
    }

    /// Its descriptor, to wait on.
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

fn open_here(name: &str) -> Result<Tun, TunError> {
    use std::os::unix::fs::OpenOptionsExt;
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error| TunError { what, error }
    };
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
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: the descriptor is open and the request is a valid ifreq.
    if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &request) } != 0 {
        return Err(failed("making a TUN device")(io::Error::last_os_error()));
    }
    // Work that the transport may leave to the device: checksums, and cutting TCP into segments, packets with CWR among
    // them.
    let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    // SAFETY: the descriptor is open; the argument is a number.
    if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, libc::c_ulong::from(offloads)) } != 0 {
        return Err(failed("a TUN device's offloads")(io::Error::last_os_error()));
    }
    Ok(Tun(file))
}
