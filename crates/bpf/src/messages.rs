//! libbpf's own words, kept instead of printed: the binary's standard error belongs to whoever calls.

use libbpf_rs::{set_print, PrintLevel};
use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    /// Messages of this thread since a listener began; `None` without one.
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Takes libbpf's words from now on; without somebody who listens they are dropped.
pub(crate) fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_print(Some((PrintLevel::Info, hear)));
    });
}

fn hear(_: PrintLevel, message: String) {
    HEARD.with_borrow_mut(|heard| {
        if let Some(lines) = heard {
            lines.extend(message.lines().map(str::to_owned));
        }
    });
}

/// Returns what `act` returns, and libbpf's words meanwhile, which it says in the thread that calls it.
pub(crate) fn during<T>(act: impl FnOnce() -> T) -> (T, Vec<String>) {
    quiet();
    HEARD.set(Some(vec![]));
    let done = act();
    (done, HEARD.take().unwrap_or_default())
}
