//! The state of a login under way.

use crate::iscsi::chap::Algorithm;
use crate::iscsi::settings::Negotiation;
use wire::iscsi::Text;

/// The initiator's state in the security stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ChapState {
    Method,
    Challenge,
    Responded(Algorithm),
}

/// A login under way.
#[derive(Debug)]
pub(super) struct Login {
    pub stage: u8,
    pub proof: ChapState,
    pub negotiation: Negotiation,
    pub offered: bool,
    pub text: Vec<u8>,
    pub itt: u32,
    pub steps: u32,
}

/// A login compares with nothing: phases are told apart by their kind.
impl PartialEq for Login {
    fn eq(&self, _: &Login) -> bool {
        false
    }
}

impl Login {
    /// Offers the settings, once.
    pub fn offer(&mut self, text: &mut Text) {
        if !self.offered {
            self.offered = true;
            self.negotiation.offers().iter().for_each(|(key, value)| text.push(key, value));
        }
    }
}
