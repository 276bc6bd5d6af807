//! An algorithm as its C file describes it.

#[cfg(unix)]
use crate::guard::wrapped;
use crate::hooks::{Hook, HookGet, HookU32, Hooks};
use crate::library::Library;
use crate::own::{Own, Subject};
use crate::sock::{AckSample, CcSock, RateSample, MAX_PARAMS};
use std::ffi::{c_char, c_int, CStr};
use std::fmt;
use std::mem::size_of;
use std::sync::Arc;

/// `CC_ABI_VERSION` of definitions.h.
const ABI_VERSION: u32 = 3;

/// `CC_BY_VARIANT` of definitions.h.
const BY_VARIANT: i64 = -1;

/// `CC_NEEDS_ECN` of definitions.h.
const NEEDS_ECN: u32 = 2;

/// `struct cc_param` of congestion/native/env.h.
#[repr(C)]
pub(crate) struct RawParam {
    pub(crate) name: *const c_char,
    pub(crate) unit: *const c_char,
    pub(crate) doc: *const c_char,
    pub(crate) initial: i64,
    pub(crate) min: i64,
    pub(crate) max: i64,
    pub(crate) scale: i64,
}

/// `struct cc_algorithm` of congestion/native/env.h.
#[repr(C)]
pub(crate) struct RawAlgorithm {
    pub(crate) abi_version: u32,
    pub(crate) sock_bytes: u32,
    pub(crate) name: *const c_char,
    pub(crate) summary: *const c_char,
    pub(crate) source: *const c_char,
    pub(crate) params: *const RawParam,
    pub(crate) params_count: u32,
    pub(crate) flags: u32,
    pub(crate) init: Option<Hook>,
    pub(crate) release: Option<Hook>,
    pub(crate) ssthresh: Option<HookGet>,
    pub(crate) cong_avoid: Option<unsafe extern "C" fn(*mut CcSock, u32, u32)>,
    pub(crate) set_state: Option<unsafe extern "C" fn(*mut CcSock, u8)>,
    pub(crate) cwnd_event: Option<HookU32>,
    pub(crate) in_ack_event: Option<HookU32>,
    pub(crate) pkts_acked: Option<unsafe extern "C" fn(*mut CcSock, *const AckSample)>,
    pub(crate) min_tso_segs: Option<HookGet>,
    pub(crate) cong_control: Option<unsafe extern "C" fn(*mut CcSock, u32, c_int, *const RateSample)>,
    pub(crate) undo_cwnd: Option<HookGet>,
}

/// A parameter of an algorithm, as its C file declares it.
///
/// Values are integers: what a user writes is `value / scale` in `unit`; a scale of 1 is a plain integer, and the unit
/// "bool" one that is 0 or 1. A unit such as "off|slow|fast" lists the names that stand for 0, 1, 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamDesc {
    /// Name, as in a scenario.
    pub name: String,
    /// Unit; "1" for a plain number or a share.
    pub unit: String,
    /// Value when the scenario gives none; see [`ParamDesc::is_by_variant`].
    pub default: i64,
    /// Least value allowed.
    pub min: i64,
    /// Greatest value allowed.
    pub max: i64,
    /// Integer steps per unit; at least 1.
    pub scale: i64,
    /// One line on what it does.
    pub doc: String,
}

impl ParamDesc {
    /// The names of the values, in the order 0, 1, ...; none for a number.
    pub fn choices(&self) -> Vec<&str> {
        if self.unit.contains('|') {
            self.unit.split('|').collect()
        } else {
            vec![]
        }
    }

    /// Without a value of the user's, the algorithm's variant decides: the default is then below the least value.
    pub fn is_by_variant(&self) -> bool {
        self.default == BY_VARIANT && self.default < self.min
    }

    /// `value` as a user writes it: a choice by its name, else `value / scale` in decimal, exact up to 12 places.
    pub fn text(&self, value: i64) -> String {
        if value == self.default && self.is_by_variant() {
            return "by variant".to_owned();
        }
        if let Some(name) = usize::try_from(value).ok().and_then(|i| self.choices().get(i).copied()) {
            return name.to_owned();
        }
        let (scale, size) = (u128::from(self.scale.unsigned_abs()), u128::from(value.unsigned_abs()));
        let mut text = format!("{}{}", if value < 0 { "-" } else { "" }, size / scale);
        let mut rest = size % scale;
        for place in 0..12 {
            if rest == 0 {
                break;
            }
            if place == 0 {
                text.push('.');
            }
            rest *= 10;
            text.push(char::from(b'0' + (rest / scale) as u8));
            rest %= scale;
        }
        text
    }
}

/// A congestion control algorithm: its description and its code. Cheap to clone; shared between threads.
#[derive(Clone)]
pub struct Algorithm(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    name: String,
    summary: String,
    source: String,
    params: Vec<ParamDesc>,
    needs_ecn: bool,
    code: String,
    hooks: Hooks,
    /// Of a user's own algorithm: its hooks themselves, which those of `hooks` call.
    own: Option<Arc<Own>>,
    /// Holds the code of a user's own algorithm in memory as long as anyone can call it.
    _library: Option<Arc<Library>>,
}

impl Algorithm {
    /// Reads and checks a descriptor of a built-in algorithm, or of the user's own in `library`. `code` is the C text
    /// behind it. The error says what is wrong with it.
    ///
    /// # Safety
    /// `raw` points to the `struct cc_algorithm` that CC_ALGORITHM defines, in this program or in `library`.
    pub(crate) unsafe fn read(
        raw: *const RawAlgorithm,
        code: String,
        library: Option<Library>,
    ) -> Result<Algorithm, String> {
        // SAFETY: the first two fields are the same in all versions; the others are read once these have agreed.
        let (abi, sock_bytes) = unsafe { ((*raw).abi_version, (*raw).sock_bytes) };
        if abi != ABI_VERSION || sock_bytes as usize != size_of::<CcSock>() {
            return Err(format!(
                "it was compiled with another version's cc.h (ABI {abi}, sender of {sock_bytes} bytes; this is ABI \
                 {ABI_VERSION}, {} bytes)",
                size_of::<CcSock>()
            ));
        }
        // SAFETY: as the caller promises, now that the version is ours; the strings are literals of the C file.
        let raw = unsafe { &*raw };
        // SAFETY: likewise.
        let text = |p| unsafe { read_text(p) };
        let name = text(raw.name)?;
        if !is_name(&name) {
            return Err(format!("its name is {name:?}: a-z, 0-9 and _, a letter first"));
        }
        let count = raw.params_count as usize;
        if count > MAX_PARAMS {
            return Err(format!("it has {count} parameters: at most {MAX_PARAMS}"));
        }
        let mut params: Vec<ParamDesc> = vec![];
        for i in 0..count {
            // SAFETY: the array that CC_PARAMS defines holds `params_count` of them.
            let p = unsafe { &*raw.params.add(i) };
            let (default, min, max, scale) = (p.initial, p.min, p.max, p.scale);
            let name = text(p.name)?;
            let param = ParamDesc { name, unit: text(p.unit)?, default, min, max, scale, doc: text(p.doc)? };
            if scale < 1 || !((min..=max).contains(&default) || param.is_by_variant()) {
                return Err(format!("parameter {}: min <= default <= max and scale >= 1", param.name));
            }
            let choices = param.choices().len() as i64;
            if choices > 0 && (min, max, scale) != (0, choices - 1, 1) {
                return Err(format!(
                    "parameter {}: a choice of {choices} is 0 to {}, scale 1",
                    param.name,
                    choices - 1
                ));
            }
            params.push(param);
        }
        let (Some(ssthresh), Some(undo_cwnd)) = (raw.ssthresh, raw.undo_cwnd) else {
            let (lacks, tip) = match raw.ssthresh {
                None => ("ssthresh", "what a loss makes of the window"),
                Some(_) => ("undo_cwnd", "cc_undo_cwnd of cc.h will do"),
            };
            return Err(format!("it lacks the hook {lacks} ({tip}): of ssthresh and undo_cwnd Linux requires both"));
        };
        if raw.cong_avoid.is_none() && raw.cong_control.is_none() {
            return Err(
                "it lacks a hook that lets the window grow: of cong_avoid and cong_control Linux requires one".into()
            );
        }
        let hooks = Hooks {
            ssthresh,
            undo_cwnd,
            cong_avoid: raw.cong_avoid,
            pkts_acked: raw.pkts_acked,
            cong_control: raw.cong_control,
            in_ack_event: raw.in_ack_event,
            cwnd_event: raw.cwnd_event,
            set_state: raw.set_state,
            min_tso_segs: raw.min_tso_segs,
            init: raw.init,
            release: raw.release,
        };
        Ok(Algorithm(Arc::new(Inner {
            name,
            summary: text(raw.summary)?,
            source: text(raw.source)?,
            params,
            needs_ecn: raw.flags & NEEDS_ECN != 0,
            code,
            hooks,
            own: None,
            _library: library.map(Arc::new),
        })))
    }

    /// The same with its hooks under a guard, which names `subject` if a hook faults.
    #[cfg(unix)]
    pub(crate) fn guarded(&self, subject: &'static Subject) -> Algorithm {
        let hooks = self.own().map_or(self.0.hooks, |own| own.hooks);
        let inner = Inner::clone(&self.0);
        let own = Some(Arc::new(Own { hooks, subject }));
        Algorithm(Arc::new(Inner { own, hooks: wrapped(&hooks), ..inner }))
    }

    /// The same for one flow, which messages about a fault of a user's own algorithm name. `start_us` is its
    /// [`CcSock::tcp_mstamp_us`] at its start. A built-in algorithm has no such messages.
    #[must_use]
    pub fn for_flow(&self, flow: &str, start_us: u64) -> Algorithm {
        #[cfg(unix)]
        if let Some(own) = self.own() {
            return self.guarded(own.subject.of_flow(flow, start_us));
        }
        let _ = (flow, start_us);
        self.clone()
    }

    /// The same under another name than its file's in messages about a fault of a user's own algorithm, where its file
    /// is a temporary one.
    #[must_use]
    pub fn shown_as(&self, name: &str) -> Algorithm {
        #[cfg(unix)]
        if self.own().is_some() {
            return self.guarded(Subject::new(name, &[]));
        }
        let _ = name;
        self.clone()
    }

    /// A user's own hooks.
    pub(crate) fn own(&self) -> Option<&Arc<Own>> {
        self.0.own.as_ref()
    }

    /// Name, as a scenario gives it: a-z, 0-9 and _.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns its summary, one line.
    pub fn summary(&self) -> &str {
        &self.0.summary
    }

    /// Returns its source: RFC, paper.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Its parameters, in the order of their declaration; at most [`MAX_PARAMS`].
    pub fn params(&self) -> &[ParamDesc] {
        &self.0.params
    }

    /// The text of its C file: what a record keeps, and what clang makes BPF of.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// Wants ECN negotiated and its packets marked as capable of it.
    pub fn needs_ecn(&self) -> bool {
        self.0.needs_ecn
    }

    /// Sets window and pacing itself on every ACK, in place of `cong_avoid` and of TCP's own window reduction.
    pub fn has_cong_control(&self) -> bool {
        self.0.hooks.cong_control.is_some()
    }

    /// Names of the hooks it has, in the order of cc.h.
    pub fn hooks(&self) -> Vec<&'static str> {
        let h = &self.0.hooks;
        let has = [
            ("init", h.init.is_some()),
            ("ssthresh", true),
            ("cong_avoid", h.cong_avoid.is_some()),
            ("set_state", h.set_state.is_some()),
            ("cwnd_event", h.cwnd_event.is_some()),
            ("in_ack_event", h.in_ack_event.is_some()),
            ("pkts_acked", h.pkts_acked.is_some()),
            ("min_tso_segs", h.min_tso_segs.is_some()),
            ("cong_control", h.cong_control.is_some()),
            ("undo_cwnd", true),
            ("release", h.release.is_some()),
        ];
        has.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
    }

    pub(crate) fn raw_hooks(&self) -> Hooks {
        self.0.hooks
    }
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Algorithm").field("name", &self.0.name).field("params", &self.0.params).finish_non_exhaustive()
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// # Safety
/// `p` is null or the address of a C string.
unsafe fn read_text(p: *const c_char) -> Result<String, String> {
    if p.is_null() {
        return Err("a text of its description is missing".into());
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(p) };
    text.to_str().map(str::to_owned).map_err(|_| "a text of its description is not UTF-8".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_a_user_writes_them() {
        let param = |scale| ParamDesc {
            name: "x".into(),
            unit: "1".into(),
            default: 0,
            min: -10,
            max: 10,
            scale,
            doc: String::new(),
        };
        assert_eq!(param(1).text(-7), "-7");
        assert_eq!(param(1_000_000).text(125_000), "0.125");
        assert_eq!(param(1024).text(717), "0.7001953125");
        assert_eq!(param(1000).text(2000), "2");
        assert_eq!(param(3).text(1), "0.333333333333");
        assert_eq!(param(1).text(i64::MIN), "-9223372036854775808");
    }

    #[test]
    fn a_choice_prints_by_its_name() {
        let (name, doc) = ("x".to_owned(), String::new());
        let param = ParamDesc { name, unit: "off|slow|fast".into(), default: 0, min: 0, max: 2, scale: 1, doc };
        assert_eq!(param.choices(), ["off", "slow", "fast"]);
        assert_eq!([0, 1, 2, 3, -1].map(|value| param.text(value)), ["off", "slow", "fast", "3", "-1"]);
        let param = ParamDesc { default: BY_VARIANT, ..param };
        assert_eq!([0, BY_VARIANT].map(|value| param.text(value)), ["off", "by variant"]);
        // A number that may be below zero is no such thing.
        assert!(!ParamDesc { unit: "1".into(), min: -9, max: 9, ..param }.is_by_variant());
    }
}
