//! A user's own algorithm, from a shared object.

use crate::descriptor::Algorithm;
use std::path::Path;

/// Loads the algorithm of a shared object that was made of `code`, the file at `path`; `divisions` are its lines that
/// divide by what may be zero. The error says what is wrong with the object.
#[cfg(unix)]
pub(crate) fn load(object: &Path, code: String, path: &Path, divisions: &[usize]) -> Result<Algorithm, String> {
    use crate::descriptor::RawAlgorithm;
    use crate::library::Library;
    use libloading::os::unix::{RTLD_LOCAL, RTLD_NOW};
    // SAFETY: linked with nothing, it has no initializers but a user's own, whom `compile` tells to load what they
    // trust.
    let library = unsafe { Library::open(Some(object), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| e.to_string())?;
    // SAFETY: CC_ALGORITHM defines a symbol of this name and type; `read` checks its version first.
    let algorithm = unsafe {
        let raw: *const RawAlgorithm = *library
            .get::<*const RawAlgorithm>(b"cc_algorithm\0")
            .map_err(|_| "it has no CC_ALGORITHM(...)".to_owned())?;
        Algorithm::read(raw, code, Some(library))?
    };
    crate::trap::name_divisions(path, divisions);
    Ok(algorithm)
}

#[cfg(not(unix))]
pub(crate) fn load(_object: &Path, _code: String, _path: &Path, _divisions: &[usize]) -> Result<Algorithm, String> {
    Err("this system loads no C file of one's own".to_owned())
}
