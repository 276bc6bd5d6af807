//! Changes of the host for a run or a copy: controls and sysctls, undone when they are dropped.

use crate::controls::{ControlPlan, Controls};
use crate::error::{AgentError, Kind};
use crate::guard::Guard;
use crate::journal::Journal;
use crate::output::Output;
use serde::Deserialize;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two looks for `stop`.
const LOOK: Duration = Duration::from_millis(20);

/// Changes of the host. Dropping it undoes all, in this order: a control may be the host's default, and the guard waits
/// for the journal's lock.
#[derive(Default)]
pub struct Changes {
    journal: Option<Journal>,
    controls: Option<Controls>,
    guard: Option<Guard>,
}

impl Changes {
    /// Registers the controls and sets the sysctls.
    ///
    /// # Errors
    /// One cannot be; those before it are undone.
    pub fn make(controls: &[ControlPlan], sysctls: &BTreeMap<String, String>) -> Result<Changes, AgentError> {
        let mut changes = Changes::default();
        if !sysctls.is_empty() || Controls::need_journal(controls) {
            let journal = changes.journal.insert(Journal::begin()?);
            changes.guard = Some(Guard::start(journal.path())?);
        }
        // One of them may become the host's default, by a sysctl.
        changes.controls = Some(Controls::register(controls, changes.journal.as_mut())?);
        if let Some(journal) = &mut changes.journal {
            sysctls.iter().try_for_each(|(name, value)| journal.set(name, value))?;
        }
        Ok(changes)
    }

    /// Sysctls that somebody else has set since.
    pub fn changed_since(&self) -> Vec<(String, String)> {
        self.journal.as_ref().map(Journal::changed).unwrap_or_default()
    }

    /// Undoes all; an error says what could not be.
    pub fn undo(mut self) -> Result<(), AgentError> {
        let failed = self.journal.take().map(|journal| journal.undo().failed).unwrap_or_default();
        match failed.first() {
            None => Ok(()),
            Some(reason) => Err(AgentError::new(Kind::Kernel, reason)),
        }
    }
}

/// Keys of the request `hold`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    #[serde(default)]
    controls: Vec<ControlPlan>,
    #[serde(default)]
    sysctls: BTreeMap<String, String>,
}

impl Hold {
    /// Makes the changes, tells of them, and undoes them after `stop`: for a copy, whose own agent has no rights beyond
    /// its user's.
    ///
    /// # Errors
    /// One cannot be made, or undone.
    pub fn execute(&self, id: u64, output: &Output, stop: &AtomicBool) -> Result<Value, AgentError> {
        let changes = Changes::make(&self.controls, &self.sysctls)?;
        output.event(id, "held", json!({}));
        while !stop.load(Ordering::Relaxed) {
            std::thread::park_timeout(LOOK);
        }
        let changed = changes.changed_since();
        changes.undo()?;
        Ok(json!({"sysctls_changed": changed.into_iter().collect::<BTreeMap<_, _>>()}))
    }
}
