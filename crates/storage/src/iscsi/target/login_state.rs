//! The state of a login under way.

use crate::iscsi::chap::Algorithm;
use crate::iscsi::settings::Negotiation;

/// Progress of CHAP.
#[derive(Debug, Default, PartialEq)]
pub(super) enum ChapState {
    #[default]
    Nothing,
    /// CHAP was agreed on: CHAP_A is to come.
    Method,
    /// The challenge was sent.
    Challenged(Algorithm),
    Done,
}

/// A login under way.
#[derive(Debug, Default)]
pub(super) struct Login {
    pub cmd_sn: u32,
    pub began: bool,
    pub stage: u8,
    pub text: Vec<u8>,
    pub initiator: String,
    pub discovery: bool,
    pub isid: [u8; 6],
    pub tsih: u16,
    pub proof: ChapState,
    pub negotiation: Option<Negotiation>,
    /// Memory for unsolicited data, bytes; None: not negotiated yet.
    pub reserved: Option<u64>,
}

impl Login {
    pub fn reserved(&self) -> u64 {
        self.reserved.unwrap_or(0)
    }
}
