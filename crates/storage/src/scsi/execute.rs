//! The way of a command through a logical unit.

use super::cdb::{be16, be32, extent, Cdb};
use super::command::{Continuation, Reply, Request, Step};
use super::lun::Lun;
use super::medium::{Op, Outcome};
use super::nexus::Nexus;
use super::opcodes::{self, OpcodeClass};
use super::sense::{status, Sense};
use super::{block, inquiry, mode, provisioning, reserve_out};
use wire::iscsi::Rope;

impl Lun {
    /// Bytes of data that a command takes, before it is known whether it is right: 0 for one that takes none.
    pub fn data_out_bytes(&self, cdb: &Cdb) -> u64 {
        let block = u64::from(self.config.geometry.block_bytes);
        match cdb[0] {
            0x0a | 0x2a | 0x2e | 0x8a | 0x8b | 0x8e | 0xaa | 0xae => u64::from(extent(cdb).blocks) * block,
            0x2f | 0x8f | 0xaf => match extent(cdb) {
                extent if extent.byte_check() == 1 => u64::from(extent.blocks) * block,
                extent if extent.byte_check() == 3 && extent.blocks > 0 => block,
                _ => 0,
            },
            0x15 => u64::from(cdb[4]),
            0x41 => block,
            0x42 | 0x55 => u64::from(be16(cdb, 7)),
            0x5f => u64::from(be32(cdb, 5)),
            0x89 => u64::from(cdb[13]) * 2 * block,
            // With NDOB there is no data-out buffer.
            0x93 if cdb[1] & 1 == 0 => block,
            _ => 0,
        }
    }

    /// Begins a command with its data.
    pub fn begin(&mut self, request: &Request<'_>, data: Rope) -> Step {
        let Request { nexus, cdb, offered, .. } = *request;
        let command = match opcodes::find(cdb) {
            Ok(command) => command,
            Err(sense) => return Step::Done(self.check(sense)),
        };
        // INQUIRY, REPORT LUNS and REQUEST SENSE pass by what waits (SAM-5, 5.14).
        if !matches!(cdb[0], 0x12 | 0xa0 | 0x03) {
            if let Some((code, qualifier)) = self.standing.get_mut(nexus).and_then(|s| s.attentions.pop_front()) {
                return Step::Done(self.check(Sense::attention(code, qualifier)));
            }
        }
        if self.reservations.conflict(nexus, cdb, command.class) {
            return Step::Done(Lun::plain(status::RESERVATION_CONFLICT));
        }
        if command.medium && !self.started {
            return Step::Done(self.check(Sense::STOPPED));
        }
        if command.class == OpcodeClass::Write && command.medium && !matches!(cdb[0], 0x35 | 0x91) {
            if let Some(sense) = self.write_protection() {
                return Step::Done(self.check(sense));
            }
        }
        // These two do not go with data that is longer than they take (SBC-3, 5.2 and 5.46).
        if matches!(cdb[0], 0x41 | 0x89 | 0x93) && u64::from(offered) > self.data_out_bytes(cdb) {
            // 256 blocks and more do not fit into the CDB of COMPARE AND WRITE, and come as their lower byte.
            let many = cdb[0] == 0x89 && cdb[13] == 0;
            return Step::Done(self.check(if many { Sense::cdb(13) } else { Sense::INFORMATION_UNIT }));
        }
        self.perform(nexus, cdb, data).unwrap_or_else(|sense| Step::Done(self.check(sense)))
    }

    fn perform(&mut self, nexus: &Nexus, cdb: &Cdb, data: Rope) -> Result<Step, Sense> {
        let length10 = usize::from(be16(cdb, 7));
        let (given, allocation) = match cdb[0] {
            0x03 => (Ok(self.request_sense(nexus, cdb)), usize::from(cdb[4])),
            0x12 => (inquiry::inquiry(&self.config, cdb), usize::from(be16(cdb, 3))),
            0x1a => (mode::sense6(self, cdb), usize::from(cdb[4])),
            0x5a => (mode::sense10(self, cdb), length10),
            0x25 => (block::capacity10(&self.config, cdb), 8),
            0x9e if cdb[1] & 0x1f == 0x10 => (block::capacity16(&self.config), be32(cdb, 10) as usize),
            0x5e => (self.reservations.report(cdb), length10),
            0xa3 => (opcodes::report(cdb), opcodes::report_allocation(cdb)),
            0x00 => (Ok(Vec::new()), 0),
            0x15 | 0x55 => return mode::select(self, nexus, cdb, &data.to_payload().to_bytes()),
            0x1b => return self.start_stop(cdb),
            0x1e => {
                if let Some(standing) = self.standing.get_mut(nexus) {
                    standing.prevents_removal = cdb[4] & 1 != 0;
                }
                (Ok(Vec::new()), 0)
            }
            0x16 | 0x17 | 0x56 | 0x57 => return Ok(Step::Done(Lun::plain(self.reservations.simple(nexus, cdb)))),
            0x5f => {
                let status = reserve_out::perform(self, nexus, cdb, &data.to_payload().to_bytes())?;
                return Ok(Step::Done(Lun::plain(status)));
            }
            0x41 | 0x42 | 0x93 | 0x9e => return provisioning::begin(self, cdb, &data),
            _ => return block::begin(self, cdb, data),
        };
        let mut bytes = given?;
        bytes.truncate(allocation);
        Ok(Step::Done(Reply { data: bytes.into(), ..Lun::plain(status::GOOD) }))
    }

    /// Finishes a command whose operation came to an end.
    pub fn finish(&self, then: Continuation, outcome: Outcome) -> Reply {
        match (outcome, then) {
            (Outcome::Data(data), _) => Reply { data, ..Lun::plain(status::GOOD) },
            (Outcome::Done, Continuation::Prefetch) => Lun::plain(status::CONDITION_MET),
            (Outcome::Done, _) => Lun::plain(status::GOOD),
            (Outcome::Miscompare(at), _) => self.check(Sense { information: Some(at), ..Sense::MISCOMPARE }),
            (Outcome::Allocation(runs), Continuation::LbaStatus(allocation)) => {
                let mut data = provisioning::status_data(&runs);
                data.truncate(allocation as usize);
                Reply { data: data.into(), ..Lun::plain(status::GOOD) }
            }
            (Outcome::Allocation(_), _) => Lun::plain(status::GOOD),
            (Outcome::Failed(error), _) => self.check(error.into()),
        }
    }

    fn request_sense(&mut self, nexus: &Nexus, cdb: &Cdb) -> Vec<u8> {
        let waiting = self.standing.get_mut(nexus).and_then(|standing| standing.attentions.pop_front());
        let sense = match waiting {
            Some((code, qualifier)) => Sense::attention(code, qualifier),
            None if !self.started => Sense::STOPPED,
            None => Sense::NONE,
        };
        sense.bytes(cdb[1] & 1 != 0)
    }

    fn start_stop(&mut self, cdb: &Cdb) -> Result<Step, Sense> {
        let (power, stays, eject, start) = (cdb[4] >> 4, cdb[4] & 4 != 0, cdb[4] & 2 != 0, cdb[4] & 1 != 0);
        if power != 0 {
            // Power conditions other than on and off are not kept (no mode page 1Ah); START and LOEJ do not count then.
            return if matches!(power, 1 | 7) { Ok(Lun::good()) } else { Err(Sense::cdb(4)) };
        }
        if eject {
            // Nothing can be taken out: RMB is 0 (SBC-3, 5.25).
            let prevented = self.standing.values().any(|standing| standing.prevents_removal);
            return Err(if prevented { Sense::REMOVAL_PREVENTED } else { Sense::cdb(4) });
        }
        self.started = start;
        // A stopped unit loses its power next: cached data goes to the medium, unless NO_FLUSH is set
        // (SBC-3, 5.25).
        Ok(if start || stays { Lun::good() } else { Step::Work(Op::Flush, Continuation::Plain) })
    }
}
