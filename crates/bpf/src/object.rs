//! An object of BPF programs, from its bytes to the kernel.

use crate::error::{Error, Result};
use crate::{kconfig, messages, records::Records, types};
use libbpf_rs::{
    libbpf_sys, AsRawLibbpf, Btf, MapCore, MapFlags, MapMut, Object, ObjectBuilder, OpenMapMut, OpenObject,
};
use libbpf_rs::{ProgramInput, ProgramMut};
use std::ffi::OsStr;
use std::thread;
use std::time::Duration;

/// The table of operations, which CC_ALGORITHM defines (congestion/bpf/env.h), and its map.
pub(crate) const OPS: &str = "cc_algorithm";

/// Section of an object's constants, and end of its map's name.
pub(crate) const CONSTANTS: &str = ".rodata";

/// Section of an object's variables, and end of its map's name.
const VARIABLES: &str = ".bss";

/// BPF_F_LINK (Linux 6.4): a struct_ops map that is registered by a link, which ends with its process.
const LINKED: u32 = 1 << 13;

/// Bytes that are kept of the end of a verifier's log.
const LOG_KEPT: usize = 20_000;

/// Between two attempts to load what the verifier gave up, and how many there are: 5 s in all.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSES: usize = 250;

/// Detail of the verifier's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// BPF_LOG_STATS: how much it went through; of a refusal the reason.
    Statistics,
    /// BPF_LOG_LEVEL1: its steps as well, with the source's lines.
    Steps,
}

impl Log {
    fn level(self) -> u32 {
        match self {
            Log::Statistics => 4,
            Log::Steps => 1,
        }
    }

    /// Room for the log of one program. Linux 6.4 and later keep the end of a longer one, where the reason stands.
    fn bytes(self) -> usize {
        match self {
            Log::Statistics => 1 << 16,
            Log::Steps => 1 << 24,
        }
    }
}

/// An object that is open, and of which the kernel knows nothing yet.
pub struct ObjectFile {
    object: OpenObject,
}

impl ObjectFile {
    /// Opens an object of BPF programs (ELF). `name` begins the names of its maps in the kernel.
    pub fn open(bytes: &[u8], name: &str) -> Result<ObjectFile> {
        let refused = |error| Error::call("open the object", &error);
        let configuration = kconfig::text_for_libbpf();
        let mut builder = ObjectBuilder::default();
        builder.name(name).map_err(refused)?;
        if let Some(text) = &configuration {
            // SAFETY: the options are the builder's own and are not used elsewhere; the text lives until the object is
            // open, and libbpf copies it.
            unsafe { builder.as_libbpf_object().as_mut().kconfig = text.as_ptr() };
        }
        let (opened, messages) = messages::during(|| builder.open_memory(bytes));
        let object = opened.map_err(|error| Error::Load {
            errno: Error::call("", &error).errno().unwrap_or(libc::EINVAL),
            program: String::new(),
            log: String::new(),
            messages,
        })?;
        Ok(ObjectFile { object })
    }

    /// Sets the constant `name`. What is shorter than its place is filled up with zeros.
    pub fn set_constant(&mut self, name: &str, value: &[u8]) -> Result<()> {
        let place = types::variable(&self.types()?, CONSTANTS, name);
        let place = place.ok_or_else(|| Error::Lacks(format!("constant {name}")))?;
        self.write(name, CONSTANTS, &place, value)
    }

    /// Returns the bytes of the constant `name`.
    pub fn constant(&self, name: &str) -> Result<Vec<u8>> {
        let place = types::variable(&self.types()?, CONSTANTS, name);
        place.and_then(|place| self.read(CONSTANTS, &place)).ok_or_else(|| Error::Lacks(format!("constant {name}")))
    }

    /// Sets a member of the table of operations, `of` being its struct.
    pub(crate) fn set_member(&mut self, of: &str, name: &str, value: &[u8]) -> Result<()> {
        let place = types::member(&self.types()?, of, name);
        let place = place.ok_or_else(|| Error::Lacks(format!("{of}.{name}")))?;
        self.write(name, OPS, &place, value)
    }

    /// Returns the bytes of a member of the table of operations.
    pub(crate) fn member(&self, of: &str, name: &str) -> Result<Vec<u8>> {
        let place = types::member(&self.types()?, of, name);
        place.and_then(|place| self.read(OPS, &place)).ok_or_else(|| Error::Lacks(format!("{of}.{name}")))
    }

    /// Has the table of operations registered by a link.
    pub(crate) fn set_linked(&mut self) -> Result<()> {
        let mut map = self.map(OPS).ok_or_else(|| Error::Lacks(format!("map {OPS}")))?;
        map.set_map_flags(LINKED).map_err(|error| Error::call("set a flag of the map of operations", &error))
    }

    /// Puts the object through the kernel's verifier, once; see [`loaded`]. Nothing is registered yet.
    fn load(mut self, log: Log) -> Result<LoadedObject> {
        let mut logs: Vec<(String, Vec<u8>)> = vec![];
        for mut program in self.object.progs_mut() {
            let mut room = vec![0; log.bytes()];
            program.set_log_level(log.level());
            let raw = program.as_libbpf_object().as_ptr();
            // SAFETY: the program is alive. Its room is on the heap and is not touched until libbpf has let go of it
            // below.
            unsafe { libbpf_sys::bpf_program__set_log_buf(raw, room.as_mut_ptr().cast(), room.len() as _) };
            logs.push((program.name().to_string_lossy().into_owned(), room));
        }
        let object = self.object.as_libbpf_object().as_ptr();
        // SAFETY: the object is open and was not loaded. (libbpf-rs would close it before its number can be read.)
        let (result, messages) = messages::during(|| unsafe { libbpf_sys::bpf_object__load(object) });
        for program in self.object.progs_mut() {
            let raw = program.as_libbpf_object().as_ptr();
            // SAFETY: the program is alive, and an empty room needs no memory.
            unsafe { libbpf_sys::bpf_program__set_log_buf(raw, std::ptr::null_mut(), 0) };
        }
        let logs: Vec<_> = logs.into_iter().map(|(name, room)| (name, text_of(&room))).collect();
        if result != 0 {
            // libbpf stops at the first program that is refused: the last one with a log.
            let (program, log) = logs.into_iter().rfind(|(_, log)| !log.is_empty()).unwrap_or_default();
            return Err(Error::Load { errno: -result, program, log: end_of(log), messages });
        }
        // SAFETY: it is loaded, and this is the only pointer to it from here on.
        let object = unsafe { Object::from_ptr(self.object.take_ptr()) };
        Ok(LoadedObject { object, steps: logs.iter().filter_map(|(_, log)| steps_of(log)).sum() })
    }

    pub(crate) fn types(&self) -> Result<Btf<'_>> {
        // SAFETY: the object lives as long as the reference.
        let raw = unsafe { self.object.as_libbpf_object().as_ref() };
        let types = Btf::from_bpf_object(raw).map_err(|error| Error::call("read the object's types (BTF)", &error))?;
        types.ok_or_else(|| Error::Lacks("type information (BTF)".to_owned()))
    }

    /// The map of this name, or the section's, whose name begins with the object's.
    fn map(&mut self, name: &str) -> Option<OpenMapMut<'_>> {
        self.object.maps_mut().find(|map| is_named(map.name(), name))
    }

    fn read(&self, map: &str, place: &types::Place) -> Option<Vec<u8>> {
        let map = self.object.maps().find(|known| is_named(known.name(), map))?;
        Some(map.initial_value()?.get(place.offset..place.offset + place.bytes)?.to_vec())
    }

    fn write(&mut self, what: &str, map: &str, place: &types::Place, value: &[u8]) -> Result<()> {
        if value.len() > place.bytes {
            return Err(Error::Size { what: what.to_owned(), bytes: value.len(), room: place.bytes });
        }
        let mut found = self.map(map);
        let all = found.as_mut().and_then(|map| map.initial_value_mut());
        let room = all.and_then(|all| all.get_mut(place.offset..place.offset + place.bytes));
        let room = room.ok_or_else(|| Error::Lacks(format!("map {map}")))?;
        room.fill(0);
        room[..value.len()].copy_from_slice(value);
        Ok(())
    }
}

/// An object whose programs the kernel has taken. They go when it is dropped, but for those of a control that stays
/// registered.
pub struct LoadedObject {
    object: Object,
    steps: u64,
}

impl LoadedObject {
    /// Number of its programs.
    pub fn programs(&self) -> usize {
        self.object.progs().count()
    }

    /// Steps that the verifier went through, of all programs.
    pub fn verifier_steps(&self) -> u64 {
        self.steps
    }

    /// Size of its variables; 0 without any.
    pub fn variables_bytes(&self) -> usize {
        self.map(VARIABLES).map_or(0, |map| map.value_size() as usize)
    }

    /// Returns the bytes of its variables.
    pub fn variables(&self) -> Result<Vec<u8>> {
        let map = self.map(VARIABLES).ok_or_else(|| Error::Lacks("variables".to_owned()))?;
        let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(|e| Error::call("read variables", &e))?;
        value.ok_or_else(|| Error::Lacks("variables".to_owned()))
    }

    /// Sets its variables, runs `program`, which is of type syscall, once, and returns the variables.
    pub fn run(&self, program: &str, variables: &[u8]) -> Result<Vec<u8>> {
        let map = self.map(VARIABLES).ok_or_else(|| Error::Lacks("variables".to_owned()))?;
        let room = map.value_size() as usize;
        if variables.len() != room {
            return Err(Error::Size { what: "the variables".to_owned(), bytes: variables.len(), room });
        }
        map.update(&0u32.to_ne_bytes(), variables, MapFlags::ANY).map_err(|e| Error::call("set variables", &e))?;
        let found: Option<ProgramMut<'_>> = self.object.progs_mut().find(|known| known.name() == OsStr::new(program));
        let found = found.ok_or_else(|| Error::Lacks(format!("program {program}")))?;
        found.test_run(ProgramInput::default()).map_err(|error| Error::call(format!("run {program}"), &error))?;
        self.variables()
    }

    /// Begins to take what its programs write into the ring buffer `map`.
    pub fn records(&self, map: &str) -> Result<Records> {
        let ring = self.object.maps().find(|known| known.name() == OsStr::new(map));
        Records::of(&ring.ok_or_else(|| Error::Lacks(format!("map {map}")))?)
    }

    pub(crate) fn operations(&mut self) -> Result<MapMut<'_>> {
        let found = self.object.maps_mut().find(|map| map.name() == OsStr::new(OPS));
        found.ok_or_else(|| Error::Lacks(format!("map {OPS}")))
    }

    fn map(&self, section: &str) -> Option<libbpf_rs::Map<'_>> {
        self.object.maps().find(|map| is_named(map.name(), section))
    }
}

/// Loads what `opened` gives, again after a pause where the kernel says EAGAIN: its verifier gives up when a signal is
/// pending (do_check, kernel/bpf/verifier.c), and libbpf's own five attempts follow each other at once.
#[allow(clippy::disallowed_methods, reason = "the crate is the edge to the kernel, no core: nothing else can be done")]
pub fn loaded(opened: impl Fn() -> Result<ObjectFile>, log: Log) -> Result<LoadedObject> {
    for _ in 0..PAUSES {
        match opened()?.load(log) {
            Err(Error::Load { errno: libc::EAGAIN, .. }) => thread::sleep(PAUSE),
            other => return other,
        }
    }
    opened()?.load(log)
}

/// Returns whether a map's name is this one, or that of a section, before which stand 8 characters of the object's
/// name.
fn is_named(name: &OsStr, wanted: &str) -> bool {
    let name = name.to_string_lossy();
    name == wanted || (wanted.starts_with('.') && name.ends_with(wanted))
}

fn text_of(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).into_owned()
}

fn end_of(log: String) -> String {
    let mut from = log.len().saturating_sub(LOG_KEPT);
    while !log.is_char_boundary(from) {
        from += 1;
    }
    log[from..].to_owned()
}

/// "processed N insns" of a verifier's log.
fn steps_of(log: &str) -> Option<u64> {
    log.split_once("processed ")?.1.split_once(" insns")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gives_its_steps_and_its_end() {
        assert_eq!(steps_of("verification time 9\nprocessed 42 insns (limit 1000000)\n"), Some(42));
        assert_eq!(steps_of("nothing"), None);
        assert_eq!(text_of(b"cubic\0before"), "cubic");
        let long = format!("{}é", "x".repeat(LOG_KEPT + 5));
        assert!(end_of(long).len() <= LOG_KEPT);
        assert_eq!(end_of("short".to_owned()), "short");
    }

    #[test]
    fn what_is_no_object_is_refused_with_libbpfs_words() {
        let Err(Error::Load { errno, messages, .. }) = ObjectFile::open(b"no ELF", "none") else {
            panic!("it was opened");
        };
        assert_ne!(errno, 0);
        assert!(messages.iter().any(|line| line.starts_with("libbpf: ")), "{messages:?}");
    }
}
