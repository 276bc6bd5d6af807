//! A shared object in memory, on systems that load one; on others (WebAssembly) there can be none.

#[cfg(unix)]
pub(crate) use libloading::os::unix::Library;

/// Without a value: nothing is loaded here.
#[cfg(not(unix))]
pub(crate) enum Library {}
