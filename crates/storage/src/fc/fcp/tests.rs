//! Initiators and targets on a fabric, in one process.

mod several;

use super::initiator::Settings as InitiatorSettings;
use super::target::{Settings as TargetSettings, Work};
use super::{Command, Completion, Data, Failure, Port};
use crate::fc::fabric::{Assignments, Fabric, Output, PortKey, Settings as FabricSettings};
use crate::fc::nport::{Role, Settings};
use crate::scsi::{status, Device, Geometry, Identity, Lun, LunConfig, Medium, Memory};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use wire::fc::{frame_control, routing, FcId, Frame, FrameHeader, FrameType, Wwn};

const MS: u64 = 1_000_000;
const BLOCK: usize = 512;
const BLOCKS: u64 = 2048;
const TARGET: usize = 0;
const INITIATOR: usize = 1;

fn settings(number: u64) -> Settings {
    let role = Role { initiator: false, target: false };
    Settings::new(Wwn(0x2000_0000_0000_0000 | number), Wwn(0x1000_0000_0000_0000 | number), role)
}

fn disk() -> Device {
    let geometry = Geometry { blocks: BLOCKS, block_bytes: BLOCK as u32, physical_bytes: 4096 };
    let identity = Identity {
        vendor: "ELEPHAN".into(),
        product: "DISK".into(),
        revision: "0001".into(),
        serial: "1".into(),
        target: "fc".into(),
    };
    let config = LunConfig { geometry, identity, read_only: false, thin: false, write_cache: false };
    Device::new(vec![Lun::new(config)])
}

/// Says by a frame's number and content if it is lost.
type LossRule = dyn FnMut(u64, &Frame) -> bool;

/// A target and its initiators on a fabric. Frames take no time, operations of the medium `work_ns`.
struct San {
    fabric: Fabric,
    ports: Vec<Port>,
    memory: Memory,
    work: VecDeque<(u64, Work)>,
    work_ns: u64,
    now_ns: u64,
    loses: Box<LossRule>,
    count: u64,
    /// Ends of the first initiator's commands.
    ended: BTreeMap<u64, Result<Completion, Failure>>,
    /// Ends of the others' commands, with their ports.
    ended_elsewhere: BTreeMap<(usize, u64), Result<Completion, Failure>>,
    /// Responses that came to a port.
    responses: Vec<(usize, Frame)>,
}

impl San {
    fn new(initiator: InitiatorSettings, target: TargetSettings) -> San {
        let fabric = Fabric::new(FabricSettings::new(Wwn(0x1000_0000_0000_00fa), 1).unwrap(), Assignments::default());
        let ports =
            vec![Port::new(settings(1), None, Some((target, disk()))), Port::new(settings(2), Some(initiator), None)];
        San {
            fabric,
            ports,
            memory: Memory::new(BLOCKS, BLOCK as u32),
            work: VecDeque::new(),
            work_ns: 0,
            now_ns: 0,
            loses: Box::new(|_, _| false),
            count: 0,
            ended: BTreeMap::new(),
            ended_elsewhere: BTreeMap::new(),
            responses: Vec::new(),
        }
    }

    fn usual() -> San {
        San::new(InitiatorSettings::default(), TargetSettings { burst_bytes: 8192, ..TargetSettings::default() })
    }

    fn log_in(&mut self) {
        let now_ns = self.now_ns;
        self.ports.iter_mut().for_each(|port| port.log_in(now_ns));
        self.settle();
    }

    fn is_lost(&mut self, frame: &Frame) -> bool {
        self.count += 1;
        (self.loses)(self.count - 1, frame)
    }

    /// Carries frames, and operations whose time has come, until none is left.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for at in 0..self.ports.len() {
                while let Some(frame) = self.ports[at].poll_frame(self.now_ns) {
                    moved = true;
                    if !self.is_lost(&frame) {
                        self.fabric.handle_frame(PortKey(at as u32), frame);
                    }
                }
            }
            while let Some(Output::Attached(PortKey(at), frame)) = self.fabric.poll_output() {
                moved = true;
                if frame.header.r_ctl == routing::COMMAND_STATUS {
                    self.responses.push((at as usize, frame.clone()));
                }
                self.ports[at as usize].handle_frame(frame, self.now_ns);
            }
            while let Some(work) = self.ports[TARGET].poll_work() {
                self.work.push_back((self.now_ns + self.work_ns, work));
            }
            while self.work.front().is_some_and(|(at_ns, _)| *at_ns <= self.now_ns) {
                moved = true;
                let (_, work) = self.work.pop_front().unwrap();
                let outcome = self.memory.perform(&work.op);
                self.ports[TARGET].handle_work(work.id, outcome);
            }
            while let Some((number, result)) = self.ports[INITIATOR].poll_completion() {
                assert!(self.ended.insert(number, result).is_none(), "command {number} ended twice");
            }
            for at in INITIATOR + 1..self.ports.len() {
                while let Some((number, result)) = self.ports[at].poll_completion() {
                    assert!(
                        self.ended_elsewhere.insert((at, number), result).is_none(),
                        "{number} of {at} ended twice"
                    );
                }
            }
            for port in &mut self.ports {
                while port.poll_event().is_some() {}
            }
            if !moved {
                return;
            }
        }
    }

    fn run_for(&mut self, ms: u64) {
        let end_ns = self.now_ns + ms * MS;
        loop {
            self.settle();
            let timers = self.ports.iter().filter_map(Port::poll_timeout);
            let next = timers.chain(self.work.front().map(|(at_ns, _)| *at_ns)).min();
            let Some(next) = next.filter(|next| *next <= end_ns) else { break };
            self.now_ns = self.now_ns.max(next);
            let now_ns = self.now_ns;
            self.ports.iter_mut().for_each(|port| port.handle_timeout(now_ns));
        }
        self.now_ns = end_ns;
    }

    fn submit(&mut self, opcode: u8, lba: u32, blocks: u16, data: Data) -> u64 {
        let mut cdb = [0; 16];
        cdb[0] = opcode;
        cdb[2..6].copy_from_slice(&lba.to_be_bytes());
        cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
        let target = self.ports[TARGET].nport().id();
        let now_ns = self.now_ns;
        self.ports[INITIATOR].submit(Command { target, lun: 0, cdb, data }, now_ns).unwrap()
    }

    fn write(&mut self, lba: u32, bytes: &[u8]) -> u64 {
        let blocks = (bytes.len() / BLOCK) as u16;
        self.submit(0x2a, lba, blocks, Data::Write(Bytes::copy_from_slice(bytes).into()))
    }

    fn read(&mut self, lba: u32, blocks: u16) -> u64 {
        self.submit(0x28, lba, blocks, Data::Read(u32::from(blocks) * BLOCK as u32))
    }

    /// Gets past the unit attention of a new initiator.
    fn ready(&mut self) {
        self.log_in();
        self.submit(0x00, 0, 0, Data::None);
        self.run_for(1);
        assert_eq!(self.ended.len(), 1);
        self.ended.clear();
    }

    fn good(&mut self, number: u64) -> Completion {
        let ended = self.ended.remove(&number).unwrap_or_else(|| panic!("command {number} has not ended"));
        let completion = ended.unwrap_or_else(|failure| panic!("command {number}: {failure}"));
        assert_eq!(completion.status, status::GOOD, "{completion:?}");
        completion
    }

    /// Nothing is kept for exchanges, and no numbers of aborted ones.
    fn assert_idle(&self) {
        self.assert_no_exchanges();
        assert_eq!(self.ports[TARGET].target().unwrap().kept().2, 0);
    }

    /// Nothing is kept for exchanges. A target remembers numbers for longer when RRQ was lost.
    fn assert_no_exchanges(&self) {
        let (tasks, exchanges, resting, _) = self.ports[INITIATOR].initiator().unwrap().kept();
        assert_eq!((tasks, exchanges, resting), (0, 0, 0));
        let (exchanges, operations, _, bytes) = self.ports[TARGET].target().unwrap().kept();
        assert_eq!((exchanges, operations, bytes), (0, 0, 0));
    }
}

/// Bytes that differ from place to place, and from seed to seed.
fn pattern(blocks: usize, seed: u64) -> Vec<u8> {
    (0..blocks * BLOCK).map(|at| ((at as u64 * 31 + at as u64 / 251).wrapping_add(seed * 97)) as u8).collect()
}

#[test]
fn what_is_written_is_read_back() {
    let mut san = San::usual();
    san.ready();
    // Several transfers ready, several frames each, and one that is no multiple of a frame.
    for (lba, blocks) in [(0, 1), (8, 16), (100, 77), (1024, 1024)] {
        let bytes = pattern(blocks, u64::from(lba));
        let write = san.write(lba, &bytes);
        san.run_for(1);
        assert_eq!(san.good(write).attempts, 1);
        let read = san.read(lba, blocks as u16);
        san.run_for(1);
        let completion = san.good(read);
        assert!(completion.data.to_payload().to_bytes() == bytes, "{blocks} blocks at {lba}");
        assert_eq!((completion.underflow, completion.overflow), (0, 0));
    }
    san.assert_idle();
}

#[test]
fn differences_of_lengths_are_told() {
    let mut san = San::usual();
    san.ready();
    let short = san.submit(0x28, 0, 2, Data::Read(512));
    let long = san.submit(0x28, 0, 2, Data::Read(4096));
    let beyond = san.submit(0x28, BLOCKS as u32, 1, Data::Read(512));
    san.run_for(1);
    let (short, long) = (san.good(short), san.good(long));
    assert_eq!((short.overflow, short.data.len()), (512, 512));
    assert_eq!((long.underflow, long.data.len()), (3072, 1024));
    let beyond = san.ended.remove(&beyond).unwrap().unwrap();
    assert_eq!((beyond.status, beyond.sense[2] & 0x0f, beyond.sense[12]), (status::CHECK_CONDITION, 5, 0x21));
}

#[test]
fn a_command_leaves_before_data_that_may_leave() {
    let mut san = San::usual();
    san.ready();
    let write = san.write(0, &pattern(64, 1));
    // Transfer ready is there, and the first of several frames of data is under way.
    let now_ns = san.now_ns;
    let command = san.ports[INITIATOR].poll_frame(now_ns).unwrap();
    san.fabric.handle_frame(PortKey(INITIATOR as u32), command);
    while let Some(Output::Attached(PortKey(at), frame)) = san.fabric.poll_output() {
        san.ports[at as usize].handle_frame(frame, now_ns);
    }
    let ready = san.ports[TARGET].poll_frame(now_ns).unwrap();
    san.ports[INITIATOR].handle_frame(ready, now_ns);
    let next = |san: &mut San| san.ports[INITIATOR].poll_frame(now_ns).unwrap();
    let first = next(&mut san);
    assert_eq!(first.header.r_ctl, routing::SOLICITED_DATA);
    san.fabric.handle_frame(PortKey(INITIATOR as u32), first);
    let read = san.read(100, 1);
    let second = next(&mut san);
    assert_eq!(second.header.r_ctl, routing::UNSOLICITED_COMMAND);
    san.fabric.handle_frame(PortKey(INITIATOR as u32), second);
    san.run_for(1);
    san.good(write);
    san.good(read);
}

#[test]
fn the_queue_depth_bounds_what_a_target_has() {
    let mut san =
        San::new(InitiatorSettings { queue_depth: 4, ..InitiatorSettings::default() }, TargetSettings::default());
    san.work_ns = MS;
    san.ready();
    let numbers: Vec<u64> = (0..20).map(|at| san.read(at * 8, 8)).collect();
    san.settle();
    let target = san.ports[TARGET].nport().id();
    assert_eq!(san.ports[INITIATOR].initiator().unwrap().outstanding_at(target), 4);
    assert_eq!(san.ports[TARGET].target().unwrap().kept().0, 4);
    san.run_for(10);
    numbers.into_iter().for_each(|number| assert_eq!(san.good(number).attempts, 1));
    // More than a target takes gets TASK SET FULL.
    let mut san = San::new(InitiatorSettings::default(), TargetSettings { commands_max: 2, ..Default::default() });
    san.work_ns = MS;
    san.ready();
    let numbers: Vec<u64> = (0..3).map(|at| san.read(at, 1)).collect();
    san.run_for(10);
    let full = numbers.iter().filter(|number| san.ended[number].as_ref().unwrap().status == status::TASK_SET_FULL);
    assert_eq!(full.count(), 1);
}

#[test]
fn every_single_lost_frame_is_recovered_from() {
    let bytes = pattern(40, 7);
    let mut whole = San::usual();
    whole.ready();
    let first = whole.count;
    whole.write(64, &bytes);
    whole.run_for(1);
    whole.read(64, 40);
    whole.run_for(1);
    assert!(whole.count - first > 20);
    for lost in first..whole.count {
        let mut san = San::usual();
        san.ready();
        san.loses = Box::new(move |number, _| number == lost);
        let write = san.write(64, &bytes);
        san.run_for(20_000);
        let written = san.good(write);
        let read = san.read(64, 40);
        san.run_for(20_000);
        let completion = san.good(read);
        assert!(completion.data.to_payload().to_bytes() == bytes, "frame {lost}");
        assert_eq!(written.attempts + completion.attempts, 3, "frame {lost}");
        san.run_for(60_000);
        san.assert_idle();
    }
}

#[test]
fn aborts_and_their_accepts_may_be_lost_as_well() {
    let mut san = San::usual();
    san.ready();
    // The data, and then all that would abort the exchange: the login is made anew.
    let mut lost = 0;
    san.loses = Box::new(move |_, frame| {
        let data = frame.header.r_ctl == routing::SOLICITED_DATA && lost == 0;
        let abort = frame.header.r_ctl == routing::ABORT_SEQUENCE && lost < 4;
        lost += u32::from(data || abort);
        data || abort
    });
    let bytes = pattern(4, 1);
    let write = san.write(0, &bytes);
    san.run_for(60_000);
    assert_eq!(san.good(write).attempts, 2);
    let read = san.read(0, 4);
    san.run_for(1);
    assert!(san.good(read).data.to_payload().to_bytes() == bytes);
    san.run_for(60_000);
    san.assert_idle();
}

#[test]
fn attempts_are_bounded() {
    let mut san = San::usual();
    san.ready();
    san.loses = Box::new(|_, frame| frame.header.r_ctl == routing::COMMAND_STATUS);
    let read = san.read(0, 1);
    // COMPARE AND WRITE is sent once: a second one would find what the first one wrote.
    let mut cdb = [0; 16];
    (cdb[0], cdb[13]) = (0x89, 1);
    let data = Data::Write(Bytes::from(pattern(2, 3)).into());
    let (target, now_ns) = (san.ports[TARGET].nport().id(), san.now_ns);
    let compare = san.ports[INITIATOR].submit(Command { target, lun: 0, cdb, data }, now_ns).unwrap();
    san.run_for(200_000);
    assert_eq!(san.ended.remove(&read), Some(Err(Failure::Aborted(InitiatorSettings::default().attempts))));
    assert_eq!(san.ended.remove(&compare), Some(Err(Failure::Aborted(1))));
    san.assert_idle();
}

#[test]
fn a_slow_medium_is_no_loss() {
    let mut san = San::usual();
    san.ready();
    san.work_ns = 12_000 * MS;
    let read = san.read(0, 8);
    san.run_for(20_000);
    assert_eq!(san.good(read).attempts, 1);
    assert_eq!(san.ports[INITIATOR].initiator().unwrap().counters().aborts, 0);
}

#[test]
fn a_stale_write_never_falls_on_a_later_one() {
    let mut san = San::usual();
    san.ready();
    // The first write is at the medium for longer than the initiator waits; its second attempt waits for that.
    san.work_ns = 40_000 * MS;
    let (first, second) = (pattern(1, 1), pattern(1, 2));
    let old = san.write(0, &first);
    san.run_for(31_000);
    san.ended.remove(&old);
    san.work_ns = 0;
    let new = san.write(0, &second);
    san.run_for(5_000);
    assert!(!san.ended.contains_key(&new), "the medium is still at the first");
    san.run_for(60_000);
    san.good(new);
    let read = san.read(0, 1);
    san.run_for(1_000);
    assert!(san.good(read).data.to_payload().to_bytes() == second);
}

#[test]
fn commands_wait_for_a_target_that_comes_back() {
    let mut san = San::usual();
    san.ready();
    let (target, now_ns) = (san.ports[TARGET].nport().id(), san.now_ns);
    let cut = |san: &mut San, at_ns: u64| {
        san.ports[TARGET].handle_link_down("cut", at_ns);
        san.fabric.detach(PortKey(TARGET as u32));
        san.run_for(10);
        san.ports[INITIATOR].submit(Command { target, lun: 0, cdb: [0; 16], data: Data::None }, at_ns).unwrap()
    };
    let waits = cut(&mut san, now_ns);
    san.run_for(20_000);
    assert!(!san.ended.contains_key(&waits));
    san.log_in();
    san.run_for(10_000);
    // The unit tells the initiator, new to it, of a reset.
    assert!(san.ended.remove(&waits).unwrap().is_ok());
    // They do not wait for ever.
    let now_ns = san.now_ns;
    let gone = cut(&mut san, now_ns);
    san.run_for(120_000);
    assert_eq!(san.ended.remove(&gone), Some(Err(Failure::NoTarget)));
    san.assert_no_exchanges();
}

#[test]
fn ten_thousand_login_cycles_leave_nothing() {
    let mut san = San::usual();
    for cycle in 0..10_000 {
        san.log_in();
        let read = san.read(0, 1);
        san.settle();
        assert!(san.ended.remove(&read).is_some(), "cycle {cycle}");
        // One is under way at every end.
        san.read(0, 1);
        let now_ns = san.now_ns;
        san.ports.iter_mut().for_each(|port| port.log_out(now_ns));
        san.settle();
        san.run_for(61_000);
        san.ended.clear();
    }
    san.assert_idle();
    assert_eq!(san.ports[INITIATOR].initiator().unwrap().kept(), (0, 0, 0, 0));
    assert_eq!((san.ports[0].nport().kept(), san.ports[1].nport().kept()), ((0, 0), (0, 0)));
    assert_eq!((san.fabric.logins(), san.fabric.entries().count()), (0, 0));
}

fn any_frame(own: FcId, peer: FcId) -> impl Strategy<Value = Frame> {
    let r_ctl = prop_oneof![
        3 => Just(routing::UNSOLICITED_COMMAND),
        3 => Just(routing::SOLICITED_DATA),
        2 => Just(routing::DATA_DESCRIPTOR),
        2 => Just(routing::COMMAND_STATUS),
        2 => Just(routing::ABORT_SEQUENCE),
        1 => Just(routing::BASIC_ACCEPT),
        1 => Just(routing::BASIC_REJECT),
        1 => any::<u8>(),
    ];
    let f_ctl = (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(responder, end, offset)| {
        (if responder { frame_control::EXCHANGE_RESPONDER } else { 0 })
            | (if end { frame_control::END_SEQUENCE } else { 0 })
            | (if offset { frame_control::RELATIVE_OFFSET } else { 0 })
    });
    let opcode = prop_oneof![Just(0x28u8), Just(0x2a), Just(0x89), Just(0x5f), Just(0xa0), any::<u8>()];
    let payload = (opcode, proptest::collection::vec(any::<u8>(), 0..600), any::<bool>()).prop_map(
        |(opcode, mut bytes, tame)| {
            if tame && bytes.len() >= 32 {
                bytes[..12].fill(0);
                bytes[11] = 1 + (opcode & 1);
                bytes[12] = opcode;
                bytes[28..30].fill(0);
            }
            bytes
        },
    );
    (r_ctl, f_ctl, 0u16..4, prop_oneof![0u16..4, Just(0xffff)], 0u16..3, prop_oneof![Just(0u32), any::<u32>()], payload)
        .prop_map(move |(r_ctl, f_ctl, ox_id, rx_id, seq_cnt, parameter, payload)| {
            let kind = if r_ctl & 0xf0 == 0x80 { FrameType::BASIC } else { FrameType::FCP };
            let header = FrameHeader {
                r_ctl,
                d_id: own,
                s_id: peer,
                kind,
                f_ctl,
                seq_cnt,
                ox_id,
                rx_id,
                parameter,
                ..FrameHeader::default()
            };
            Frame::class3(header, payload)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Frames are lost at random. Each block belongs to one command at a time, so that its content is known.
    #[test]
    fn lost_frames_never_corrupt_duplicate_or_reorder_data(
        lost_percent in 0u64..8,
        seed in any::<u64>(),
        commands in proptest::collection::vec((0u32..16, 1usize..32, any::<bool>()), 1..40),
    ) {
        let mut san = San::usual();
        san.ready();
        let mut state = seed | 1;
        san.loses = Box::new(move |_, _| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % 100 < lost_percent
        });
        let mut areas: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for (round, batch) in commands.chunks(8).enumerate() {
            let mut used = std::collections::BTreeSet::new();
            let mut under_way = Vec::new();
            for (at, (area, blocks, writes)) in batch.iter().enumerate() {
                if !used.insert(*area) {
                    continue;
                }
                let lba = area * 32;
                let number = if *writes {
                    san.write(lba, &pattern(*blocks, (round * 8 + at) as u64 + 1))
                } else {
                    san.read(lba, 32)
                };
                under_way.push((number, *area, *blocks, *writes, (round * 8 + at) as u64 + 1));
            }
            san.run_for(600_000);
            for (number, area, blocks, writes, seed) in under_way {
                let ended = san.ended.remove(&number);
                prop_assert!(ended.is_some(), "command {} has not ended", number);
                let there = areas.entry(area).or_insert_with(|| vec![0; 32 * BLOCK]);
                match ended.unwrap() {
                    Ok(completion) if completion.status == status::GOOD && writes => {
                        there[..blocks * BLOCK].copy_from_slice(&pattern(blocks, seed));
                    }
                    Ok(completion) if completion.status == status::GOOD => {
                        prop_assert!(completion.data.to_payload().to_bytes() == *there, "area {}", area);
                    }
                    // Not done, or nobody knows: all of it is there, or nothing.
                    _ if writes => {
                        let lba = u64::from(area * 32);
                        let op = crate::scsi::Op::Read { lba, blocks: 32 };
                        let crate::scsi::Outcome::Data(now) = san.memory.perform(&op) else { panic!() };
                        let mut new = there.clone();
                        new[..blocks * BLOCK].copy_from_slice(&pattern(blocks, seed));
                        let now = now.to_bytes();
                        prop_assert!(now == *there || now == new, "half a write in area {}", area);
                        *there = now.to_vec();
                    }
                    _ => {}
                }
            }
        }
        san.loses = Box::new(|_, _| false);
        san.run_for(600_000);
        san.assert_no_exchanges();
    }

    /// Frames of a logged-in port that mean harm: no panic, bounded memory, and the port serves on.
    #[test]
    fn hostile_frames_neither_panic_nor_grow_the_ports(
        frames in proptest::collection::vec((any::<bool>(), any_frame(FcId::NONE, FcId::NONE), 0u64..2_000), 1..60),
    ) {
        let mut san = San::new(
            InitiatorSettings::default(),
            TargetSettings { commands_max: 3, qualifiers_max: 4, ..TargetSettings::default() },
        );
        san.ready();
        let ids = [san.ports[TARGET].nport().id(), san.ports[INITIATOR].nport().id()];
        san.write(0, &pattern(20, 1));
        san.read(0, 20);
        for (to_target, mut frame, ms) in frames {
            let to = if to_target { TARGET } else { INITIATOR };
            (frame.header.d_id, frame.header.s_id) = (ids[to], ids[1 - to]);
            let now_ns = san.now_ns;
            san.ports[to].handle_frame(frame, now_ns);
            if ms > 1_000 {
                san.run_for(ms);
            }
            let (exchanges, _, qualifiers, _) = san.ports[TARGET].target().unwrap().kept();
            prop_assert!(exchanges < 20 && qualifiers <= 4, "{} exchanges, {} qualifiers", exchanges, qualifiers);
            prop_assert!(san.ports[INITIATOR].initiator().unwrap().kept().1 <= 2);
        }
        // A login ends what the frames began.
        let now_ns = san.now_ns;
        san.ports.iter_mut().for_each(|port| port.log_out(now_ns));
        san.run_for(120_000);
        san.assert_idle();
        san.log_in();
        let read = san.read(0, 1);
        san.run_for(10_000);
        prop_assert!(matches!(san.ended.remove(&read), Some(Ok(_))));
    }
}
