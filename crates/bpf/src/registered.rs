//! Congestion controls that lie in the kernel: its struct_ops maps, by the name within.
//!
//! A control's label and parameters are constants of its object, in a map beside it: the one with the same type
//! information (BTF), since each load of an object brings its own. Both live as long as the programs do.

use crate::control::{LABEL, OPS_STRUCT, PARAMETER};
use crate::error::{Error, Result};
use crate::object::{CONSTANTS, OPS};
use crate::types::{self, Place};
use libbpf_rs::{libbpf_sys, Btf, MapCore, MapFlags, MapHandle, MapType, Program};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};

/// Text before a parameter's declaration in its tag (CC_PARAM_GLOBAL_ of congestion/bpf/env.h).
const DECLARED: &str = "elephan:param ";

/// Members of a declaration; the last is free text.
const DECLARED_MEMBERS: usize = 6;

/// BPF_STRUCT_OPS_STATE_INUSE: registered. Afterwards (2) connections may still hold it.
const IN_USE: u32 = 1;

const LOOK: &str = "look at the kernel's BPF maps";

/// A congestion control in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Its name there.
    pub name: String,
    /// Number of its struct_ops map, by which it is unregistered.
    pub map_id: u32,
    /// False when it is unregistered and something that began before still uses it.
    pub in_use: bool,
    /// Its name for people; "" when the kernel does not tell (before Linux 5.10).
    pub label: String,
    /// Names and values of its parameters, in the order of its file.
    pub parameters: Vec<(String, Parameter)>,
    /// Numbers of the hash maps of its object, by their names.
    pub hashes: BTreeMap<String, u32>,
}

/// A parameter of a congestion control in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its value.
    pub value: i64,
    /// Its declaration in CC_PARAMS: unit, default, min, max, scale, doc; nothing where the kernel keeps no tags
    /// (before Linux 5.16).
    pub declared: BTreeMap<String, String>,
}

/// Returns the congestion controls whose names begin with `mark`, by name. Errors when the kernel does not let us look.
pub fn registered(mark: &str) -> Result<Vec<Registered>> {
    crate::messages::quiet();
    let mut found: Vec<(Registered, u32)> = vec![];
    let mut constants: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut hashes: Vec<(u32, String, u32)> = vec![];
    let mut layout: Option<Layout> = None;
    for id in map_numbers()? {
        let map = match MapHandle::from_map_id(id).map_err(|error| Error::call(LOOK, &error)) {
            // It has gone meanwhile.
            Err(error) if error.errno() == Some(libc::ENOENT) => continue,
            other => other?,
        };
        let Ok(info) = map.info() else { continue };
        let (types, name) = (info.info.btf_id, map.name().to_string_lossy().into_owned());
        match map.map_type() {
            MapType::Hash => hashes.push((types, name, id)),
            MapType::Array if name.ends_with(CONSTANTS) => {
                constants.extend(value_of(&map).map(|value| (types, value)));
            }
            MapType::StructOps if name == OPS => {
                let layout = match &mut layout {
                    Some(known) => known,
                    none => none.insert(Layout::of_kernel()?),
                };
                let described = value_of(&map).and_then(|value| layout.read(&value));
                let Some((name, state)) = described.filter(|(name, state)| name.starts_with(mark) && *state != 0)
                else {
                    continue;
                };
                let (label, parameters, hashes) = (String::new(), vec![], BTreeMap::new());
                let in_use = state == IN_USE;
                found.push((Registered { name, map_id: id, in_use, label, parameters, hashes }, types));
            }
            _ => {}
        }
    }
    let described = if found.is_empty() { BTreeMap::new() } else { programs_by_types()? };
    for (one, types) in &mut found {
        one.hashes = hashes.iter().filter(|(of, ..)| of == types).map(|(_, name, id)| (name.clone(), *id)).collect();
        if let (Some(value), Some(&program)) = (constants.get(types), described.get(types)) {
            describe(one, value, program);
        }
    }
    let mut found: Vec<_> = found.into_iter().map(|(one, _)| one).collect();
    found.sort_by(|one, other| (&one.name, one.map_id).cmp(&(&other.name, other.map_id)));
    Ok(found)
}

/// Unregisters the congestion control of the struct_ops map `map_id`. One that has gone meanwhile is no error.
pub fn unregister(map_id: u32) -> Result<()> {
    let gone = |error: &Error| matches!(error.errno(), Some(libc::ENOENT | libc::EINPROGRESS));
    let attempt = "unregister the congestion control";
    let done = MapHandle::from_map_id(map_id).and_then(|map| map.delete(&0u32.to_ne_bytes()));
    match done.map_err(|error| Error::call(attempt, &error)) {
        // EINPROGRESS: it was unregistered already.
        Err(error) if !gone(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Places in the value of a struct_ops map of tcp_congestion_ops.
struct Layout {
    state: Place,
    name: Place,
}

impl Layout {
    fn of_kernel() -> Result<Layout> {
        let kernel = types::of_kernel()?;
        let whole = format!("bpf_struct_ops_{OPS_STRUCT}");
        let place = |of: &str, member: &str| {
            types::member(&kernel, of, member)
                .ok_or_else(|| Error::Lacks(format!("{of}.{member} in the kernel's types")))
        };
        let (operations, name) = (place(&whole, "data")?, place(OPS_STRUCT, "name")?);
        // struct bpf_struct_ops_common_value, which opens the value, has a count of users and the state.
        let state = Place { offset: 4, bytes: 4 };
        Ok(Layout { state, name: Place { offset: operations.offset + name.offset, bytes: name.bytes } })
    }

    /// Name and state within a value.
    fn read(&self, value: &[u8]) -> Option<(String, u32)> {
        let bytes = |place: &Place| value.get(place.offset..place.offset + place.bytes);
        let state = u32::from_ne_bytes(bytes(&self.state)?.try_into().ok()?);
        Some((text_of(bytes(&self.name)?), state))
    }
}

/// Number of every map of the kernel.
fn map_numbers() -> Result<Vec<u32>> {
    // SAFETY: the call writes one number.
    numbers(LOOK, |id, next| unsafe { libbpf_sys::bpf_map_get_next_id(id, next) })
}

/// Of each type information (BTF) one program that uses it, since libbpf reads it by that.
fn programs_by_types() -> Result<BTreeMap<u32, u32>> {
    let mut found = BTreeMap::new();
    let attempt = "look at the kernel's BPF programs";
    // SAFETY: the call writes one number.
    for id in numbers(attempt, |id, next| unsafe { libbpf_sys::bpf_prog_get_next_id(id, next) })? {
        let Ok(program) = Program::fd_from_id(id) else { continue };
        // SAFETY: all zeros are valid, and the kernel refuses what it does not know unless it is zero.
        let mut info: libbpf_sys::bpf_prog_info = unsafe { std::mem::zeroed() };
        let mut bytes = std::mem::size_of_val(&info) as u32;
        // SAFETY: the descriptor is open, and the call writes at most so many bytes.
        let failed = unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_fd().as_raw_fd(), &mut info, &mut bytes) };
        if failed == 0 {
            found.insert(info.btf_id, id);
        }
    }
    Ok(found)
}

/// The numbers that `next` gives one after the other.
fn numbers(attempt: &str, next: impl Fn(u32, *mut u32) -> i32) -> Result<Vec<u32>> {
    let mut found = vec![];
    let mut id = 0;
    loop {
        match next(found.last().copied().unwrap_or(0), &mut id) {
            0 => found.push(id),
            end if end == -libc::ENOENT => return Ok(found),
            error => return Err(Error::returned(attempt, error)),
        }
    }
}

fn value_of(map: &MapHandle) -> Option<Vec<u8>> {
    map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten()
}

/// Puts in the label and the parameters of an object with these constants, as far as the kernel tells.
fn describe(one: &mut Registered, constants: &[u8], program: u32) {
    let Ok(btf) = Btf::from_prog_id(program) else { return };
    let tags = types::tags(&btf);
    for (name, place) in types::variables(&btf, CONSTANTS) {
        let Some(value) = constants.get(place.offset..place.offset + place.bytes) else { continue };
        if name == LABEL {
            one.label = text_of(value);
        } else if let (Some(key), Ok(value)) = (name.strip_prefix(PARAMETER), value.try_into()) {
            let declared = tags.get(&name).map(|tag| declared(tag)).unwrap_or_default();
            one.parameters.push((key.to_owned(), Parameter { value: i64::from_ne_bytes(value), declared }));
        }
    }
}

/// The members of a parameter's tag, "unit=...;default=...;...;doc=...".
fn declared(tag: &str) -> BTreeMap<String, String> {
    let members = tag.strip_prefix(DECLARED).unwrap_or_default().splitn(DECLARED_MEMBERS, ';');
    members.filter_map(|member| member.split_once('=')).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_told_member_by_member_and_its_text_may_hold_anything() {
        let described = declared("elephan:param unit=ms;default=-3;min=-9;max=9;scale=1;doc=at a=1; or later");
        assert_eq!(described["default"], "-3");
        assert_eq!(described["doc"], "at a=1; or later");
        assert!(declared("somebody else's").is_empty());
    }
}
