//! A congestion control: the constants that make a variant of an object, and its registration.
//!
//! The names are those of congestion/bpf/env.h and congestion/bpf/cwnd_reduction.h.

use crate::error::{Error, Result};
use crate::object::{LoadedObject, ObjectFile};
use libbpf_rs::Link;
use std::collections::BTreeMap;

/// The struct of the table of operations; of the kernel's it has the members that are used.
pub(crate) const OPS_STRUCT: &str = "tcp_congestion_ops";

/// First part of the name of a parameter's constant; the parameter's name follows.
pub(crate) const PARAMETER: &str = "cc_param_";

/// The constant with a control's name for people.
pub(crate) const LABEL: &str = "cc_label";

/// The constant that has a sender look for commands.
const LISTENS: &str = "cc_listens";

/// TCP_CONG_NON_RESTRICTED: a program without CAP_NET_ADMIN may choose it as well.
const NON_RESTRICTED: u32 = 1;

/// Everything that makes a variant of an algorithm's object: constants, which are set before the verifier sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Its name in the kernel, of at most 15 characters.
    pub name: String,
    /// Its name for people; "" leaves the algorithm's.
    pub label: String,
    /// Parameters that are not at their defaults.
    pub parameters: BTreeMap<String, i64>,
    /// Only programs with CAP_NET_ADMIN may choose it.
    pub restricted: bool,
    /// Its senders look for commands on each ACK (congestion/bpf/cwnd_reduction.h); of any other the verifier drops
    /// that part.
    pub listens: bool,
    /// It is registered by a link, which ends with its process (Linux 6.4).
    pub linked: bool,
}

impl ObjectFile {
    /// Makes it a variant of its algorithm. Errors: it has no such parameter, or the name is too long.
    pub fn configure(&mut self, settings: &Settings) -> Result<()> {
        for (name, value) in &settings.parameters {
            self.set_constant(&format!("{PARAMETER}{name}"), &value.to_ne_bytes()).map_err(|error| match error {
                Error::Lacks(_) => Error::Lacks(format!("parameter '{name}': the algorithm never reads it")),
                other => other,
            })?;
        }
        if settings.listens {
            self.set_constant(LISTENS, &1u32.to_ne_bytes())?;
        }
        if !settings.label.is_empty() {
            self.set_constant(LABEL, ended(&settings.label, self.constant(LABEL)?.len()))?;
        }
        let room = self.member(OPS_STRUCT, "name")?.len();
        if settings.name.len() >= room {
            let what = format!("the name {}", settings.name);
            return Err(Error::Size { what, bytes: settings.name.len(), room: room - 1 });
        }
        self.set_member(OPS_STRUCT, "name", settings.name.as_bytes())?;
        if !settings.restricted {
            let flags = self.member(OPS_STRUCT, "flags")?;
            let flags = flags.try_into().map(u32::from_ne_bytes).unwrap_or(0);
            self.set_member(OPS_STRUCT, "flags", &(flags | NON_RESTRICTED).to_ne_bytes())?;
        }
        if settings.linked {
            self.set_linked()?;
        }
        Ok(())
    }
}

/// The text, cut so that a zero behind it has room as well.
fn ended(text: &str, room: usize) -> &[u8] {
    &text.as_bytes()[..text.len().min(room.saturating_sub(1))]
}

impl LoadedObject {
    /// Registers its congestion control.
    pub fn register(&mut self) -> Result<Registration> {
        let linked = self.operations()?.attach_struct_ops();
        linked.map(Registration).map_err(|error| Error::call("register the congestion control", &error))
    }
}

/// A registered congestion control, until this is dropped.
#[derive(Debug)]
pub struct Registration(Link);

impl Registration {
    /// Leaves it registered; [`crate::unregister`] ends that. A control that is linked ends with the process all the
    /// same.
    pub fn keep(mut self) {
        self.0.disconnect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip::skipped_for_kernel;
    use crate::types;
    use std::path::Path;

    /// The object of a built-in algorithm; `None`, with a word on why, where there is no clang.
    fn opened(algorithm: &str) -> Option<ObjectFile> {
        let code = congestion::find(algorithm).expect("built in").code().to_owned();
        match congestion::compile_bpf(Path::new(&format!("{algorithm}.c")), &code, None) {
            Err(congestion::CompileError::NoClang) => {
                skipped_for_kernel("clang is not installed (or set CLANG)");
                None
            }
            made => Some(ObjectFile::open(&made.expect("it compiles").bytes, "algorithm").expect("it opens")),
        }
    }

    fn settings(name: &str) -> Settings {
        Settings { name: name.to_owned(), ..Settings::default() }
    }

    #[test]
    fn what_makes_a_variant_is_set_and_nothing_else_is() {
        let (Some(before), Some(mut object)) = (opened("storage_friendly"), opened("storage_friendly")) else { return };
        let parameters = [("reduction".to_owned(), 999_999)].into();
        let wanted = Settings { parameters, label: "storage_friendly=qa".to_owned(), ..settings("elephan_qa") };
        object.configure(&wanted).expect("it has all that");
        assert_eq!(object.constant("cc_param_reduction").expect("there"), 999_999i64.to_ne_bytes());
        assert!(object.constant(LABEL).expect("there").starts_with(b"storage_friendly=qa\0"));
        assert_eq!(object.member(OPS_STRUCT, "name").expect("there"), *b"elephan_qa\0\0\0\0\0\0");
        assert_eq!(object.member(OPS_STRUCT, "flags").expect("there"), NON_RESTRICTED.to_ne_bytes());
        let others = ["cc_param_cap", "cc_param_congestion_avoidance", LISTENS];
        for name in others {
            assert_eq!(object.constant(name).expect(name), before.constant(name).expect(name), "{name}");
        }
        assert_eq!(before.member(OPS_STRUCT, "name").expect("there"), *b"elephan_storage\0");
        assert_eq!(types::variables(&object.types().expect("it has some"), crate::object::CONSTANTS).len(), 5);
    }

    #[test]
    fn a_restricted_control_has_no_flag_and_one_that_listens_says_so() {
        let Some(mut object) = opened("reno") else { return };
        object.configure(&Settings { restricted: true, listens: true, ..settings("elephan_qr") }).expect("it may");
        assert_eq!(object.member(OPS_STRUCT, "flags").expect("there"), [0; 4]);
        assert_eq!(object.constant(LISTENS).expect("there"), 1u32.to_ne_bytes());
    }

    #[test]
    fn a_setting_that_the_object_cannot_take_is_refused_in_words() {
        let Some(mut object) = opened("reno") else { return };
        let nonsense = Settings { parameters: [("nonsense".to_owned(), 1)].into(), ..settings("elephan_qa") };
        let error = object.configure(&nonsense).expect_err("reno has no such parameter").to_string();
        assert_eq!(error, "the compiled object has no parameter 'nonsense': the algorithm never reads it");
        let error = object.configure(&settings("elephan_too_long")).expect_err("16 characters").to_string();
        assert_eq!(error, "the name elephan_too_long has 16 bytes, and there is room for 15");
        let long = Settings { label: "é".repeat(60), ..settings("elephan_qa") };
        object.configure(&long).expect("a label is cut");
        assert_eq!(object.constant(LABEL).expect("there").last(), Some(&0));
    }
}
