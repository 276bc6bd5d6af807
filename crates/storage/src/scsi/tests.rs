use super::*;
use proptest::prelude::*;
use wire::iscsi::{Payload, Rope};

const BLOCK: u32 = 512;
const BLOCKS: u64 = 2048;

fn config() -> LunConfig {
    let identity = Identity {
        vendor: "ELEPHAN".into(),
        product: "DISK".into(),
        revision: "1".into(),
        serial: "4711".into(),
        target: "iqn.2026-01.example:disk".into(),
    };
    let geometry = Geometry { blocks: BLOCKS, block_bytes: BLOCK, physical_bytes: 4096 };
    LunConfig { geometry, identity, read_only: false, thin: true, write_cache: true }
}

struct Rig {
    device: Device,
    medium: Memory,
}

impl Rig {
    fn new() -> Rig {
        let mut device = Device::new(vec![Lun::new(config())]);
        device.attach(&"a".into());
        device.attach(&"b".into());
        Rig { device, medium: Memory::new(BLOCKS, BLOCK) }
    }

    fn run(&mut self, who: &str, bytes: &[u8], data: Vec<u8>) -> Reply {
        let mut cdb = [0; 16];
        cdb[..bytes.len()].copy_from_slice(bytes);
        let nexus = who.into();
        let request = Request { lun: 0, nexus: &nexus, cdb: &cdb, offered: data.len() as u32 };
        match self.device.begin(request, Rope::from(Payload::from(data))) {
            (Step::Done(reply), _) => reply,
            (Step::Work(op, then), lun) => self.device.finish(lun, then, self.medium.perform(&op)),
        }
    }

    /// Key and codes of the sense data.
    fn sense(&mut self, who: &str, cdb: &[u8], data: Vec<u8>) -> (u8, u8, u8) {
        let reply = self.run(who, cdb, data);
        assert_eq!(reply.status, status::CHECK_CONDITION, "{cdb:02x?}");
        (reply.sense[2] & 15, reply.sense[12], reply.sense[13])
    }

    fn good(&mut self, who: &str, cdb: &[u8], data: Vec<u8>) -> Vec<u8> {
        let reply = self.run(who, cdb, data);
        assert_eq!(reply.status, status::GOOD, "{cdb:02x?}: {:02x?}", reply.sense);
        reply.data.to_bytes().to_vec()
    }

    fn reserve(&mut self, who: &str, action: u8, kind: u8, key: u64, other: u64) -> u8 {
        let mut list = [key.to_be_bytes(), other.to_be_bytes(), [0; 8]].concat();
        list.truncate(24);
        self.run(who, &[0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0], list).status
    }
}

const READ: [u8; 10] = [0x28, 0, 0, 0, 0, 8, 0, 0, 1, 0];
const WRITE: [u8; 10] = [0x2a, 0, 0, 0, 0, 8, 0, 0, 1, 0];

#[test]
fn written_data_is_read_by_every_command_length() {
    let mut rig = Rig::new();
    let mut sixteen = [0; 16];
    (sixteen[9], sixteen[13]) = (8, 1);
    for (number, write, read) in [
        (1, [0x0a, 0, 0, 8, 1, 0].to_vec(), [0x08, 0, 0, 8, 1, 0].to_vec()),
        (2, WRITE.to_vec(), READ.to_vec()),
        (3, vec![0xaa, 0, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0], vec![0xa8, 0, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0]),
        (4, [&[0x8a], &sixteen[1..]].concat(), [&[0x88], &sixteen[1..]].concat()),
    ] {
        rig.good("a", &write, vec![number; 512]);
        assert_eq!(rig.good("b", &read, vec![]), vec![number; 512]);
    }
}

#[test]
fn stopping_or_disabling_the_cache_flushes_it() {
    let flushes = |cdb: &[u8], data: Vec<u8>| {
        let mut rig = Rig::new();
        let mut all = [0; 16];
        all[..cdb.len()].copy_from_slice(cdb);
        let (nexus, offered) = ("a".into(), data.len() as u32);
        let request = Request { lun: 0, nexus: &nexus, cdb: &all, offered };
        matches!(rig.device.begin(request, Payload::from(data).into()).0, Step::Work(Op::Flush, Continuation::Plain))
    };
    assert!(flushes(&[0x1b, 0, 0, 0, 0, 0], vec![]));
    assert!(!flushes(&[0x1b, 0, 0, 0, 4, 0], vec![]), "NO_FLUSH");
    assert!(!flushes(&[0x1b, 0, 0, 0, 1, 0], vec![]), "started");
    // The caching page, with WCE as it is and without.
    let page = |cache: u8| [vec![0, 0, 0, 0, 8, 18, cache], vec![0; 17]].concat();
    assert!(!flushes(&[0x15, 0x10, 0, 0, 24, 0], page(4)));
    assert!(flushes(&[0x15, 0x10, 0, 0, 24, 0], page(0)));
}

#[test]
fn the_size_of_a_unit_cannot_be_selected() {
    let mut rig = Rig::new();
    let list = |blocks: u32, length: u32| [&[0, 0, 0, 8][..], &blocks.to_be_bytes(), &length.to_be_bytes()].concat();
    let select = [0x15, 0x10, 0, 0, 12, 0];
    rig.good("a", &select, list(0, 512));
    rig.good("a", &select, list(BLOCKS as u32, 512));
    assert_eq!(rig.sense("a", &select, list(0, 4096)), (5, 0x26, 0));
    assert_eq!(rig.sense("a", &select, list(7, 512)), (5, 0x26, 0));
    assert_eq!(rig.sense("a", &[0x15, 0x10, 0, 0, 8, 0], vec![0, 0, 0, 4, 0, 0, 0, 0]), (5, 0x26, 0));
}

#[test]
fn request_sense_of_an_absent_unit_returns_sense_as_data() {
    let mut rig = Rig::new();
    let mut cdb = [0; 16];
    (cdb[0], cdb[4]) = (0x03, 18);
    let nexus = "a".into();
    let request = Request { lun: 7 << 48, nexus: &nexus, cdb: &cdb, offered: 0 };
    let (Step::Done(reply), _) = rig.device.begin(request, Rope::default()) else { panic!("work for no unit") };
    let data = reply.data.to_bytes();
    assert_eq!((reply.status, data[2], data[12], data[13]), (status::GOOD, 5, 0x25, 0));
}

#[test]
fn blocks_beyond_the_end_and_protection_are_refused() {
    let mut rig = Rig::new();
    assert_eq!(rig.sense("a", &[0x28, 0, 0, 0, 8, 0, 0, 0, 1, 0], vec![]), (5, 0x21, 0));
    assert_eq!(rig.sense("a", &[0x28, 0, 0, 0, 7, 255, 0, 0, 2, 0], vec![]), (5, 0x21, 0));
    assert_eq!(rig.good("a", &[0x28, 0, 0, 0, 8, 0, 0, 0, 0, 0], vec![]), []);
    let reply = rig.run("a", &[0x28, 0x20, 0, 0, 0, 0, 0, 0, 1, 0], vec![]);
    assert_eq!(&reply.sense[12..], [0x24, 0, 0, 0xc0, 0, 1], "the sense data points at byte 1 of the CDB");
    assert_eq!(rig.sense("a", &[0xff], vec![]), (5, 0x20, 0));
}

#[test]
fn compare_and_write_reports_the_miscompare_offset() {
    let mut rig = Rig::new();
    let mut cdb = [0; 16];
    (cdb[0], cdb[9], cdb[13]) = (0x89, 8, 1);
    rig.good("a", &cdb, [vec![0; 512], vec![7; 512]].concat());
    let mut expected = vec![7; 512];
    expected[100] = 8;
    let reply = rig.run("a", &cdb, [expected, vec![9; 512]].concat());
    assert_eq!((reply.sense[0], reply.sense[2], reply.sense[12]), (0xf0, 0xe, 0x1d));
    assert_eq!(reply.sense[3..7], [0, 0, 0, 100]);
    assert_eq!(rig.good("a", &READ, vec![]), vec![7; 512]);
    assert_eq!(rig.sense("a", &cdb, vec![0; 512]), (5, 0x0e, 3), "half of the data");
}

#[test]
fn unmapped_blocks_read_as_zeros_and_are_reported() {
    let mut rig = Rig::new();
    rig.good("a", &WRITE, vec![7; 512]);
    let mut status = [0; 16];
    (status[0], status[1], status[9], status[13]) = (0x9e, 0x12, 8, 24);
    assert_eq!(rig.good("a", &status, vec![])[8..], [0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0]);
    let mut list = vec![0, 22, 0, 16, 0, 0, 0, 0];
    list.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0]);
    rig.good("a", &[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], list);
    assert_eq!(rig.good("a", &READ, vec![]), vec![0; 512]);
    assert_eq!(rig.good("a", &status, vec![])[20], 1);
}

#[test]
fn mode_select_changes_changeable_fields_and_notifies_other_initiators() {
    let mut rig = Rig::new();
    let page = rig.good("a", &[0x1a, 0x08, 0x0a, 0, 255, 0], vec![]);
    let mut list = [&[0, 0, 0, 0], &page[4..]].concat();
    list[6] |= 0x04;
    rig.good("a", &[0x15, 0x10, 0, 0, list.len() as u8, 0], list.clone());
    assert_eq!(rig.run("a", &[0xff], vec![]).sense[0], 0x72, "descriptor sense");
    let answer = rig.run("b", &[0], vec![]);
    assert_eq!(answer.sense[1..4], [6, 0x2a, 1]);
    list[7] ^= 0x80;
    let reply = rig.run("a", &[0x15, 0x10, 0, 0, list.len() as u8, 0], list);
    assert_eq!(reply.sense[1..4], [5, 0x26, 0]);
    assert_eq!(rig.run("b", &[0x1a, 0, 0xff, 0, 255, 0], vec![]).sense[1..4], [5, 0x39, 0], "nothing is saved");
}

#[test]
fn a_reservation_lasts_until_release_loss_or_reset() {
    let mut rig = Rig::new();
    for end in ["release", "loss", "reset"] {
        rig.good("a", &[0x16, 0, 0, 0, 0, 0], vec![]);
        assert_eq!(rig.run("b", &READ, vec![]).status, status::RESERVATION_CONFLICT);
        rig.good("b", &[0x12, 0, 0, 0, 96, 0], vec![]);
        rig.good("b", &[0x17, 0, 0, 0, 0, 0], vec![]);
        assert_eq!(rig.run("b", &READ, vec![]).status, status::RESERVATION_CONFLICT);
        match end {
            "release" => drop(rig.good("a", &[0x17, 0, 0, 0, 0, 0], vec![])),
            "loss" => {
                rig.device.detach(&"a".into());
                rig.device.attach(&"a".into());
            }
            _ => {
                rig.device.reset(None);
                assert_eq!(rig.sense("a", &READ, vec![]), (6, 0x29, 3));
                assert_eq!(rig.sense("b", &READ, vec![]), (6, 0x29, 3));
            }
        }
        rig.good("b", &READ, vec![]);
    }
}

#[test]
fn persistent_reservations_follow_their_type() {
    for (kind, stranger_reads, registrant_writes) in
        [(1, true, false), (3, false, false), (5, true, true), (6, false, true), (7, true, true), (8, false, true)]
    {
        let mut rig = Rig::new();
        rig.device.attach(&"c".into());
        assert_eq!(rig.reserve("a", 0, 0, 0, 1), status::GOOD);
        assert_eq!(rig.reserve("b", 0, 0, 0, 2), status::GOOD);
        assert_eq!(rig.reserve("b", 1, kind, 1, 0), status::RESERVATION_CONFLICT, "with another's key");
        assert_eq!(rig.reserve("a", 1, kind, 1, 0), status::GOOD);
        let passes = |reply: Reply| reply.status == status::GOOD;
        assert!(passes(rig.run("a", &WRITE, vec![0; 512])));
        assert_eq!(passes(rig.run("b", &WRITE, vec![0; 512])), registrant_writes, "type {kind}");
        assert_eq!(passes(rig.run("c", &READ, vec![])), stranger_reads, "type {kind}");
        assert!(!passes(rig.run("c", &WRITE, vec![0; 512])));
        // The session goes, the reservation stays.
        rig.device.detach(&"a".into());
        assert!(!passes(rig.run("c", &WRITE, vec![0; 512])));
        // Preempted: of the all-registrants types with key 0, of the others with the holder's.
        let key = if kind > 6 { 0 } else { 1 };
        rig.device.attach(&"a".into());
        assert_eq!(rig.reserve("b", 4, kind, 2, key), status::GOOD);
        assert_eq!(rig.sense("a", &READ, vec![]), (6, 0x2a, 5));
        assert!(!passes(rig.run("a", &WRITE, vec![0; 512])));
        assert!(passes(rig.run("b", &WRITE, vec![0; 512])));
        assert_eq!(rig.reserve("b", 3, 0, 2, 0), status::GOOD);
        assert!(passes(rig.run("c", &WRITE, vec![0; 512])));
    }
}

#[test]
fn every_command_that_is_reported_is_known_and_others_are_not() {
    let mut rig = Rig::new();
    let all = rig.good("a", &[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 255, 255], vec![]);
    let listed: Vec<(u8, u8)> = all[4..].chunks(8).map(|d| (d[0], d[3] | u8::from(d[5] & 1 == 0) << 7)).collect();
    for opcode in 0..=255 {
        let known = listed.iter().any(|&(code, _)| code == opcode);
        let action = listed.iter().find(|&&(code, _)| code == opcode).map_or(0, |&(_, action)| action & 0x1f);
        let mut cdb = [0; 16];
        (cdb[0], cdb[1]) = (opcode, action);
        let reply = rig.run("a", &cdb, vec![]);
        let unknown = reply.status == status::CHECK_CONDITION && reply.sense[12] == 0x20;
        assert_eq!(unknown, !known, "{opcode:02x}");
    }
}

proptest! {
    #[test]
    fn any_command_with_any_data_ends(
        cdbs in prop::collection::vec(
            (
                prop::array::uniform16(any::<u8>()),
                prop::sample::select(super::opcodes::COMMANDS.iter().map(|c| (c.opcode, c.action)).collect::<Vec<_>>()),
                any::<bool>(),
                any::<u8>(),
            ),
            1..40,
        ),
    ) {
        let mut rig = Rig::new();
        for (mut cdb, (opcode, action), wild, byte) in cdbs {
            if !wild {
                cdb[0] = opcode;
                cdb[2..8].fill(0);
                cdb[1] = cdb[1] & (0xe0 * (byte & 1)) | action.unwrap_or(cdb[1] & 0x1f);
            }
            let wanted = rig.device.data_out_bytes(0, &cdb).min(1 << 20) as usize;
            let reply = rig.run("a", &cdb, vec![byte; wanted]);
            prop_assert_eq!(reply.status == status::CHECK_CONDITION, !reply.sense.is_empty());
        }
    }
}

#[test]
fn comparing_one_block_with_many_needs_little_memory() {
    // VERIFY(10) with BYTCHK = 3: all blocks hold the one that came.
    let verify = |blocks: u16| [0x2f, 6, 0, 0, 0, 0, 0, (blocks >> 8) as u8, blocks as u8, 0];
    let mut rig = Rig::new();
    for blocks in [1, 127, 128, 129, 2048] {
        rig.good("a", &verify(blocks), vec![0; 512]);
        let mut cdb = [0; 16];
        cdb[..10].copy_from_slice(&verify(blocks));
        let request = Request { lun: 0, nexus: &"a".into(), cdb: &cdb, offered: 512 };
        let (step, _) = rig.device.begin(request, Rope::from(Payload::from(vec![7; 512])));
        let Step::Work(Op::Compare { data, .. }, _) = step else { panic!("{blocks}: {step:?}") };
        let mut places: Vec<*const u8> = data.pieces().map(|piece| piece.to_bytes().as_ptr()).collect();
        places.dedup();
        assert_eq!((data.len(), places.len()), (usize::from(blocks) * 512, 1), "{blocks}");
        assert!(data == Rope::from(Payload::from(vec![7; usize::from(blocks) * 512])));
    }
    assert_eq!(rig.sense("a", &verify(2048), vec![1; 512]), (0xe, 0x1d, 0));
}
