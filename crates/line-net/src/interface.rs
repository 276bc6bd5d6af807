//! An Ethernet interface's properties (netdevice(7)).

use crate::socket::socket;
use line_test::Mac;
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;

/// An interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: i32,
    /// Its Ethernet address.
    pub address: Mac,
    /// Its largest frame without header and check sequence, bytes.
    pub mtu_bytes: u32,
}

/// A question about an interface.
pub(crate) struct Request(libc::ifreq);

impl Request {
    /// A question about the interface of a name.
    pub fn of(name: &str) -> io::Result<Request> {
        // SAFETY: the structure has no invalid bit pattern.
        let mut request: libc::ifreq = unsafe { zeroed() };
        if name.is_empty() || name.len() >= request.ifr_name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *place = byte as libc::c_char;
        }
        Ok(Request(request))
    }

    /// Sets what the question points at.
    pub fn set_data(&mut self, data: *mut libc::c_char) {
        self.0.ifr_ifru.ifru_data = data;
    }

    /// Asks; what the structure points at, if anything, must be what the question wants.
    pub fn ask(&mut self, what: libc::c_ulong) -> io::Result<libc::ifreq> {
        let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        // SAFETY: these requests write into the structure that the pointer names, and where its data points.
        match unsafe { libc::ioctl(socket.as_raw_fd(), what as _, &mut self.0) } {
            0 => Ok(self.0),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// True if an interface is up and has a carrier.
///
/// # Errors
/// It is not there any more.
pub(crate) fn has_carrier(name: &str) -> io::Result<bool> {
    let flags = Request::of(name)?.ask(libc::SIOCGIFFLAGS)?;
    // SAFETY: the request has filled the field in.
    let flags = i32::from(unsafe { flags.ifr_ifru.ifru_flags });
    Ok(flags & libc::IFF_UP != 0 && flags & libc::IFF_RUNNING != 0)
}

impl Interface {
    /// Looks an interface up.
    ///
    /// # Errors
    /// There is none of that name, it is not an Ethernet, or it is down.
    pub fn of(name: &str) -> io::Result<Interface> {
        let mut request = Request::of(name)?;
        // SAFETY: each request has filled in the field that is read.
        let (index, mtu, address, flags) = unsafe {
            (
                request.ask(libc::SIOCGIFINDEX)?.ifr_ifru.ifru_ifindex,
                request.ask(libc::SIOCGIFMTU)?.ifr_ifru.ifru_mtu,
                request.ask(libc::SIOCGIFHWADDR)?.ifr_ifru.ifru_hwaddr,
                request.ask(libc::SIOCGIFFLAGS)?.ifr_ifru.ifru_flags,
            )
        };
        let fault = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if address.sa_family != libc::ARPHRD_ETHER {
            return fault("not an Ethernet interface");
        }
        if i32::from(flags) & libc::IFF_UP == 0 {
            return fault("the interface is down");
        }
        let mut mac = [0; 6];
        for (place, byte) in mac.iter_mut().zip(address.sa_data) {
            *place = byte as u8;
        }
        Ok(Interface { name: name.to_owned(), index, address: mac, mtu_bytes: mtu.max(0) as u32 })
    }
}
