//! Task attributes at the target: which operations the medium is given while others are under way.

use std::collections::BTreeMap;
use storage::iscsi::{ConnectionId, Initiator, InitiatorConfig, Target, TargetConfig, Work};
use storage::scsi::{Device, Geometry, Identity, Lun, LunConfig, Op, Outcome};
use units::Time;
use wire::iscsi::{Header, Pdu, ScsiCommand, TaskRequest};

const NAME: &str = "iqn.2026-01.example:disk";
const SIMPLE: u8 = 1;
const ORDERED: u8 = 2;
const HEAD: u8 = 3;

/// An initiator that does it right; its connection.
fn login(target: &mut Target, name: &str) -> ConnectionId {
    let mut initiator = Initiator::new(InitiatorConfig::new(name, Some(NAME)));
    assert_eq!(initiator.poll_connect(), Some(0));
    let id = target.open(Time(0), "127.0.0.1:3260", [0; 17]);
    initiator.handle_connected(Time(0), 0);
    while let Some(out) = initiator.poll_pdu(0) {
        target.handle_pdu(Time(0), id, out.pdu);
        while let Some(out) = target.poll_pdu(id) {
            initiator.handle_pdu(Time(0), 0, out.pdu);
        }
    }
    id
}

struct Rig {
    target: Target,
    id: ConnectionId,
    number: u32,
    /// Operations at the medium, by their first block.
    at_work: BTreeMap<u64, Work>,
}

impl Rig {
    /// A target with one initiator that has logged in.
    fn new() -> Rig {
        let text = || "x".to_owned();
        let identity =
            Identity { vendor: text(), product: text(), revision: text(), serial: text(), target: NAME.into() };
        let geometry = Geometry { blocks: 64, block_bytes: 512, physical_bytes: 512 };
        let config = LunConfig { geometry, identity, read_only: false, thin: true, write_cache: true };
        let luns = vec![Lun::new(config.clone()), Lun::new(config)];
        let mut target = Target::new(TargetConfig::new(NAME), Device::new(luns));
        let id = login(&mut target, "iqn.2026-01.example:a");
        assert_eq!(target.session_count(), 1);
        Rig { target, id, number: 1, at_work: BTreeMap::new() }
    }

    /// Goes on as an initiator of this name that logs in.
    fn arrive(&mut self, name: &str) {
        (self.id, self.number) = (login(&mut self.target, name), 1);
    }

    /// A function of task management; the number of a command that it follows stands for that command.
    fn manage(&mut self, function: u8, referenced: u32, cmd_sn: u32) {
        let (itt, referenced_tag, ref_cmd_sn) = (77, referenced, referenced);
        let header =
            TaskRequest { immediate: true, function, itt, referenced_tag, cmd_sn, ref_cmd_sn, ..Default::default() };
        self.target.handle_pdu(Time(0), self.id, Pdu::new(header));
    }

    /// A read of one block of a unit.
    fn read(&mut self, lun: u64, block: u8, attribute: u8) {
        let mut cdb = [0; 16];
        (cdb[0], cdb[5], cdb[8]) = (0x28, block, 1);
        let itt = u32::from(block);
        let (lun, cmd_sn) = (lun << 48, self.number);
        let command = ScsiCommand {
            last: true,
            read: true,
            attribute,
            lun,
            itt,
            expected_length: 512,
            cmd_sn,
            cdb,
            ..ScsiCommand::default()
        };
        self.number += 1;
        self.target.handle_pdu(Time(0), self.id, Pdu::new(command));
    }

    /// First blocks of what the medium is given now.
    fn given(&mut self) -> Vec<u64> {
        let mut blocks = Vec::new();
        while let Some(work) = self.target.poll_work() {
            let Op::Read { lba, .. } = work.op else { panic!("{work:?}") };
            blocks.push(lba);
            self.at_work.insert(lba, work);
        }
        blocks
    }

    fn done(&mut self, block: u64) {
        let work = self.at_work.remove(&block).expect("at the medium");
        self.target.handle_work(work.id, Outcome::Data(vec![0; 512].into()));
    }

    /// Tag and status of the answers.
    fn answers(&mut self) -> Vec<(u32, u8)> {
        let mut answers = Vec::new();
        while let Some(out) = self.target.poll_pdu(self.id) {
            match out.pdu.header {
                Header::DataIn(h) if h.has_status => answers.push((h.itt, h.status)),
                Header::ScsiResponse(h) => answers.push((h.itt, h.status)),
                Header::TaskResponse(h) => answers.push((h.itt, h.response)),
                _ => {}
            }
        }
        answers
    }
}

#[test]
fn simple_commands_run_concurrently() {
    let mut rig = Rig::new();
    (1..=3).for_each(|block| rig.read(0, block, SIMPLE));
    rig.read(0, 4, 0);
    assert_eq!(rig.given(), [1, 2, 3, 4]);
    [3, 1, 4, 2].into_iter().for_each(|block| rig.done(block));
    assert_eq!(rig.answers(), [(3, 0), (1, 0), (4, 0), (2, 0)]);
}

#[test]
fn an_ordered_command_is_a_barrier() {
    let mut rig = Rig::new();
    for (block, attribute) in [(1, SIMPLE), (2, SIMPLE), (3, ORDERED), (4, SIMPLE), (5, SIMPLE), (6, ORDERED)] {
        rig.read(0, block, attribute);
    }
    assert_eq!(rig.given(), [1, 2]);
    rig.done(2);
    assert_eq!(rig.given(), []);
    rig.done(1);
    assert_eq!(rig.given(), [3]);
    rig.done(3);
    assert_eq!(rig.given(), [4, 5]);
    rig.done(4);
    rig.done(5);
    assert_eq!(rig.given(), [6]);
}

#[test]
fn a_head_of_queue_command_runs_first() {
    let mut rig = Rig::new();
    for (block, attribute) in [(1, SIMPLE), (2, ORDERED), (3, HEAD), (4, SIMPLE)] {
        rig.read(0, block, attribute);
    }
    assert_eq!(rig.given(), [1, 3]);
    rig.done(1);
    // The ordered one has only older ones to wait for, and there is none; the last has both to wait for.
    assert_eq!(rig.given(), [2]);
    rig.done(2);
    assert_eq!(rig.given(), []);
    rig.done(3);
    assert_eq!(rig.given(), [4]);
}

#[test]
fn units_have_task_sets_of_their_own() {
    let mut rig = Rig::new();
    rig.read(0, 1, SIMPLE);
    rig.read(0, 2, ORDERED);
    rig.read(1, 3, ORDERED);
    assert_eq!(rig.given(), [1, 3]);
}

#[test]
fn aborting_a_waiting_command_unblocks_later_ones() {
    let mut rig = Rig::new();
    rig.read(0, 1, SIMPLE);
    rig.read(0, 2, ORDERED);
    rig.read(0, 3, SIMPLE);
    assert_eq!(rig.given(), [1]);
    let (itt, cmd_sn) = (77, rig.number);
    let abort = wire::iscsi::TaskRequest {
        immediate: true,
        function: 1,
        itt,
        referenced_tag: 2,
        cmd_sn,
        ref_cmd_sn: 2,
        ..Default::default()
    };
    rig.target.handle_pdu(Time(0), rig.id, Pdu::new(abort));
    assert_eq!(rig.given(), [3]);
}

#[test]
fn orphaned_operations_still_block_ordered_commands() {
    let mut rig = Rig::new();
    rig.read(0, 1, SIMPLE);
    assert_eq!(rig.given(), [1]);
    rig.target.handle_closed(rig.id);
    rig.arrive("iqn.2026-01.example:b");
    rig.read(0, 2, ORDERED);
    assert_eq!(rig.given(), []);
    rig.done(1);
    assert_eq!(rig.given(), [2]);
}

/// Else a write could fall on a later one, which was sent over the new connection and acknowledged.
#[test]
fn stale_tasks_of_a_lost_session_finish_before_new_commands() {
    for is_closed in [true, false] {
        let mut rig = Rig::new();
        rig.read(0, 1, SIMPLE);
        assert_eq!(rig.given(), [1]);
        if is_closed {
            rig.target.handle_closed(rig.id);
        }
        // If the target has not heard of the loss, this session takes the place of the old one.
        rig.arrive("iqn.2026-01.example:a");
        rig.read(0, 2, SIMPLE);
        rig.read(1, 3, SIMPLE);
        assert_eq!(rig.given(), [3], "the other unit is free");
        while rig.target.poll_ready().is_some() {}
        rig.done(1);
        assert_eq!(rig.target.poll_ready(), Some(rig.id), "somebody has to take the work");
        assert_eq!(rig.given(), [2]);
    }
}

#[test]
fn a_multiple_abort_starts_none_of_the_commands() {
    for lost in [false, true] {
        let mut rig = Rig::new();
        // A write whose data does not come, and who waits for it.
        let mut cdb = [0; 16];
        (cdb[0], cdb[8]) = (0x2a, 1);
        let (itt, cmd_sn) = (50, rig.number);
        let write = ScsiCommand {
            last: true,
            write: true,
            attribute: SIMPLE,
            itt,
            expected_length: 512,
            cmd_sn,
            cdb,
            ..ScsiCommand::default()
        };
        rig.number += 1;
        rig.target.handle_pdu(Time(0), rig.id, Pdu::new(write));
        rig.read(0, 60, ORDERED);
        assert_eq!(rig.given(), []);
        if lost {
            rig.target.handle_closed(rig.id);
            assert_eq!(rig.given(), []);
            continue;
        }
        rig.manage(wire::iscsi::task::LOGICAL_UNIT_RESET, 0, rig.number);
        assert_eq!(rig.given(), []);
        assert_eq!(rig.answers(), [(77, 0)]);
    }
}

#[test]
fn a_command_aborted_before_arrival_is_not_executed() {
    let mut rig = Rig::new();
    rig.manage(wire::iscsi::task::ABORT_TASK, 1, 2);
    assert_eq!(rig.answers(), [(77, 0)]);
    rig.read(0, 1, SIMPLE);
    rig.read(0, 2, SIMPLE);
    assert_eq!(rig.given(), [2]);
    // Its number is not one that can still come.
    rig.manage(wire::iscsi::task::ABORT_TASK, 1, 3);
    assert_eq!(rig.answers(), [(77, 1)]);
}

#[test]
fn early_commands_are_aborted_too() {
    let mut rig = Rig::new();
    // Over another connection this one would have come first.
    rig.number = 2;
    rig.read(0, 2, SIMPLE);
    rig.manage(wire::iscsi::task::ABORT_TASK_SET, 0, 3);
    assert_eq!(rig.answers(), [(77, 0)]);
    rig.number = 1;
    rig.read(0, 1, SIMPLE);
    rig.number = 3;
    rig.read(0, 3, SIMPLE);
    assert_eq!(rig.given(), [1, 3]);
}

#[test]
fn an_initiator_is_told_of_commands_cleared_by_another() {
    let mut rig = Rig::new();
    rig.read(0, 1, SIMPLE);
    assert_eq!(rig.given(), [1]);
    let (first, number) = (rig.id, rig.number);
    rig.arrive("iqn.2026-01.example:b");
    rig.manage(wire::iscsi::task::CLEAR_TASK_SET, 0, 1);
    rig.done(1);
    assert_eq!(rig.answers(), [(77, 0)]);
    (rig.id, rig.number) = (first, number);
    rig.read(0, 2, SIMPLE);
    assert_eq!(rig.given(), []);
    let Some(out) = rig.target.poll_pdu(first) else { panic!("no answer") };
    let sense = out.pdu.data.to_bytes();
    // Behind the two bytes of its length: key 6, 2F/00.
    assert_eq!((sense[4], sense[14], sense[15]), (6, 0x2f, 0));
}

#[test]
fn an_unknown_task_attribute_is_refused() {
    let mut rig = Rig::new();
    rig.read(0, 1, 4);
    rig.read(0, 2, SIMPLE);
    assert_eq!(rig.given(), [2]);
    assert_eq!(rig.answers(), [(1, 2)]);
}
