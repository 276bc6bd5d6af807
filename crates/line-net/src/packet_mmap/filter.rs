//! The kernel's filter of a packet socket: frames of line tests alone (socket(7), SO_ATTACH_FILTER).

use crate::socket::set;
use line_test::ETHERTYPE;
use std::io;
use std::os::fd::OwnedFd;

/// Bytes of a frame that the filter hands on: more than an Ethernet frame has.
const WHOLE: u32 = 0xffff;

/// Lets a socket receive frames of the type, with and without a tag: the kernel has taken a tag off before it looks at
/// the type. A socket that is bound to the type would see no tag: the kernel forgets one that no interface of its own
/// has (`__netif_receive_skb_core`).
pub(super) fn attach(socket: &OwnedFd) -> io::Result<()> {
    let load = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let done = (libc::BPF_RET | libc::BPF_K) as u16;
    let protocol = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;
    let mut program = [
        libc::sock_filter { code: load, jt: 0, jf: 0, k: protocol },
        libc::sock_filter { code: equal, jt: 0, jf: 1, k: u32::from(ETHERTYPE) },
        libc::sock_filter { code: done, jt: 0, jf: 0, k: WHOLE },
        libc::sock_filter { code: done, jt: 0, jf: 0, k: 0 },
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // The program lives until the call returns.
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
}
