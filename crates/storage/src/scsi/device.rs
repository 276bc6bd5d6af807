//! All units of a target, and what is answered for those that are not there.

use super::cdb::{be32, Cdb};
use super::command::{Continuation, Reply, Request, Step};
use super::inquiry;
use super::lun::Lun;
use super::medium::Outcome;
use super::nexus::Nexus;
use super::sense::{status, Sense};
use wire::iscsi::{Payload, Rope};

/// Logical units, by number from 0.
#[derive(Clone, Debug, Default)]
pub struct Device {
    luns: Vec<Lun>,
}

impl Device {
    /// Units 0, 1, ...; at most 256, which is what one byte of the peripheral method addresses.
    pub fn new(luns: Vec<Lun>) -> Device {
        Device { luns }
    }

    /// The units.
    pub fn luns(&self) -> &[Lun] {
        &self.luns
    }

    /// Number of the unit that eight bytes mean: one level, peripheral or flat method (SAM-5, 4.7.5).
    pub fn index(&self, lun: u64) -> Option<usize> {
        let first = (lun >> 48) as u16;
        let index = match first >> 14 {
            0 if first < 0x100 => usize::from(first),
            1 => usize::from(first & 0x3fff),
            _ => return None,
        };
        (lun << 16 == 0 && index < self.luns.len()).then_some(index)
    }

    /// An initiator has come.
    pub fn attach(&mut self, nexus: &Nexus) {
        self.luns.iter_mut().for_each(|lun| lun.attach(nexus));
    }

    /// An initiator has gone.
    pub fn detach(&mut self, nexus: &Nexus) {
        self.luns.iter_mut().for_each(|lun| lun.detach(nexus));
    }

    /// Resets one unit, or all.
    pub fn reset(&mut self, index: Option<usize>) {
        for (at, lun) in self.luns.iter_mut().enumerate() {
            if index.is_none() || index == Some(at) {
                lun.reset();
            }
        }
    }

    /// A unit attention for one initiator.
    pub fn raise_attention(&mut self, index: Option<usize>, nexus: &Nexus, code: (u8, u8)) {
        if let Some(lun) = index.and_then(|index| self.luns.get_mut(index)) {
            lun.raise_attention_for(nexus, code);
        }
    }

    /// Bytes of data that a command takes.
    pub fn data_out_bytes(&self, lun: u64, cdb: &Cdb) -> u64 {
        self.index(lun).map_or(0, |index| self.luns[index].data_out_bytes(cdb))
    }

    /// Begins a command. The index of its unit comes with an operation.
    pub fn begin(&mut self, request: Request<'_>, data: Rope) -> (Step, usize) {
        let index = self.index(request.lun);
        if request.cdb[0] == 0xa0 {
            return (self.report_luns(request.cdb), 0);
        }
        match index {
            Some(index) => (self.luns[index].begin(&request, data), index),
            None if request.cdb[0] == 0x12 => {
                let mut data = inquiry::absent();
                data.truncate(usize::from(request.cdb[3]) << 8 | usize::from(request.cdb[4]));
                let reply = Reply { status: status::GOOD, sense: Vec::new(), data: data.into() };
                (Step::Done(reply), 0)
            }
            // The sense data is the command's data here, and the command succeeds (SPC-4, 6.39).
            None if request.cdb[0] == 0x03 => {
                let mut data = Sense::NO_LUN.bytes(request.cdb[1] & 1 != 0);
                data.truncate(usize::from(request.cdb[4]));
                (Step::Done(Reply { status: status::GOOD, sense: Vec::new(), data: data.into() }), 0)
            }
            None => (Step::Done(refusal(Sense::NO_LUN)), 0),
        }
    }

    /// Finishes a command that waited for the medium of a unit.
    pub fn finish(&self, index: usize, then: Continuation, outcome: Outcome) -> Reply {
        self.luns[index].finish(then, outcome)
    }

    fn report_luns(&self, cdb: &Cdb) -> Step {
        // 0: units, 1: well known ones (none), 2: both.
        let luns = match cdb[2] {
            0 | 2 => self.luns.len(),
            1 => 0,
            _ => return Step::Done(refusal(Sense::cdb(2))),
        };
        let mut data = (luns as u32 * 8).to_be_bytes().to_vec();
        data.extend_from_slice(&[0; 4]);
        for index in 0..luns {
            data.extend_from_slice(&((index as u64) << 48).to_be_bytes());
        }
        data.truncate(be32(cdb, 6) as usize);
        Step::Done(Reply { status: status::GOOD, sense: Vec::new(), data: data.into() })
    }
}

fn refusal(sense: Sense) -> Reply {
    Reply { status: status::CHECK_CONDITION, sense: sense.bytes(false), data: Payload::default() }
}
