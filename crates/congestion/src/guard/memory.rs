//! Memory of a guard: a sender that ends where a page without access begins, and a stack for signals.

use crate::sock::CcSock;
use std::mem::size_of;
use std::ptr::null_mut;

/// Bytes of the stack for signals.
const SIGNAL_STACK_BYTES: usize = 1 << 16;

/// Room for a copy of a sender, at whose end a page begins that cannot be accessed.
pub(super) struct GuardedSock {
    sock: *mut CcSock,
    guard: usize,
    guard_bytes: usize,
}

// SAFETY: the memory is the slot's for good; one thread, the slot's, uses it.
unsafe impl Send for GuardedSock {}
// SAFETY: likewise.
unsafe impl Sync for GuardedSock {}

impl GuardedSock {
    pub fn new() -> GuardedSock {
        // SAFETY: no memory is concerned.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(1 << 16);
        let base = pages(2 * page);
        // SAFETY: the second of two pages that were mapped just now.
        let protected = unsafe { libc::mprotect(base.byte_add(page), page, libc::PROT_NONE) };
        assert_eq!(protected, 0, "a page of its own can be protected");
        let sock = base.wrapping_byte_add(page - size_of::<CcSock>()).cast::<CcSock>();
        GuardedSock { sock, guard: base.addr() + page, guard_bytes: page }
    }

    pub fn as_ptr(&self) -> *mut CcSock {
        self.sock
    }

    /// An address lies behind the sender, in the page without access.
    pub fn is_behind(&self, address: usize) -> bool {
        (self.guard..self.guard + self.guard_bytes).contains(&address)
    }
}

/// Gives this thread a stack for signals, so that one that has overflowed its own can say so.
pub(super) fn alternate_stack() {
    let stack = libc::stack_t { ss_sp: pages(SIGNAL_STACK_BYTES), ss_flags: 0, ss_size: SIGNAL_STACK_BYTES };
    // SAFETY: the memory is mapped and stays.
    unsafe { libc::sigaltstack(&stack, null_mut()) };
}

fn pages(bytes: usize) -> *mut libc::c_void {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new memory, not shared.
    let base = unsafe { libc::mmap(null_mut(), bytes, access, flags, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED, "there are some pages of memory");
    base
}
