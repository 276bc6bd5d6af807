//! The unit behaves as its write cache bit says (WCE, SBC-3 6.5.5).

use storage::scsi::{status, Device, Geometry, Identity, Lun, LunConfig, Nexus, Op, Outcome, Request, Step};
use wire::iscsi::{Payload, Rope};

const CACHING: u8 = 0x08;

struct Rig {
    device: Device,
    nexus: Nexus,
}

impl Rig {
    fn new(write_cache: bool) -> Rig {
        let text = || "x".to_owned();
        let identity =
            Identity { vendor: text(), product: text(), revision: text(), serial: text(), target: "iqn.x".into() };
        let geometry = Geometry { blocks: 64, block_bytes: 512, physical_bytes: 512 };
        let config = LunConfig { geometry, identity, read_only: false, thin: true, write_cache };
        let mut device = Device::new(vec![Lun::new(config)]);
        let nexus = Nexus::from("iqn.2026-01.example:a,i,0x1");
        device.attach(&nexus);
        Rig { device, nexus }
    }

    fn begin(&mut self, start: &[u8], data: Vec<u8>) -> Step {
        let mut cdb = [0; 16];
        cdb[..start.len()].copy_from_slice(start);
        let offered = data.len() as u32;
        let request = Request { lun: 0, nexus: &self.nexus, cdb: &cdb, offered };
        self.device.begin(request, Rope::from(Payload::from(data))).0
    }

    /// WCE of the caching page: now, at the start, and whether it can be changed.
    fn write_cache_bits(&mut self) -> [bool; 3] {
        [0, 2, 1].map(|control: u8| {
            // DBD: no block descriptor.
            let Step::Done(reply) = self.begin(&[0x1a, 0x08, control << 6 | CACHING, 0, 255], Vec::new()) else {
                panic!("MODE SENSE asks for the medium")
            };
            let bytes = reply.data.to_bytes();
            assert_eq!(bytes[4] & 0x3f, CACHING);
            bytes[6] & 0x04 != 0
        })
    }

    /// Returns whether a write, WRITE(10) with or without FUA, is acknowledged only when it is durable.
    fn is_durable(&mut self, fua: bool) -> bool {
        let flags = if fua { 0x08 } else { 0 };
        match self.begin(&[0x2a, flags, 0, 0, 0, 1, 0, 0, 1], vec![7; 512]) {
            Step::Work(Op::Write { durable, .. }, _) => durable,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn with_the_cache_on_only_fua_makes_a_write_durable() {
    let mut rig = Rig::new(true);
    assert_eq!(rig.write_cache_bits(), [true, true, true]);
    assert!(!rig.is_durable(false));
    assert!(rig.is_durable(true));
}

#[test]
fn with_the_cache_off_every_write_is_durable() {
    let mut rig = Rig::new(true);
    let mut list = vec![0; 24];
    (list[4], list[5]) = (CACHING, 18);
    // The content of the cache goes to the medium first.
    let Step::Work(Op::Flush, then) = rig.begin(&[0x15, 0x10, 0, 0, 24], list) else { panic!("no flush") };
    assert_eq!(rig.device.finish(0, then, Outcome::Done).status, status::GOOD);
    assert_eq!(rig.write_cache_bits(), [false, true, true]);
    assert!(rig.is_durable(false));
    assert!(rig.is_durable(true));
}

#[test]
fn a_unit_without_cache_reports_it() {
    let mut rig = Rig::new(false);
    assert_eq!(rig.write_cache_bits(), [false, false, true]);
    assert!(rig.is_durable(false));
}
