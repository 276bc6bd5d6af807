//! A user's own algorithm that divides by zero: a word on it, in place of a core dump.
//!
//! A processor that traps on the division ends the process, whatever is done about it: the hook has no result. What can
//! be done is to say whose fault it is. Runs that had ended are stored by then.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// As for any input that is wrong.
const EXIT_CODE: c_int = 2;

/// Arithmetic exception, on every Linux.
const SIGFPE: c_int = 8;

extern "C" {
    fn signal(number: c_int, handler: extern "C" fn(c_int)) -> *mut c_void;
    fn write(file: c_int, text: *const c_void, bytes: usize) -> isize;
    fn _exit(code: c_int) -> !;
}

/// What is to be said; null while no file of a user's own is loaded. Each text stays for good: a signal may read it.
static MESSAGE: AtomicPtr<String> = AtomicPtr::new(null_mut());

/// Files that were loaded, with the lines that divide by what may be zero.
static FILES: Mutex<BTreeMap<String, Vec<usize>>> = Mutex::new(BTreeMap::new());

/// From now on a division by zero is told, with `file` and these `lines` of it as where to look.
pub(crate) fn tell(file: &str, lines: &[usize]) {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if files.get(file).is_some_and(|known| known == lines) {
        return;
    }
    files.insert(file.to_owned(), lines.to_vec());
    // Those that divide by what may be zero; where the text shows none, any of them.
    let risky: Vec<_> = files.iter().filter(|(_, lines)| !lines.is_empty()).collect();
    let named = risky.iter().flat_map(|(file, lines)| lines.iter().map(move |line| format!("{file}:{line}")));
    let places = if risky.is_empty() { files.keys().cloned().collect() } else { named.collect::<Vec<_>>() };
    let text = format!(
        "error: a congestion control divides by 0, and the simulator cannot go on; look at {}: cc_div(n, d) gives 0 \
         there, as the kernel does\n",
        places.join(", ")
    );
    MESSAGE.store(Box::into_raw(Box::new(text)), Ordering::Release);
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler does what a signal handler may: it reads memory that stays, writes, ends the process.
        let _ = unsafe { signal(SIGFPE, divided) };
    });
}

extern "C" fn divided(_: c_int) {
    let message = MESSAGE.load(Ordering::Acquire);
    // SAFETY: null, or a text that is never freed; `write` and `_exit` may be called in a signal handler.
    unsafe {
        if let Some(text) = message.as_ref() {
            write(2, text.as_ptr().cast(), text.len());
        }
        _exit(EXIT_CODE)
    }
}
