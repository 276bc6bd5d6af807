//! Congestion controls of one run: registered from the objects that the front hands over.

use crate::check;
use crate::error::{AgentError, Kind};
use crate::hex;
use crate::journal::Journal;
use bpf::{Error, LoadedObject, Log, ObjectFile, Registration, Settings};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// First part of the names that elephan gives.
const MARK: &str = "elephan_";

/// A control to be registered.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlPlan {
    name: String,
    object: String,
    #[serde(default)]
    label: String,
    #[serde(default)]
    parameters: BTreeMap<String, i64>,
}

/// Registered controls, until this is dropped.
pub struct Controls(
    #[allow(dead_code, reason = "they are registered while they live")] Vec<(Registration, LoadedObject)>,
);

impl Controls {
    /// Registers all of `plans`. Where the kernel has no links, the journal knows them.
    ///
    /// # Errors
    /// What is no control, what this process may not, what the verifier refuses, a name that is taken.
    pub fn register(plans: &[ControlPlan], mut journal: Option<&mut Journal>) -> Result<Controls, AgentError> {
        let linked = check::has_links();
        let mut made = vec![];
        for plan in plans {
            let name = &plan.name;
            if !name.starts_with(MARK) {
                return Err(AgentError::input(format_args!("controls: {name}: a name that begins with {MARK}")));
            }
            let bytes = hex::decode(&plan.object);
            let bytes = bytes.ok_or_else(|| AgentError::input(format_args!("controls: {name}: object: hex digits")))?;
            if !Path::new("/sys/kernel/btf/vmlinux").exists() {
                let text = format!("{name}: this kernel has no BTF (CONFIG_DEBUG_INFO_BTF): nothing can be loaded");
                return Err(AgentError::new(Kind::Kernel, text));
            }
            let settings = Settings {
                name: name.clone(),
                label: plan.label.clone(),
                parameters: plan.parameters.clone(),
                restricted: false,
                listens: false,
                linked,
            };
            let opened = || {
                let mut object = ObjectFile::open(&bytes, "algorithm")?;
                object.configure(&settings)?;
                Ok(object)
            };
            let mut object = bpf::loaded(opened, Log::Statistics).map_err(|error| refused(name, &error))?;
            if let Some(journal) = journal.as_deref_mut().filter(|_| !linked) {
                journal.note_control(name)?;
            }
            let registration = object.register().map_err(|error| refused(name, &error))?;
            made.push((registration, object));
        }
        Ok(Controls(made))
    }

    /// Returns true if registering controls changes more of the host than a killed process takes with it.
    pub fn need_journal(plans: &[ControlPlan]) -> bool {
        !plans.is_empty() && !check::has_links()
    }
}

fn refused(name: &str, error: &Error) -> AgentError {
    if matches!(error.errno(), Some(libc::EPERM | libc::EACCES))
        && !matches!(error, Error::Load { log, .. } if !log.is_empty())
    {
        return AgentError::rights(format_args!(
            "{name}: loading a congestion control needs root: sudo -n elephan-agent"
        ));
    }
    let log = match error {
        // Of the verifier's words the last but its statistics name the reason.
        Error::Load { log, .. } => log.lines().rev().find(|line| !line.contains("processed")).unwrap_or("").to_owned(),
        _ => String::new(),
    };
    let more = if log.is_empty() { String::new() } else { format!(": {log}") };
    AgentError::new(Kind::Kernel, format_args!("{name}: {}{more}", error.reason()))
}
