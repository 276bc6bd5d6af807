//! A user's own algorithm on one flow: its hooks, and the names that a message about them has.

#![cfg_attr(not(unix), allow(dead_code, reason = "only a system that loads a user's own file has one"))]

use crate::hooks::Hooks;
use crate::sock::CcSock;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// A user's own hooks, and what a message says about them.
pub(crate) struct Own {
    pub(crate) hooks: Hooks,
    pub(crate) subject: &'static Subject,
}

/// A sender, and of a user's own algorithm its hooks, which functions under a guard find by the sender's address.
#[repr(C)]
pub(crate) struct Sender {
    pub(crate) sock: CcSock,
    pub(crate) own: Option<Arc<Own>>,
}

/// The names in a message. Each stays for good, as a signal may read it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Subject {
    /// The C file, by the path that the user gave.
    pub(crate) file: &'static str,
    /// Places of the file that divide by what may be zero, separated by commas; may be empty.
    pub(crate) divisions: &'static str,
    /// Its flow, such as "flow bulk"; empty where there is none.
    pub(crate) flow: &'static str,
    /// Time of the sender's clock at the flow's start, us.
    pub(crate) start_us: u64,
}

impl Subject {
    pub(crate) fn new(file: &str, divisions: &[usize]) -> &'static Subject {
        let places: Vec<_> = divisions.iter().map(|line| format!("{file}:{line}")).collect();
        interned(Subject { file: text(file), divisions: text(&places.join(", ")), flow: "", start_us: 0 })
    }

    pub(crate) fn of_flow(&self, flow: &str, start_us: u64) -> &'static Subject {
        interned(Subject { flow: text(flow), start_us, ..*self })
    }
}

fn interned(subject: Subject) -> &'static Subject {
    static SUBJECTS: Mutex<BTreeSet<&'static Subject>> = Mutex::new(BTreeSet::new());
    let mut known = SUBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(&subject) {
        return known;
    }
    let made: &'static Subject = Box::leak(Box::new(subject));
    known.insert(made);
    made
}

/// Returns a text that stays, one line, each once.
fn text(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let line = text.replace(char::is_control, "?");
    let mut known = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(line.as_str()) {
        return known;
    }
    let made: &'static str = Box::leak(line.into_boxed_str());
    known.insert(made);
    made
}
