//! A target with strangers on it. **Promise: whatever they send, somebody else is served afterwards; nothing grows
//! without bound.**

use super::input::Input;
use super::pdu::{pdu, Known};
use super::session::{device, settle, Medium0, BLOCKS, NAME};
use bytes::BytesMut;
use std::collections::{BTreeMap, VecDeque};
use storage::iscsi::{ConnectionId, Initiator, InitiatorConfig, MemoryConfig, Target, TargetConfig, Work};
use storage::scsi::{Medium, MediumError, Outcome};
use units::{Span, Time};
use wire::iscsi::{Header, LoginRequest, Payload, Pdu, BHS_BYTES};

/// Keys of a login with values that are right, and the fuzzer's own.
const PAIRS: [&str; 24] = [
    "InitiatorName=iqn.2026-01.example:wild",
    "InitiatorName=",
    "TargetName=iqn.2026-01.example:disk",
    "SessionType=Discovery",
    "SessionType=Normal",
    "AuthMethod=CHAP,None",
    "AuthMethod=None",
    "CHAP_A=5,7",
    "CHAP_N=host",
    "CHAP_R=0x00112233445566778899aabbccddeeff",
    "CHAP_I=1",
    "CHAP_C=0b!!!!",
    "HeaderDigest=CRC32C,None",
    "DataDigest=CRC32C",
    "MaxConnections=4",
    "InitialR2T=No",
    "ImmediateData=Yes",
    "MaxRecvDataSegmentLength=512",
    "MaxBurstLength=16777215",
    "FirstBurstLength=512",
    "MaxOutstandingR2T=65535",
    "ErrorRecoveryLevel=2",
    "X-com.example=1",
    "SendTargets=All",
];
/// PDUs that a connection may have to send before it is a fault: the answers that may wait and the data of one 16 MiB
/// read in pieces of 512 bytes.
const MOST_PDUS: usize = 40_000;
/// All that the target may take, bytes.
const MEMORY: u64 = 64 << 10;
/// Connections of strangers at a time.
const STRANGERS: usize = 4;

struct Stranger {
    id: ConnectionId,
    bytes: BytesMut,
    known: Known,
}

struct Rig {
    now: Time,
    target: Target,
    medium: Medium0,
    strangers: Vec<Stranger>,
    work: VecDeque<Work>,
}

impl Rig {
    fn login(&mut self, input: &mut Input<'_>, at: usize) {
        let mut text = Vec::new();
        for _ in 0..input.u8() % 12 {
            let pair = input.pick(&PAIRS);
            let cut = if input.u8() & 7 == 0 { usize::from(input.u8()) % (pair.len() + 1) } else { pair.len() };
            text.extend_from_slice(&pair.as_bytes()[..cut]);
            text.push(0);
        }
        let flags = input.u8();
        let (csg, nsg) = (flags & 3, flags >> 2 & 3);
        let stranger = &self.strangers[at];
        let request = LoginRequest {
            immediate: true,
            transit: flags & 16 != 0,
            cont: flags & 32 != 0,
            csg,
            nsg,
            isid: [0x80, 0, 0, 0, 0, flags >> 7],
            tsih: if flags & 64 != 0 { u16::from(input.u8()) } else { 0 },
            cid: u16::from(flags >> 6),
            cmd_sn: stranger.known.number,
            ..LoginRequest::default()
        };
        self.target.handle_pdu(self.now, stranger.id, Pdu::with(request, text.into()));
    }

    /// A session in full feature phase, by an initiator that does it right; the stranger goes on from there.
    fn arrive(&mut self, input: &mut Input<'_>) {
        let name = input.pick(&["iqn.2026-01.example:a", "iqn.2026-01.example:b"]);
        let mut config = InitiatorConfig::new(name, Some(NAME));
        let flags = input.u8();
        config.settings.initial_r2t = flags & 1 != 0;
        config.settings.immediate_data = flags & 2 != 0;
        config.settings.max_burst_bytes = 1 << (9 + (flags >> 2 & 3));
        config.settings.first_burst_bytes = 512;
        config.isid[5] = flags >> 7;
        let mut initiator = Initiator::new(config);
        let mut pipes = BTreeMap::new();
        settle(&mut self.now, &mut initiator, &mut self.target, &self.medium, &mut pipes, 1000);
        if let Some(id) = pipes.remove(&0) {
            self.strangers.push(Stranger {
                id,
                bytes: BytesMut::new(),
                known: Known { number: 1, ..Known::default() },
            });
        }
    }

    fn bytes(&mut self, at: usize, more: &[u8]) {
        let stranger = &mut self.strangers[at];
        stranger.bytes.extend_from_slice(more);
        loop {
            if !self.target.takes_input(stranger.id) {
                return stranger.bytes.clear();
            }
            match self.target.framing(stranger.id).decode(&mut stranger.bytes) {
                Ok(Some(received)) if received.intact => self.target.handle_pdu(self.now, stranger.id, received.pdu),
                Ok(Some(received)) => self.target.handle_damaged(self.now, stranger.id, &received.pdu),
                Ok(None) if stranger.bytes.len() >= BHS_BYTES => {
                    let mut bhs = [0; BHS_BYTES];
                    bhs.copy_from_slice(&stranger.bytes[..BHS_BYTES]);
                    let length = u32::from_be_bytes([0, bhs[5], bhs[6], bhs[7]]);
                    match self.target.handle_head(stranger.id, &Header::parse(&bhs), length) {
                        Ok(true) => return,
                        Ok(false) => return stranger.bytes.clear(),
                        Err(_) => return self.close(at),
                    }
                }
                Ok(None) => return,
                Err(_) => return self.close(at),
            }
        }
    }

    fn close(&mut self, at: usize) {
        self.target.handle_closed(self.strangers[at].id);
        self.strangers.remove(at);
    }

    /// Takes at most so many PDUs; what they tell is used in those that follow.
    fn drain(&mut self, at: usize, most: usize) -> usize {
        let stranger = &mut self.strangers[at];
        let mut count = 0;
        while count < most {
            let Some(out) = self.target.poll_pdu(stranger.id) else { break };
            count += 1;
            self.target.handle_sent(self.now, stranger.id, out.framing.length(&out.pdu) as u64);
            match out.pdu.header {
                Header::ReadyToTransfer(h) => {
                    let Known { itt, ttt, offset, length, .. } = &mut stranger.known;
                    (*itt, *ttt, *offset, *length) = (h.itt, h.ttt, h.buffer_offset, h.desired_length);
                }
                Header::ScsiResponse(h) => stranger.known.number = h.exp_cmd_sn,
                Header::NopIn(h) => stranger.known.number = h.exp_cmd_sn,
                Header::TaskResponse(h) => stranger.known.number = h.exp_cmd_sn,
                _ => {}
            }
        }
        count
    }

    fn perform(&mut self, index: usize, fails: bool) {
        while let Some(work) = self.target.poll_work() {
            self.work.push_back(work);
        }
        let Some(work) = self.work.remove(index) else { return };
        let outcome = if fails { Outcome::Failed(MediumError::Write) } else { self.medium.0.perform(&work.op) };
        self.target.handle_work(work.id, outcome);
    }

    fn act(&mut self, input: &mut Input<'_>) {
        let what = input.u8();
        if self.strangers.is_empty() || what >= 0xf0 && self.strangers.len() < STRANGERS {
            if input.u8() & 1 == 0 {
                return self.arrive(input);
            }
            let id = self.target.open(self.now, "127.0.0.1:3260", [7; 17]);
            return self.strangers.push(Stranger { id, bytes: BytesMut::new(), known: Known::default() });
        }
        let at = usize::from(what >> 4) % self.strangers.len();
        match what & 15 {
            0..=6 => {
                let pdu = pdu(input, self.strangers[at].known, false);
                let stranger = &mut self.strangers[at];
                if let Header::ScsiCommand(h) = pdu.header {
                    stranger.known.itt = h.itt.wrapping_add(1);
                    stranger.known.number = h.cmd_sn.wrapping_add(u32::from(!h.immediate));
                }
                if self.target.takes_input(stranger.id) {
                    self.target.handle_pdu(self.now, stranger.id, pdu);
                }
            }
            7 => {
                let length = usize::from(input.u8());
                let more = input.bytes(length);
                self.bytes(at, more);
            }
            8 => self.login(input, at),
            9 => self.perform(0, false),
            10 => self.perform(usize::from(input.u8()) % 8, input.u8() & 1 != 0),
            11 => {
                self.drain(at, usize::from(input.u8()));
            }
            12 => self.close(at),
            13 => {
                self.now += Span(u64::from(input.u8()) << 28);
                self.target.handle_timeout(self.now);
            }
            14 => {
                let pdu = pdu(input, self.strangers[at].known, false);
                self.target.handle_damaged(self.now, self.strangers[at].id, &pdu);
            }
            _ => self.target.request_logout(u16::from(input.u8())),
        }
    }
}

/// Strangers do what the bytes say; then one that does it right logs in, writes and reads.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let memory = MemoryConfig {
        limit_bytes: Some(MEMORY),
        connections: 5,
        buffer_bytes: 512,
        small_bytes: 1024,
        ..MemoryConfig::UNLIMITED
    };
    let config = TargetConfig { window: 8, max_sessions: 4, max_data_bytes: 8192, memory, ..TargetConfig::new(NAME) };
    let mut rig = Rig {
        now: Time(0),
        target: Target::new(config, device()),
        medium: Medium0::default(),
        strangers: Vec::new(),
        work: VecDeque::new(),
    };
    while !input.is_empty() {
        rig.act(&mut input);
        assert_eq!(rig.target.connection_count(), rig.strangers.len());
        assert!(rig.target.session_count() <= 4);
        // The claims of a connection that is to be closed count beside what the medium is at of it.
        assert!(rig.target.memory_bytes() <= 2 * MEMORY);
    }
    for _ in 0..1000 {
        rig.perform(0, false);
    }
    for at in 0..rig.strangers.len() {
        assert!(rig.drain(at, MOST_PDUS) < MOST_PDUS, "PDUs without end");
    }
    // Sessions of strangers may be as many as there can be: those go as their peers do.
    while !rig.strangers.is_empty() {
        rig.close(0);
    }
    assert_eq!((rig.target.session_count(), rig.target.connection_count()), (0, 0));
    for _ in 0..1000 {
        rig.perform(0, false);
    }
    assert_eq!(rig.target.memory_bytes(), 0);
    let mut initiator = Initiator::new(InitiatorConfig::new("iqn.2026-01.example:other", Some(NAME)));
    for lba in [0, BLOCKS as u32 - 1] {
        initiator.submit(super::session::write(lba, &Payload::from(vec![7; 512])));
        initiator.submit(super::session::read(lba, 1));
    }
    settle(&mut rig.now, &mut initiator, &mut rig.target, &rig.medium, &mut BTreeMap::new(), 1000);
    // A persistent reservation of a stranger may stand in the way: then the status says so. None is without one.
    assert_eq!(initiator.outstanding(), 0, "commands without a status");
}
