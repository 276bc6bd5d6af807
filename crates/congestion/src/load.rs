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
    without_initializers(&user_files::read(object, OBJECT_BYTES_MAX).map_err(|e| e.to_string())?)?;
    // SAFETY: linked with nothing, it has no initializers.
    let library = unsafe { Library::open(Some(object), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| e.to_string())?;
    // SAFETY: CC_ALGORITHM defines a symbol of this name and type; `read` checks its version first.
    let algorithm = unsafe {
        let raw: *const RawAlgorithm = *library
            .get::<*const RawAlgorithm>(b"cc_algorithm\0")
            .map_err(|_| "it has no CC_ALGORITHM(...)".to_owned())?;
        Algorithm::read(raw, code, Some(library))?
    };
    Ok(algorithm.guarded(crate::own::Subject::new(&path.display().to_string(), divisions)))
}

/// Bytes of an object: that of a congestion control has some 20 kB.
#[cfg(unix)]
const OBJECT_BYTES_MAX: u64 = 64 << 20;

/// Refuses an object with code that the loader would run, at loading or at the end of the process: that code would run
/// without a guard, and in every process that only reads the description.
#[cfg(unix)]
fn without_initializers(elf: &[u8]) -> Result<(), String> {
    /// PT_DYNAMIC and, of its entries, DT_INIT, DT_FINI, DT_INIT_ARRAY, DT_FINI_ARRAY and DT_PREINIT_ARRAY (elf(5)).
    const DYNAMIC: u64 = 2;
    const RUN_BY_LOADER: [u64; 5] = [12, 13, 25, 26, 32];
    let number = |at: usize, bytes: usize| {
        let part = elf.get(at..at.checked_add(bytes)?)?;
        Some(part.iter().rev().fold(0_u64, |value, &byte| value << 8 | u64::from(byte)))
    };
    let place = |at: usize, bytes: usize| number(at, bytes).and_then(|value| usize::try_from(value).ok());
    // 64 bits, the low byte first; other machines' objects are not looked into.
    if elf.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Ok(());
    }
    let headers = place(32, 8).zip(place(54, 2)).zip(place(56, 2));
    let Some(((first, bytes), count)) = headers else { return Ok(()) };
    for header in (0..count).filter_map(|n| first.checked_add(n * bytes)) {
        if number(header, 4) != Some(DYNAMIC) {
            continue;
        }
        let Some((begin, size)) = header.checked_add(8).and_then(|at| place(at, 8)).zip(place(header + 32, 8)) else {
            continue;
        };
        for entry in (0..size / 16).filter_map(|n| begin.checked_add(n * 16)) {
            if number(entry, 8).is_some_and(|tag| RUN_BY_LOADER.contains(&tag)) {
                return Err("it has code that runs when it is loaded (a constructor): hooks are all that runs".into());
            }
        }
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn load(_object: &Path, _code: String, _path: &Path, _divisions: &[usize]) -> Result<Algorithm, String> {
    Err("this system loads no C file of one's own".to_owned())
}
