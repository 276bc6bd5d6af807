//! Initiator and target together, over a pipe of PDUs that takes time and breaks when told.

use super::initiator::{Allegiance, Command, Completion, Data, Event, Initiator, InitiatorConfig};
use super::*;
use crate::scsi::{status, Device, Geometry, Identity, Lun, LunConfig, Medium, Memory, Outcome};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use units::{Span, Time};
use wire::iscsi::{Framing, Header, Payload, Pdu};

mod guard;
mod memory;
mod order;

const BLOCK: u32 = 512;
const BLOCKS: u64 = 8192;
const NAME: &str = "iqn.2026-01.example:disk";

fn device() -> Device {
    let identity = Identity {
        vendor: "ELEPHAN".into(),
        product: "DISK".into(),
        revision: "1".into(),
        serial: "4711".into(),
        target: NAME.into(),
    };
    let geometry = Geometry { blocks: BLOCKS, block_bytes: BLOCK, physical_bytes: BLOCK };
    Device::new(vec![Lun::new(LunConfig { geometry, identity, read_only: false, thin: true, write_cache: true })])
}

/// The form of data on its way: bytes, encoded and decoded, or lengths alone.
#[derive(Clone, Copy, PartialEq, Debug)]
enum DataMode {
    Bytes,
    Lengths,
}

struct Pipe {
    /// Up (to the target), down; with the framing that the sender had.
    directions: [VecDeque<(Pdu, Framing)>; 2],
    at_target: ConnectionId,
}

struct Rig {
    now: Time,
    initiator: Initiator,
    target: Target,
    medium: Memory,
    carriage: DataMode,
    pipes: BTreeMap<usize, Pipe>,
    events: Vec<Event>,
    /// PDUs by name, in the order in which they crossed.
    seen: Vec<(usize, &'static str)>,
    /// A connection that breaks after so many more PDUs.
    breaks: Option<(usize, usize)>,
}

impl Rig {
    fn new(config: InitiatorConfig, target: TargetConfig, carriage: DataMode) -> Rig {
        Rig {
            now: Time(0),
            initiator: Initiator::new(config),
            target: Target::new(target, device()),
            medium: Memory::new(BLOCKS, BLOCK),
            carriage,
            pipes: BTreeMap::new(),
            events: Vec::new(),
            seen: Vec::new(),
            breaks: None,
        }
    }

    fn cut(&mut self, index: usize) {
        if let Some(pipe) = self.pipes.remove(&index) {
            self.target.handle_closed(pipe.at_target);
            self.initiator.handle_closed(self.now, index, "cut");
        }
    }

    /// Over the wire: as bytes with digests and all, or as it is.
    fn carry(&self, pdu: Pdu, sent: Framing, read: Framing) -> Pdu {
        if self.carriage == DataMode::Lengths {
            return pdu;
        }
        let mut bytes = bytes::BytesMut::new();
        sent.encode(&pdu, &mut bytes);
        let received = read.decode(&mut bytes).unwrap().expect("a whole PDU");
        assert!(received.intact && bytes.is_empty());
        received.pdu
    }

    /// One PDU, operation or connection; false: nothing was to be done.
    fn step(&mut self) -> bool {
        if let Some(index) = self.initiator.poll_connect() {
            let at_target = self.target.open(self.now, "127.0.0.1:3260", [7; 17]);
            self.pipes.insert(index, Pipe { directions: Default::default(), at_target });
            self.initiator.handle_connected(self.now, index);
            return true;
        }
        while let Some(event) = self.initiator.poll_event() {
            self.events.push(event);
        }
        if let Some(work) = self.target.poll_work() {
            let outcome = match (self.medium.perform(&work.op), self.carriage) {
                // A simulated disk gives lengths.
                (Outcome::Data(data), DataMode::Lengths) => Outcome::Data(Payload::Zeros(data.len() as u32)),
                (outcome, _) => outcome,
            };
            self.target.handle_work(work.id, outcome);
            return true;
        }
        let indices: Vec<usize> = self.pipes.keys().copied().collect();
        let mut any = false;
        for index in indices {
            if self.initiator.poll_close(index).is_some() {
                self.cut(index);
                return true;
            }
            let Some(pipe) = self.pipes.get_mut(&index) else { continue };
            if let Some(out) = self.initiator.poll_pdu(index) {
                pipe.directions[0].push_back((out.pdu, out.framing));
            }
            if let Some(out) = self.target.poll_pdu(pipe.at_target) {
                self.target.handle_sent(self.now, pipe.at_target, out.framing.length(&out.pdu) as u64);
                pipe.directions[1].push_back((out.pdu, out.framing));
            } else if self.target.poll_close(pipe.at_target).is_some() && pipe.directions[1].is_empty() {
                self.cut(index);
                return true;
            }
            for direction in 0..2 {
                let Some(pipe) = self.pipes.get_mut(&index) else { break };
                let (at, Some((pdu, sent))) = (pipe.at_target, pipe.directions[direction].pop_front()) else {
                    continue;
                };
                any = true;
                self.seen.push((index, pdu.header.name()));
                if let Some((broken, left)) = &mut self.breaks {
                    if *broken == index {
                        if *left == 0 {
                            self.breaks = None;
                            self.cut(index);
                            continue;
                        }
                        *left -= 1;
                    }
                }
                if direction == 0 {
                    let pdu = self.carry(pdu, sent, self.target.framing(at));
                    self.target.handle_pdu(self.now, at, pdu);
                } else {
                    let pdu = self.carry(pdu, sent, self.initiator.framing(index));
                    self.initiator.handle_pdu(self.now, index, pdu);
                }
            }
        }
        any
    }

    /// Until nothing happens any more within `patience`.
    fn run(&mut self, patience: Span) {
        let end = self.now + patience;
        for _ in 0..2_000_000 {
            if self.step() {
                continue;
            }
            let next = [self.initiator.poll_timeout(), self.target.poll_timeout()].into_iter().flatten().min();
            match next.filter(|&at| at <= end) {
                Some(at) => {
                    self.now = self.now.max(at) + Span::from_millis(1);
                    self.initiator.handle_timeout(self.now);
                    self.target.handle_timeout(self.now);
                }
                None => return,
            }
        }
        panic!("it does not come to rest: {:?}", &self.seen[self.seen.len() - 20..]);
    }

    fn write(&mut self, lba: u32, data: Payload) -> u64 {
        let blocks = (data.len() / BLOCK as usize) as u32;
        self.initiator.submit(Command { lun: 0, cdb: cdb(0x8a, lba, blocks), data: Data::Write(data) })
    }

    fn read(&mut self, lba: u32, blocks: u32) -> u64 {
        self.initiator.submit(Command { lun: 0, cdb: cdb(0x88, lba, blocks), data: Data::Read(blocks * BLOCK) })
    }

    fn done(&self, id: u64) -> &Completion {
        let found = self.events.iter().find_map(|event| match event {
            Event::Done(done, completion) if *done == id => Some(completion),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("command {id} is not done: {:?}", self.events))
    }

    fn count(&self, name: &str) -> usize {
        self.seen.iter().filter(|(_, seen)| *seen == name).count()
    }
}

fn cdb(opcode: u8, lba: u32, blocks: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[6..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

fn initiator() -> InitiatorConfig {
    InitiatorConfig::new("iqn.2026-01.example:host", Some(NAME))
}

fn pattern(length: usize, seed: usize) -> Payload {
    (0..length).map(|at| (at * 31 + seed + at / 251) as u8).collect::<Vec<u8>>().into()
}

const SECOND: Span = Span::from_secs(1);

#[test]
fn written_data_is_read_back_and_status_comes_with_data() {
    let mut rig = Rig::new(initiator(), TargetConfig::new(NAME), DataMode::Bytes);
    let write = rig.write(8, pattern(4096, 1));
    rig.run(SECOND);
    let read = rig.read(8, 8);
    rig.run(SECOND);
    assert_eq!(rig.done(write).status, status::GOOD);
    assert_eq!(rig.done(read).data.to_payload(), pattern(4096, 1));
    assert_eq!((rig.count("ReadyToTransfer"), rig.count("DataOut")), (0, 0), "all of it is immediate");
    assert_eq!((rig.count("ScsiResponse"), rig.count("DataIn")), (1, 1), "phase collapse");
}

/// PDUs that a write of 64 KiB takes.
fn cost(change: impl Fn(&mut Settings)) -> (usize, usize) {
    let mut target = TargetConfig::new(NAME);
    target.settings.max_recv_bytes = 8192;
    change(&mut target.settings);
    let mut rig = Rig::new(initiator(), target, DataMode::Bytes);
    let write = rig.write(0, pattern(65_536, 3));
    rig.run(SECOND);
    let read = rig.read(0, 128);
    rig.run(SECOND);
    assert_eq!(rig.done(write).status, status::GOOD);
    assert_eq!(rig.done(read).data.to_payload(), pattern(65_536, 3));
    (rig.count("ReadyToTransfer"), rig.count("DataOut"))
}

#[test]
fn data_is_immediate_unsolicited_or_solicited_as_negotiated() {
    // 8 KiB ride on the command, 56 KiB follow in PDUs of 8 KiB.
    assert_eq!(cost(|_| ()), (0, 7));
    // Unsolicited up to 16 KiB, the rest by one R2T.
    assert_eq!(cost(|s| s.first_burst_bytes = 16_384), (1, 7));
    // Nothing rides on the command.
    assert_eq!(cost(|s| s.immediate_data = false), (0, 8));
    // All is asked for, in bursts of 16 KiB.
    let asked = |s: &mut Settings| (s.initial_r2t, s.immediate_data, s.max_burst_bytes) = (true, false, 16_384);
    assert_eq!(cost(asked), (4, 8));
}

#[test]
fn max_outstanding_r2t_is_respected() {
    for (most, first) in [(1, 1), (3, 3), (100, 16)] {
        let mut target = TargetConfig::new(NAME);
        let settings = &mut target.settings;
        (settings.initial_r2t, settings.immediate_data, settings.max_outstanding_r2t) = (true, false, most);
        settings.max_burst_bytes = 4096;
        let mut config = initiator();
        config.settings.max_outstanding_r2t = 1000;
        let mut rig = Rig::new(config, target, DataMode::Bytes);
        rig.write(0, pattern(65_536, 3));
        rig.run(SECOND);
        let names = rig.seen.iter().map(|(_, name)| *name).skip_while(|name| *name != "ReadyToTransfer");
        let before = names.take_while(|name| *name != "DataOut").count();
        assert!(before <= first, "{before} R2Ts before the first data, {first} agreed on");
        assert_eq!(rig.count("ReadyToTransfer"), 16);
    }
}

#[test]
fn a_length_goes_the_same_way_as_bytes() {
    let events_of = |carriage| {
        let mut rig = Rig::new(initiator(), TargetConfig::new(NAME), carriage);
        let data = if carriage == DataMode::Bytes { pattern(1 << 20, 1) } else { Payload::Zeros(1 << 20) };
        rig.write(0, data);
        rig.read(0, 2048);
        rig.run(SECOND);
        assert_eq!(rig.initiator.outstanding(), 0);
        rig.seen
    };
    assert_eq!(events_of(DataMode::Bytes), events_of(DataMode::Lengths));
}

#[test]
fn residuals_say_what_was_not_moved() {
    let mut rig = Rig::new(initiator(), TargetConfig::new(NAME), DataMode::Bytes);
    let short = rig.initiator.submit(Command { lun: 0, cdb: cdb(0x88, 0, 1), data: Data::Read(700) });
    let long = rig.initiator.submit(Command { lun: 0, cdb: cdb(0x88, 0, 2), data: Data::Read(512) });
    rig.run(SECOND);
    assert_eq!((rig.done(short).underflow, rig.done(short).overflow, rig.done(short).data.len()), (188, 0, 512));
    assert_eq!((rig.done(long).underflow, rig.done(long).overflow, rig.done(long).data.len()), (0, 512, 512));
}

#[test]
fn a_lost_connection_reinstates_the_session_and_reissues_commands() {
    for connections in [1, 3] {
        for after in [0, 1, 2, 5, 9, 14, 30] {
            let config = InitiatorConfig { connections, ..initiator() };
            let mut rig = Rig::new(config, TargetConfig::new(NAME), DataMode::Bytes);
            rig.breaks = Some((connections - 1, after));
            let writes: Vec<u64> = (0..60).map(|n| rig.write(n * 8, pattern(4096, n as usize))).collect();
            rig.run(Span::from_secs(10));
            let reads: Vec<u64> = (0..60).map(|n| rig.read(n * 8, 8)).collect();
            rig.run(Span::from_secs(10));
            assert!(rig.events.iter().any(|event| matches!(event, Event::Lost(_))), "{connections}, {after}");
            assert!(writes.iter().all(|&id| rig.done(id).status == status::GOOD));
            for (n, id) in reads.iter().enumerate() {
                assert_eq!(rig.done(*id).data.to_payload(), pattern(4096, n), "{connections}, {after}");
            }
            assert_eq!((rig.target.session_count(), rig.target.connection_count()), (1, connections));
        }
    }
}

#[test]
fn chap_authenticates_initiator_and_target() {
    let secret = |name: &str, secret: &str| Secret { name: name.into(), secret: secret.into() };
    let both = Credentials { initiator: secret("host", "hosthosthost"), target: Some(secret("disk", "diskdiskdisk")) };
    let alone = Credentials { target: None, ..both.clone() };
    let wrong = Credentials { initiator: secret("host", "hosthosthosT"), target: None };
    let false_disk = Credentials { target: Some(secret("disk", "other")), ..both.clone() };
    for (ours, theirs, enters) in [
        (Some(&alone), Some(&alone), true),
        (Some(&both), Some(&both), true),
        (Some(&alone), Some(&both), true),
        (None, Some(&alone), false),
        (Some(&wrong), Some(&alone), false),
        (Some(&both), Some(&alone), false),
        (Some(&false_disk), Some(&both), false),
        (None, None, true),
    ] {
        let config = InitiatorConfig { chap: ours.cloned(), entropy: [3; 17], attempts: 1, ..initiator() };
        let target = TargetConfig { chap: theirs.cloned(), ..TargetConfig::new(NAME) };
        let mut rig = Rig::new(config, target, DataMode::Bytes);
        rig.run(SECOND);
        let entered = rig.events.iter().any(|event| matches!(event, Event::Up(_)));
        assert_eq!(entered, enters, "{ours:?} {theirs:?}: {:?}", rig.events);
        assert_eq!(rig.target.session_count(), usize::from(enters));
    }
}

#[test]
fn discovery_returns_name_and_address() {
    let config = InitiatorConfig::new("iqn.2026-01.example:host", None);
    let mut rig = Rig::new(config, TargetConfig::new(NAME), DataMode::Bytes);
    rig.run(SECOND);
    let found = vec![(NAME.to_owned(), "127.0.0.1:3260,1".to_owned())];
    assert!(rig.events.contains(&Event::Targets(found)), "{:?}", rig.events);
    rig.initiator.logout();
    rig.run(SECOND);
    assert!(rig.events.contains(&Event::LoggedOut) && rig.initiator.is_over());
    assert_eq!((rig.target.session_count(), rig.target.connection_count()), (0, 0));
}

#[test]
fn an_initiator_that_has_its_answer_to_a_logout_finds_its_session_gone() {
    let mut rig = Rig::new(initiator(), TargetConfig::new(NAME), DataMode::Bytes);
    rig.run(SECOND);
    assert_eq!((rig.target.session_count(), rig.target.connection_count()), (1, 1));
    rig.initiator.logout();
    while rig.count("LogoutResponse") == 0 {
        assert!(rig.step());
    }
    // The connection is still to be closed.
    assert_eq!((rig.target.session_count(), rig.target.connection_count()), (0, 1));
}

#[test]
fn silence_causes_pings_and_then_a_close() {
    let mut rig = Rig::new(initiator(), TargetConfig::new(NAME), DataMode::Bytes);
    rig.run(Span::from_secs(100));
    assert!(rig.count("NopOut") > 3 && rig.count("NopIn") > 3);
    assert_eq!(rig.target.connection_count(), 1);
    // The peer falls silent.
    let at = rig.pipes[&0].at_target;
    rig.now += Span::from_secs(31);
    rig.target.handle_timeout(rig.now);
    assert!(matches!(rig.target.poll_pdu(at).unwrap().pdu.header, Header::NopIn(_)));
    rig.now += Span::from_secs(31);
    rig.target.handle_timeout(rig.now);
    assert_eq!(rig.target.poll_close(at), Some("no answer to a ping"));
}

#[test]
fn a_reset_aborts_commands_that_wait_for_data() {
    let mut target = TargetConfig::new(NAME);
    (target.settings.initial_r2t, target.settings.immediate_data) = (true, false);
    let mut rig = Rig::new(initiator(), target, DataMode::Bytes);
    rig.run(SECOND);
    let id = rig.write(0, pattern(4096, 1));
    // The command goes, its R2T is never answered.
    while rig.count("ScsiCommand") == 0 {
        rig.step();
    }
    let tag = rig.initiator.manage(wire::iscsi::task::ABORT_TASK, 0, Some(id)).unwrap();
    let none = rig.initiator.manage(wire::iscsi::task::LOGICAL_UNIT_RESET, 9 << 48, None).unwrap();
    rig.run(SECOND);
    let answers: Vec<_> = rig.events.iter().filter(|event| matches!(event, Event::Managed(..))).collect();
    assert!(answers.contains(&&Event::Managed(none, 2)), "{answers:?}");
    assert!(answers.iter().any(|event| matches!(event, Event::Managed(of, 0 | 1) if *of == tag)), "{answers:?}");
}

fn settings() -> impl Strategy<Value = Settings> {
    let digest = || prop::sample::select(vec![Digest::Allowed, Digest::Preferred, Digest::Off]);
    let flags = (any::<bool>(), any::<bool>(), digest(), digest());
    let sizes = (512u32..40_000, 512u32..300_000, 512u32..300_000, 1u32..6, 1u32..5);
    (flags, sizes).prop_map(
        |((initial_r2t, immediate_data, header_digest, data_digest), (recv, burst, first, r2t, most))| Settings {
            initial_r2t,
            immediate_data,
            header_digest,
            data_digest,
            max_recv_bytes: recv,
            max_burst_bytes: burst,
            first_burst_bytes: first,
            max_outstanding_r2t: r2t,
            max_connections: most,
            ..Settings::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_settings_agree_and_carry_data(
        ours in settings(), theirs in settings(), connections in 1usize..4, blocks in 1u32..400,
        lost in prop::option::of((0usize..3, 0usize..120)),
    ) {
        let config = InitiatorConfig { settings: ours, connections, ..initiator() };
        let memory = memory::memory(6 << 20);
        let target = TargetConfig { settings: theirs, max_data_bytes: 100_000, memory, ..TargetConfig::new(NAME) };
        let mut rig = Rig::new(config, target, DataMode::Bytes);
        rig.breaks = lost;
        let bytes = (blocks * BLOCK) as usize;
        let writes: Vec<u64> = (0..5).map(|n| rig.write(n * blocks, pattern(bytes, n as usize))).collect();
        rig.run(Span::from_secs(10));
        let reads: Vec<u64> = (0..5).map(|n| rig.read(n * blocks, blocks)).collect();
        rig.run(Span::from_secs(10));
        for id in writes {
            prop_assert_eq!(rig.done(id).status, status::GOOD);
        }
        for (n, id) in reads.into_iter().enumerate() {
            prop_assert_eq!(rig.done(id).data.to_payload(), pattern((blocks * BLOCK) as usize, n));
        }
        rig.pipes.values().for_each(|pipe| rig.target.handle_closed(pipe.at_target));
        prop_assert_eq!(rig.target.memory_bytes(), 0);
    }

    #[test]
    fn arbitrary_pdus_do_not_disturb_other_sessions(
        wild in prop::collection::vec(
            (
                any::<u8>(), prop::array::uniform16(any::<u8>()), prop::array::uniform32(any::<u8>()),
                prop::collection::vec(any::<u8>(), 0..600), any::<bool>(),
            ),
            1..60,
        ),
        opcodes in prop::collection::vec(0u8..8, 60), logged_in: bool) {
        let mut rig = Rig::new(initiator(), TargetConfig::new(NAME), DataMode::Bytes);
        rig.run(SECOND);
        let stranger = if logged_in {
            let wild_one = InitiatorConfig::new("iqn.2026-01.example:wild", Some(NAME));
            let mut other = Rig::new(wild_one, TargetConfig::new(NAME), DataMode::Bytes);
            std::mem::swap(&mut other.target, &mut rig.target);
            other.run(SECOND);
            std::mem::swap(&mut other.target, &mut rig.target);
            other.pipes[&0].at_target
        } else {
            rig.target.open(rig.now, "127.0.0.1:3260", [0; 17])
        };
        for ((opcode, a, b, data, near), known) in wild.into_iter().zip(opcodes) {
            let mut bytes = [0; 48];
            bytes[..16].copy_from_slice(&a);
            bytes[16..].copy_from_slice(&b);
            bytes[0] = if near { known | (0x40 * (opcode & 1)) } else { opcode };
            bytes[4..8].fill(0);
            if near {
                // Numbers and tags that the target looks closer at.
                bytes[8..16].fill(0);
                bytes[16..24].iter_mut().for_each(|byte| *byte &= 1);
                bytes[24..28].copy_from_slice(&(u32::from(opcode) % 40).to_be_bytes());
            }
            let pdu = Pdu { header: Header::parse(&bytes), ahs: vec![], data: data.into() };
            rig.target.handle_pdu(rig.now, stranger, pdu);
            while let Some(work) = rig.target.poll_work() {
                let outcome = rig.medium.perform(&work.op);
                rig.target.handle_work(work.id, outcome);
            }
            for _ in 0..100 {
                if rig.target.poll_pdu(stranger).is_none() { break }
            }
        }
        rig.target.handle_closed(stranger);
        rig.initiator.submit(Command { lun: 0, cdb: [0; 16], data: Data::None });
        let read = rig.read(0, 1);
        rig.run(Span::from_secs(10));
        prop_assert_eq!(rig.initiator.outstanding(), 0);
        // A reservation of the stranger went with its session, but for a persistent one.
        let _ = rig.done(read);
    }
}
