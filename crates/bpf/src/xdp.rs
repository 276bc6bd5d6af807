//! A program at an interface that hands frames of one type to AF_XDP sockets, with the time at which they came.

use crate::error::{Error, Result};
use libbpf_rs::libbpf_sys as sys;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Bytes before a frame that hold its time of arrival: ns of CLOCK_MONOTONIC, in the machine's byte order.
pub const ARRIVAL_BYTES: usize = 8;
/// Queues of an interface that may have a socket.
const QUEUES_MAX: u32 = 64;
/// Attach to the driver, not to the network stack behind it, which would only copy once more (linux/if_link.h).
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const LICENSE: &CStr = c"Dual BSD/GPL";
const NAME: &CStr = c"elephan_line";

/// A program that is attached, as long as this lives: the kernel detaches it with the last descriptor.
#[derive(Debug)]
pub struct XdpRedirect {
    map: OwnedFd,
    _program: OwnedFd,
    _link: OwnedFd,
}

impl XdpRedirect {
    /// Attaches a program to the interface with a number, which hands frames of a type to an address, and to all, to
    /// the sockets that are added, and others to the network stack.
    ///
    /// # Errors
    /// The process may not, the interface has a program, or its driver takes none.
    pub fn attach(interface: i32, ethertype: u16, address: [u8; 6]) -> Result<XdpRedirect> {
        // SAFETY: no options; the name lives until the call returns.
        let map =
            unsafe { sys::bpf_map_create(sys::BPF_MAP_TYPE_XSKMAP, NAME.as_ptr(), 4, 4, QUEUES_MAX, std::ptr::null()) };
        let map = owned("make a map of sockets", map)?;
        let program = instructions(map.as_raw_fd(), ethertype, address);
        // SAFETY: an instruction is 64 bits (linux/bpf_common.h), and all of them live until the call returns.
        let program = unsafe {
            sys::bpf_prog_load(
                sys::BPF_PROG_TYPE_XDP,
                NAME.as_ptr(),
                LICENSE.as_ptr(),
                program.as_ptr().cast(),
                program.len() as sys::size_t,
                std::ptr::null_mut(),
            )
        };
        let program = owned("load a program for an interface", program)?;
        // SAFETY: the structure has no invalid bit pattern.
        let mut options: sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
        options.sz = size_of::<sys::bpf_link_create_opts>() as sys::size_t;
        options.flags = XDP_FLAGS_DRV_MODE;
        // SAFETY: the options live until the call returns.
        let link = unsafe { sys::bpf_link_create(program.as_raw_fd(), interface, sys::BPF_XDP, &options) };
        let link = owned("attach a program to the interface's driver", link)?;
        Ok(XdpRedirect { map, _program: program, _link: link })
    }

    /// Hands the frames of a queue to a socket that is bound to it.
    pub fn add(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<()> {
        let number = socket.as_raw_fd();
        // SAFETY: key and value have the four bytes that the map was made for.
        let done = unsafe {
            let (key, value) = (std::ptr::from_ref(&queue).cast(), std::ptr::from_ref(&number).cast());
            sys::bpf_map_update_elem(self.map.as_raw_fd(), key, value, 0)
        };
        match done {
            0.. => Ok(()),
            failed => Err(Error::returned("put a socket into a map", failed)),
        }
    }
}

fn owned(attempt: &str, fd: i32) -> Result<OwnedFd> {
    match fd {
        // SAFETY: the descriptor is new, and nobody else's.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        failed => Err(Error::returned(attempt, failed)),
    }
}

/// The program, in the instruction set of RFC 9669.
fn instructions(map: i32, ethertype: u16, address: [u8; 6]) -> Vec<u64> {
    const PASS: i32 = 2;
    /// A distance that is filled in.
    const TO_END: i16 = i16::MAX;
    let encode = |code: u8, to: u8, from: u8, offset: i16, immediate: i32| {
        let [low, high] = offset.to_ne_bytes();
        let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
        let [a, b, c, d] = immediate.to_ne_bytes();
        u64::from_ne_bytes([code, registers, low, high, a, b, c, d])
    };
    let load_word = |to, from, offset| encode(0x61, to, from, offset, 0);
    let load_half = |to, from, offset| encode(0x69, to, from, offset, 0);
    let store_long = |to, offset, from| encode(0x7b, to, from, offset, 0);
    let copy = |to, from| encode(0xbf, to, from, 0, 0);
    let set = |to, value| encode(0xb7, to, 0, 0, value);
    let add = |to, value| encode(0x07, to, 0, 0, value);
    let call = |helper| encode(0x85, 0, 0, 0, helper);
    let exit = encode(0x95, 0, 0, 0, 0);
    // Of the low 32 bits (BPF_JMP32): a longer comparison would extend the constant's sign.
    let if_word_not = |a, value, by| encode(0x56, a, 0, by, value);
    let if_equal = |a, value, by| encode(0x15, a, 0, by, value);
    let [a, b, c, d, e, f] = address;
    let first = i32::from_ne_bytes([a, b, c, d]);
    let last = i32::from(u16::from_ne_bytes([e, f]));
    // Jumps to the end have their distance filled in below.
    let if_above = |a, b| encode(0x2d, a, b, TO_END, 0);
    let if_not = |a, value| encode(0x55, a, 0, TO_END, value);
    // struct xdp_md (linux/bpf.h): data at 0, data_end at 4, data_meta at 8, rx_queue_index at 16.
    let mut program = vec![
        copy(6, 1),
        load_word(2, 6, 0),
        load_word(3, 6, 4),
        copy(4, 2),
        add(4, 14),
        if_above(4, 3),
        load_half(5, 2, 12),
        if_not(5, i32::from(ethertype.to_be())),
        load_word(4, 2, 0),
        load_half(5, 2, 4),
        if_word_not(4, -1, 1),
        if_equal(5, 0xffff, 2), // to all: past the comparison with the address
        if_word_not(4, first, TO_END),
        if_not(5, last),
        copy(1, 6),
        set(2, -(ARRIVAL_BYTES as i32)),
        call(54), // bpf_xdp_adjust_meta
        if_not(0, 0),
        call(5), // bpf_ktime_get_ns
        load_word(2, 6, 8),
        load_word(3, 6, 0),
        copy(4, 2),
        add(4, ARRIVAL_BYTES as i32),
        if_above(4, 3),
        store_long(2, 0, 0),
        load_word(2, 6, 16),
        // A descriptor of a map takes two instructions, with BPF_PSEUDO_MAP_FD as the source.
        encode(0x18, 1, 1, 0, map),
        0,
        set(3, PASS),
        call(51), // bpf_redirect_map: without a socket for the queue, the frame passes
        exit,
    ];
    let end = program.len();
    for (at, instruction) in program.iter_mut().enumerate() {
        let [code, registers, low, high, a, b, c, d] = instruction.to_ne_bytes();
        if matches!(code, 0x2d | 0x55 | 0x56) && i16::from_ne_bytes([low, high]) == TO_END {
            let [low, high] = ((end - at - 1) as i16).to_ne_bytes();
            *instruction = u64::from_ne_bytes([code, registers, low, high, a, b, c, d]);
        }
    }
    program.extend([set(0, PASS), exit]);
    program
}
