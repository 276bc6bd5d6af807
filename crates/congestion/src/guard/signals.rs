//! A fault in a hook: a line that names it, in place of a core dump.

use super::line::Line;
use super::slot::{Call, Slot};
use libc::{c_int, c_void, siginfo_t};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Once;

const SIGNALS: [c_int; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];

/// A fault at most so far below the stack pointer is the stack's.
const BELOW_STACK: usize = 1 << 16;

/// The actions before these, by the place in `SIGNALS`; written once, before the handler is there.
static mut BEFORE: [MaybeUninit<libc::sigaction>; SIGNALS.len()] = [const { MaybeUninit::uninit() }; SIGNALS.len()];

/// From now on a fault of this process in a hook is reported.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (place, &signal) in SIGNALS.iter().enumerate() {
            // SAFETY: the handler does what a signal handler may: it reads memory that stays, writes, ends the process.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handle as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigemptyset(&mut action.sa_mask);
                let before = (&raw mut BEFORE).cast::<libc::sigaction>().add(place);
                libc::sigaction(signal, null_mut(), before);
                libc::sigaction(signal, &action, null_mut());
            }
        }
    });
}

extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    if let Some((slot, call)) = Slot::of_thread().and_then(|slot| Some((slot, slot.call()?))) {
        if slot.is_in_hook() {
            // SAFETY: as the kernel gives it.
            let address = unsafe { (*info).si_addr() }.addr();
            let mut line = Line::of(&call);
            describe(&mut line, slot, &call, signal, address, stack_pointer(context));
            line.end();
        }
        let mut line = Line::of(&call);
        line.push("the process fails after it (");
        line.push(name(signal));
        line.push("): a hook may have written where it may not");
        line.write();
    }
    // Nothing of a hook's: as if this handler were not there.
    if let Some(place) = SIGNALS.iter().position(|&one| one == signal) {
        // SAFETY: written before the handler was there.
        unsafe { libc::sigaction(signal, (&raw const BEFORE).cast::<libc::sigaction>().add(place), null_mut()) };
    }
    // SAFETY: as the kernel gives it.
    if unsafe { (*info).si_code } <= 0 {
        // Sent, not caused by an instruction that is repeated now.
        // SAFETY: no memory is concerned.
        unsafe { libc::raise(signal) };
    }
}

fn describe(line: &mut Line, slot: &Slot, call: &Call, signal: c_int, address: usize, stack: usize) {
    let is_memory = signal == libc::SIGSEGV || signal == libc::SIGBUS;
    let is_stack = address.saturating_add(BELOW_STACK) >= stack
        && address < slot.stack.load(std::sync::atomic::Ordering::Relaxed)
        && stack != 0;
    if is_memory && slot.sock.is_behind(address) {
        line.push("accesses memory behind its state and the sender");
    } else if is_memory && is_stack {
        line.push("overflows the stack; BPF has 512 bytes, and no recursion");
    } else if is_memory {
        line.push("accesses memory that is not its own, at address 0x");
        line.push_number(address as u64, 16, 1);
    } else if signal == libc::SIGFPE {
        line.push("divides by 0; cc_div(n, d) gives 0 there, as the kernel does");
        if !call.subject.divisions.is_empty() {
            line.push("; look at ");
            line.push(call.subject.divisions);
        }
    } else if signal == libc::SIGILL || signal == libc::SIGTRAP {
        line.push("reaches code that cannot be executed, as the compiler puts it where a null pointer is used");
    } else {
        line.push("ends the process");
    }
    line.push(" (");
    line.push(name(signal));
    line.push(")");
}

fn name(signal: c_int) -> &'static str {
    match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        _ => "SIGABRT",
    }
}

/// The stack pointer at the fault; 0 where it is not known.
fn stack_pointer(context: *mut c_void) -> usize {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: as the kernel gives it.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    return unsafe { (*context).uc_mcontext.gregs[libc::REG_RSP as usize] } as usize;
    // SAFETY: as the kernel gives it.
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    return unsafe { (*context).uc_mcontext.sp } as usize;
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        let _ = context;
        0
    }
}
