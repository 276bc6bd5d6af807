//! A user's own algorithm that divides by zero: a word on it, in place of a core dump.
//!
//! A processor that traps on the division ends the process, whatever is done about it: the hook has no result. What can
//! be done is to say whose fault it is. Runs that had ended are stored by then.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
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

/// The text to print; null while no user's own file is loaded. Each text stays for good: a signal may read it.
static MESSAGE: AtomicPtr<String> = AtomicPtr::new(null_mut());

/// A file that was loaded: how it was named first, and its lines that divide by what may be zero.
struct Loaded {
    name: String,
    lines: Vec<usize>,
}

/// By their whole path: a file may be named in several ways.
static FILES: Mutex<BTreeMap<PathBuf, Loaded>> = Mutex::new(BTreeMap::new());

/// From now on a division by zero is reported, with these `lines` of the file as where to look.
pub(crate) fn name_divisions(path: &Path, lines: &[usize]) {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let file = files.entry(whole).or_insert_with(|| Loaded { name: path.display().to_string(), lines: vec![] });
    file.lines = lines.to_vec();
    // Those that divide by what may be zero; where the text shows none, any of them.
    let named = files.values().flat_map(|file| file.lines.iter().map(move |line| format!("{}:{line}", file.name)));
    let mut places: Vec<_> = named.collect();
    if places.is_empty() {
        places = files.values().map(|file| file.name.clone()).collect();
    }
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
