//! The algorithms compiled into this library: every file of `congestion/`.

use crate::descriptor::{Algorithm, RawAlgorithm};
use std::sync::OnceLock;

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// All built-in algorithms, by name.
pub fn builtin() -> &'static [Algorithm] {
    static ALL: OnceLock<Vec<Algorithm>> = OnceLock::new();
    ALL.get_or_init(|| {
        let read = |(raw, code): (*const RawAlgorithm, &str)| {
            // SAFETY: the build script lists what it compiled, each with its CC_ALGORITHM.
            unsafe { Algorithm::read(raw, code.to_owned(), None) }
                .unwrap_or_else(|e| panic!("a file of congestion/: {e}"))
        };
        compiled_in().into_iter().map(read).collect()
    })
}

/// The built-in algorithm of this name.
pub fn find(name: &str) -> Option<Algorithm> {
    builtin().iter().find(|a| a.name() == name).cloned()
}
