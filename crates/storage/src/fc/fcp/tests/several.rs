//! Several initiators at one target: task management of one, and what the others see of it (SAM-5, clause 7).

use super::*;
use wire::fc::fcp::{self, TaskAttribute, TaskManagement};

const SECOND: usize = 2;
const COMPLETE: u8 = 0;
const NOT_SUPPORTED: u8 = 4;
const NO_LUN: u8 = 9;
const RESET: (u8, u8) = (0x29, 0x03);
const CLEARED_BY_ANOTHER: (u8, u8) = (0x2f, 0x00);

/// Both initiators are past their first unit attention, and each has two reads in the medium.
fn busy() -> (San, [u64; 2], [u64; 2]) {
    let mut san = San::usual();
    let initiator = InitiatorSettings { command_timeout_ns: 500 * MS, ..InitiatorSettings::default() };
    san.ports.push(Port::new(settings(3), Some(initiator), None));
    san.log_in();
    let of_second = from(&mut san, SECOND, 0x00, Data::None);
    san.submit(0x00, 0, 0, Data::None);
    san.run_for(1);
    assert!(san.ended_elsewhere.contains_key(&(SECOND, of_second)) && san.ended.len() == 1);
    san.ended.clear();
    san.ended_elsewhere.clear();
    san.responses.clear();
    san.work_ns = 10 * MS;
    let first = [san.read(0, 1), san.read(1, 1)];
    let second = [0; 2].map(|_| from(&mut san, SECOND, 0x28, Data::Read(BLOCK as u32)));
    san.settle();
    assert_eq!(san.ports[TARGET].target().unwrap().kept().0, 4);
    (san, first, second)
}

/// A command of one block of any initiator.
fn from(san: &mut San, port: usize, opcode: u8, data: Data) -> u64 {
    let mut cdb = [0; 16];
    (cdb[0], cdb[8]) = (opcode, 1);
    let (target, now_ns) = (san.ports[TARGET].nport().id(), san.now_ns);
    san.ports[port].submit(Command { target, lun: 0, cdb, data }, now_ns).unwrap()
}

/// Sends a function in the second initiator's name; returns the code of its response and the time until it came, ms.
fn manage(san: &mut San, function: TaskManagement, lun: u8) -> (u8, u64) {
    let command = fcp::Command {
        lun: [0, lun, 0, 0, 0, 0, 0, 0],
        reference: 0,
        priority: 0,
        attribute: TaskAttribute::Simple,
        management: Some(function),
        read: false,
        write: false,
        cdb: Bytes::from_static(&[0; 16]),
        data_bytes: 0,
    };
    // An exchange number that the initiator itself does not use.
    let ox_id = 0xeeee;
    let (s_id, d_id) = (san.ports[SECOND].nport().id(), san.ports[TARGET].nport().id());
    let f_ctl = frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
    let (r_ctl, kind) = (routing::UNSOLICITED_COMMAND, FrameType::FCP);
    let header = FrameHeader { r_ctl, kind, s_id, d_id, f_ctl, ox_id, ..FrameHeader::default() };
    san.ports[SECOND].send(Frame::class3(header, command.to_bytes()));
    for ms in 0..100 {
        san.run_for(u64::from(ms > 0));
        let found = san.responses.iter().find(|(port, frame)| *port == SECOND && frame.header.ox_id == ox_id);
        if let Some((_, frame)) = found {
            let response = fcp::Response::parse(&frame.payload.to_bytes()).unwrap();
            return (response.code.expect("a response code"), ms);
        }
    }
    panic!("no response to {function:?}");
}

/// The unit attention that the next command of a port gets, if any.
fn attention(san: &mut San, port: usize) -> Option<(u8, u8)> {
    let number = from(san, port, 0x00, Data::None);
    san.run_for(30);
    let ended = if port == INITIATOR { san.ended.remove(&number) } else { san.ended_elsewhere.remove(&(port, number)) };
    let completion = ended.expect("it ends").expect("it has a status");
    (completion.status == status::CHECK_CONDITION).then(|| (completion.sense[12], completion.sense[13]))
}

#[test]
fn abort_task_set_ends_the_senders_commands_alone() {
    let (mut san, first, _) = busy();
    // The answer waits until the medium is done with what was aborted.
    assert_eq!(manage(&mut san, TaskManagement::AbortTaskSet, 0), (COMPLETE, 10));
    san.run_for(20);
    first.into_iter().for_each(|number| assert_eq!(san.good(number).attempts, 1));
    let seconds = san.responses.iter().filter(|(port, _)| *port == SECOND).count();
    assert_eq!(seconds, 1, "no status of an aborted command");
    assert_eq!((attention(&mut san, INITIATOR), attention(&mut san, SECOND)), (None, None));
}

#[test]
fn clear_task_set_ends_all_commands_and_tells_the_others() {
    let (mut san, first, _) = busy();
    assert_eq!(manage(&mut san, TaskManagement::ClearTaskSet, 0), (COMPLETE, 10));
    assert!(first.iter().all(|number| !san.ended.contains_key(number)));
    assert_eq!(attention(&mut san, SECOND), None);
    assert_eq!(attention(&mut san, INITIATOR), Some(CLEARED_BY_ANOTHER));
    assert_eq!(attention(&mut san, INITIATOR), None);
}

#[test]
fn a_reset_of_the_unit_is_told_to_all() {
    for (function, lun) in [(TaskManagement::LunReset, 0), (TaskManagement::TargetReset, 7)] {
        let (mut san, first, _) = busy();
        assert_eq!(manage(&mut san, function, lun), (COMPLETE, 10));
        assert!(first.iter().all(|number| !san.ended.contains_key(number)));
        assert_eq!(attention(&mut san, INITIATOR), Some(RESET), "{function:?}");
        assert_eq!(attention(&mut san, SECOND), Some(RESET), "{function:?}");
        assert_eq!((attention(&mut san, INITIATOR), attention(&mut san, SECOND)), (None, None));
    }
}

#[test]
fn commands_that_another_ended_are_sent_again() {
    let (mut san, first, second) = busy();
    manage(&mut san, TaskManagement::LunReset, 0);
    // No status comes: each initiator's time runs out, it aborts, and sends the command again.
    san.run_for(200_000);
    for number in first {
        let ended = san.ended.remove(&number).expect("it ends").expect("it has a status");
        assert!(ended.attempts > 1, "{ended:?}");
    }
    for number in second {
        assert!(san.ended_elsewhere.remove(&(SECOND, number)).expect("it ends").expect("it has a status").attempts > 1);
    }
    san.assert_no_exchanges();
}

#[test]
fn functions_that_are_not_there_are_refused() {
    let (mut san, first, second) = busy();
    assert_eq!(manage(&mut san, TaskManagement::ClearAca, 0).0, NOT_SUPPORTED);
    san.responses.clear();
    assert_eq!(manage(&mut san, TaskManagement::LunReset, 5).0, NO_LUN);
    san.run_for(30);
    first.into_iter().for_each(|number| assert_eq!(san.good(number).attempts, 1));
    assert!(second.iter().all(|number| san.ended_elsewhere.contains_key(&(SECOND, *number))));
}

#[test]
fn what_one_initiator_writes_the_other_reads() {
    let mut san = San::usual();
    san.ports.push(Port::new(settings(3), Some(InitiatorSettings::default()), None));
    san.ready();
    from(&mut san, SECOND, 0x00, Data::None);
    san.run_for(1);
    let content = pattern(1, 7);
    let mut cdb = [0; 16];
    (cdb[0], cdb[8]) = (0x2a, 1);
    let (target, now_ns) = (san.ports[TARGET].nport().id(), san.now_ns);
    let data = Data::Write(Bytes::from(content.clone()).into());
    san.ports[SECOND].submit(Command { target, lun: 0, cdb, data }, now_ns).unwrap();
    san.run_for(1);
    let read = san.read(0, 1);
    san.run_for(1);
    assert_eq!(san.good(read).data.to_payload().to_bytes(), content);
    // One that leaves takes nothing of the other's with it.
    san.work_ns = 10 * MS;
    let stays = san.read(0, 1);
    from(&mut san, SECOND, 0x28, Data::Read(BLOCK as u32));
    san.settle();
    let now_ns = san.now_ns;
    san.ports[SECOND].log_out(now_ns);
    san.run_for(30);
    assert_eq!(san.good(stays).attempts, 1);
    assert_eq!(san.ports[TARGET].target().unwrap().kept().0, 0);
}
