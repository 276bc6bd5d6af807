//! One flow's congestion control: the sender's shared fields and the calls into the algorithm.

use crate::descriptor::{Algorithm, ParamDesc};
use crate::hooks::Hooks;
use crate::own::Sender;
use crate::sock::{AckSample, CaEvent, CaState, CcSock, RateSample};
use std::collections::BTreeMap;
use std::fmt;

/// A value for a parameter that the algorithm does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// No parameter of this name.
    #[error("{algorithm} has no parameter {name:?}: {known}")]
    Unknown {
        /// Algorithm.
        algorithm: String,
        /// The name given.
        name: String,
        /// Names that there are.
        known: String,
    },
    /// Outside the range that the algorithm declares.
    #[error("{algorithm}: {name} = {value} is out of range: {allowed}")]
    OutOfRange {
        /// Algorithm.
        algorithm: String,
        /// Parameter.
        name: String,
        /// The value given, as a user writes it.
        value: String,
        /// The range, likewise, with its unit.
        allowed: String,
    },
}

/// An algorithm at work on one flow. The TCP endpoint owns it, keeps the fields of [`CcSock`] current, and calls the
/// hooks where Linux does.
///
/// A hook is one indirect call into C, and one the algorithm does not have one branch; no allocation, no lock.
pub struct Controller {
    sender: Sender,
    hooks: Hooks,
    algorithm: Algorithm,
}

impl Controller {
    /// A fresh flow under `algorithm`; parameters not in `values` have their defaults. Integers as the algorithm
    /// scales them ([`crate::ParamDesc::scale`]).
    ///
    /// # Errors
    /// A name that the algorithm does not have, or a value outside its range.
    pub fn new(algorithm: &Algorithm, values: &BTreeMap<String, i64>) -> Result<Controller, ParamError> {
        let mut sock = CcSock::default();
        for (slot, param) in sock.params.iter_mut().zip(algorithm.params()) {
            *slot = param.default;
        }
        for (name, &value) in values {
            let Some(i) = algorithm.params().iter().position(|p| p.name == *name) else {
                return Err(unknown(algorithm, name));
            };
            let p = &algorithm.params()[i];
            if !(p.min..=p.max).contains(&value) {
                return Err(ParamError::OutOfRange {
                    algorithm: algorithm.name().to_owned(),
                    name: name.clone(),
                    value: p.text(value),
                    allowed: range(p),
                });
            }
            sock.params[i] = value;
        }
        let sender = Sender { sock, own: algorithm.own().cloned() };
        Ok(Controller { sender, hooks: algorithm.raw_hooks(), algorithm: algorithm.clone() })
    }

    /// The sender as hooks get it, with access to what lies behind it.
    #[inline]
    fn sk(&mut self) -> *mut CcSock {
        std::ptr::from_mut(&mut self.sender).cast()
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// The sender as the algorithm sees it.
    #[inline]
    pub fn sock(&self) -> &CcSock {
        &self.sender.sock
    }

    /// The same, for the endpoint to keep current.
    #[inline]
    pub fn sock_mut(&mut self) -> &mut CcSock {
        &mut self.sender.sock
    }

    /// The connection is established: clears the algorithm's state and lets it prepare.
    pub fn init(&mut self) {
        self.sender.sock.private = Default::default();
        if let Some(hook) = self.hooks.init {
            // SAFETY: here and below: a C function of this signature (CC_ALGORITHM checks it) over the structure that
            // both sides lay out alike; it keeps no pointer, and `algorithm` keeps its code loaded.
            unsafe { hook(self.sk()) }
        }
    }

    /// A reduction begins: the new slow start threshold, segments.
    #[inline]
    pub fn ssthresh(&mut self) -> u32 {
        // SAFETY: see `init`.
        unsafe { (self.hooks.ssthresh)(self.sk()) }
    }

    /// An ACK that may raise the window. `ack`: low 32 bits of the byte acknowledged; `acked`: segments delivered.
    #[inline]
    pub fn cong_avoid(&mut self, ack: u32, acked: u32) {
        if let Some(hook) = self.hooks.cong_avoid {
            // SAFETY: see `init`.
            unsafe { hook(self.sk(), ack, acked) }
        }
    }

    /// Recovery changes to `state`: the algorithm hears of it first, then it holds, as in Linux's tcp_set_ca_state.
    #[inline]
    pub fn set_state(&mut self, state: CaState) {
        self.call_set_state(state as u8);
        self.sender.sock.ca_state = state as u8;
    }

    /// The hook alone, with any number.
    #[inline]
    pub(crate) fn call_set_state(&mut self, state: u8) {
        if let Some(hook) = self.hooks.set_state {
            // SAFETY: see `init`.
            unsafe { hook(self.sk(), state) }
        }
    }

    /// Something happened to the window.
    #[inline]
    pub fn cwnd_event(&mut self, event: CaEvent) {
        self.call_cwnd_event(event as u32);
    }

    /// The same, with any number.
    #[inline]
    pub(crate) fn call_cwnd_event(&mut self, event: u32) {
        if let Some(hook) = self.hooks.cwnd_event {
            // SAFETY: see `init`.
            unsafe { hook(self.sk(), event) }
        }
    }

    /// Every ACK, before it is processed; `flags` of [`crate::ack_flags`].
    #[inline]
    pub fn in_ack_event(&mut self, flags: u32) {
        if let Some(hook) = self.hooks.in_ack_event {
            // SAFETY: see `init`.
            unsafe { hook(self.sk(), flags) }
        }
    }

    /// An ACK acknowledged or SACKed something.
    #[inline]
    pub fn pkts_acked(&mut self, sample: &AckSample) {
        if let Some(hook) = self.hooks.pkts_acked {
            // SAFETY: see `init`.
            unsafe { hook(self.sk(), sample) }
        }
    }

    /// The last reduction was uncalled for: the window to return to, segments.
    #[inline]
    pub fn undo_cwnd(&mut self) -> u32 {
        // SAFETY: see `init`.
        unsafe { (self.hooks.undo_cwnd)(self.sk()) }
    }

    /// The algorithm sets window and pacing itself: [`Controller::cong_control`] on every ACK.
    #[inline]
    pub fn has_cong_control(&self) -> bool {
        self.hooks.cong_control.is_some()
    }

    /// Every ACK, in every state, for an algorithm that asks for it. `flag`: what the ACK did, as Linux's FLAG_* bits.
    #[inline]
    pub fn cong_control(&mut self, ack: u32, flag: u32, sample: &RateSample) {
        if let Some(hook) = self.hooks.cong_control {
            // SAFETY: see `init`.
            unsafe { hook(self.sk(), ack, flag as i32, sample) }
        }
    }

    /// Least segments per burst of segmentation offload; none: the sender's own choice.
    #[inline]
    pub fn min_tso_segs(&mut self) -> Option<u32> {
        // SAFETY: see `init`.
        let sk = self.sk();
        self.hooks.min_tso_segs.map(|hook| unsafe { hook(sk) })
    }

    /// The flow ends.
    pub fn release(&mut self) {
        if let Some(hook) = self.hooks.release {
            // SAFETY: see `init`.
            unsafe { hook(self.sk()) }
        }
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("algorithm", &self.algorithm.name())
            .field("sock", &self.sender.sock)
            .finish()
    }
}

fn range(p: &ParamDesc) -> String {
    let choices = p.choices();
    if !choices.is_empty() {
        return format!("0 to {} for {}", p.max, choices.join(", "));
    }
    let unit = if p.unit == "1" { "" } else { p.unit.as_str() };
    format!("{} to {} {unit}", p.text(p.min), p.text(p.max)).trim_end().to_owned()
}

fn unknown(algorithm: &Algorithm, name: &str) -> ParamError {
    let known: Vec<_> = algorithm.params().iter().map(|p| p.name.as_str()).collect();
    let known = if known.is_empty() { "it has none".into() } else { format!("one of {}", known.join(", ")) };
    ParamError::Unknown { algorithm: algorithm.name().to_owned(), name: name.to_owned(), known }
}
