//! Places of variables and members by the type information (BTF) of an object or of the kernel.

use crate::error::{Error, Result};
use libbpf_rs::btf::types::{Array, DataSec, DeclTag, MemberAttr, Struct, Var};
use libbpf_rs::{Btf, HasSize, ReferencesType};
use std::collections::BTreeMap;
use std::ffi::OsStr;

/// Place of a variable in its section, or of a member in its struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// First byte.
    pub offset: usize,
    /// Bytes.
    pub bytes: usize,
}

/// Returns the variables of a section, in the order in which they lie; none where there is no such section.
pub(crate) fn variables(btf: &Btf<'_>, section: &str) -> Vec<(String, Place)> {
    let wanted = Some(OsStr::new(section));
    let Some(section) = btf.type_by_kind::<DataSec<'_>>().find(|known| known.name() == wanted) else {
        return vec![];
    };
    let named = section.iter().filter_map(|entry| {
        let name = btf.type_by_id::<Var<'_>>(entry.ty)?.name()?.to_str()?.to_owned();
        Some((name, Place { offset: entry.offset as usize, bytes: entry.size }))
    });
    named.collect()
}

/// Returns the place of a variable of a section; `None` where there is none of that name.
pub(crate) fn variable(btf: &Btf<'_>, section: &str, name: &str) -> Option<Place> {
    variables(btf, section).into_iter().find(|(known, _)| known == name).map(|(_, place)| place)
}

/// Returns the text of each tag (`btf_decl_tag`) of a variable, by the variable's name; none where the kernel keeps no
/// tags (before Linux 5.16).
pub(crate) fn tags(btf: &Btf<'_>) -> BTreeMap<String, String> {
    let tagged = btf.type_by_kind::<DeclTag<'_>>().filter_map(|tag| {
        let variable = btf.type_by_id::<Var<'_>>(tag.referenced_type_id())?;
        Some((variable.name()?.to_str()?.to_owned(), tag.name()?.to_str()?.to_owned()))
    });
    tagged.collect()
}

/// Returns the place of a member of a struct; `None` where there is no such struct or member.
pub(crate) fn member(btf: &Btf<'_>, of: &str, name: &str) -> Option<Place> {
    let found = btf.type_by_kind::<Struct<'_>>().find(|known| known.name() == Some(OsStr::new(of)))?;
    let member = found.iter().find(|member| member.name == Some(OsStr::new(name)))?;
    let MemberAttr::Normal { offset } = member.attr else { return None };
    Some(Place { offset: offset as usize / 8, bytes: bytes_of(btf, member.ty)? })
}

fn bytes_of(btf: &Btf<'_>, id: libbpf_rs::btf::TypeId) -> Option<usize> {
    let plain = btf.type_by_id::<libbpf_rs::btf::BtfType<'_>>(id)?.skip_mods_and_typedefs();
    if let Ok(array) = Array::try_from(plain) {
        return Some(array.capacity() * bytes_of(btf, array.ty())?);
    }
    if let Ok(whole) = Struct::try_from(plain) {
        return Some(whole.size());
    }
    libbpf_rs::btf::types::Int::try_from(plain).ok().map(|int| int.bits.div_ceil(8).into())
}

/// Returns the kernel's own types. Errors where the kernel has none (CONFIG_DEBUG_INFO_BTF).
pub(crate) fn of_kernel() -> Result<Btf<'static>> {
    crate::messages::quiet();
    Btf::from_vmlinux().map_err(|error| Error::call("read the kernel's types (BTF)", &error))
}

/// Returns whether the kernel has a struct of this name. Errors where it describes none of its types.
pub fn kernel_has_struct(name: &str) -> Result<bool> {
    Ok(of_kernel()?.type_by_kind::<Struct<'_>>().any(|known| known.name() == Some(OsStr::new(name))))
}
