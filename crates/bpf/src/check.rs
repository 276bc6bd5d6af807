//! The kernel's verifier on an object, with the reason of a refusal.

use crate::control::Settings;
use crate::error::{Error, Result};
use crate::object::{loaded, Log, ObjectFile};

/// The kernel's account of an object that it has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Programs in it.
    pub programs: usize,
    /// Steps that its verifier went through.
    pub steps: u64,
}

/// Puts an object through the kernel's verifier, with `settings` if they are given; with `register` it is registered,
/// and stays.
///
/// A refused object is put through once more with the verifier's steps, which name the line. Errors: [`Error::Load`]
/// with them; [`Error::Call`] when it passed and the kernel does not register it.
pub fn check(bytes: &[u8], name: &str, settings: Option<&Settings>, register: bool) -> Result<Checked> {
    let opened = || {
        let mut object = ObjectFile::open(bytes, name)?;
        settings.map(|settings| object.configure(settings)).transpose()?;
        Ok(object)
    };
    let mut loaded = match loaded(opened, Log::Statistics) {
        Err(Error::Load { .. }) => loaded(opened, Log::Steps)?,
        other => other?,
    };
    if register {
        loaded.register()?.keep();
    }
    Ok(Checked { programs: loaded.programs(), steps: loaded.verifier_steps() })
}
