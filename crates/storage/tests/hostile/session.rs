//! An initiator and a target with a line between them that drops, doubles, damages and adds PDUs. **Promise: neither
//! panics, and once the line is well again and was made anew every command has a status, or the session has failed and
//! said so.** (A PDU that is lost alone, which TCP does not do, may leave a command without a status for as long as
//! the connection lives.)

use super::input::Input;
use super::pdu::{pdu, Known};
use bytes::BytesMut;
use std::collections::BTreeMap;
use storage::iscsi::initiator::{Command, Data, Event};
use storage::iscsi::{ConnectionId, Digest, Initiator, InitiatorConfig, Outbound, Target, TargetConfig};
use storage::scsi::{Device, Geometry, Identity, Lun, LunConfig, Medium, Memory};
use units::{Span, Time};
use wire::iscsi::{Header, Payload};

pub const NAME: &str = "iqn.2026-01.example:disk";
pub const BLOCKS: u64 = 64;
const SECOND: Span = Span::from_secs(1);
/// Time that the session has for itself before its connections are made anew.
const PATIENCE: Span = Span::from_secs(100);
/// Turns after which a session that goes on without end is a fault.
const MOST_TURNS: usize = 20_000;

/// A medium of zeros.
pub struct Medium0(pub Memory);

impl Default for Medium0 {
    fn default() -> Medium0 {
        Medium0(Memory::new(BLOCKS, 512))
    }
}

pub fn device() -> Device {
    let identity = Identity {
        vendor: "ELEPHAN".into(),
        product: "DISK".into(),
        revision: "1".into(),
        serial: "4711".into(),
        target: NAME.into(),
    };
    let geometry = Geometry { blocks: BLOCKS, block_bytes: 512, physical_bytes: 4096 };
    Device::new(vec![Lun::new(LunConfig { geometry, identity, read_only: false, thin: true, write_cache: true })])
}

pub fn read(lba: u32, blocks: u32) -> Command {
    let mut cdb = [0; 16];
    cdb[0] = 0x28;
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[8] = blocks as u8;
    Command { lun: 0, cdb, data: Data::Read(blocks * 512) }
}

pub fn write(lba: u32, data: &Payload) -> Command {
    let mut command = read(lba, data.len() as u32 / 512);
    command.cdb[0] = 0x2a;
    command.data = Data::Write(data.clone());
    command
}

/// Lets both talk over a line that is well, until neither has anything to do.
pub fn settle(
    now: &mut Time,
    initiator: &mut Initiator,
    target: &mut Target,
    medium: &Medium0,
    pipes: &mut BTreeMap<usize, ConnectionId>,
    turns: usize,
) {
    for _ in 0..turns {
        if !turn(*now, initiator, target, medium, pipes, &mut |_, _, out| vec![out]) {
            if initiator.outstanding() == 0 {
                return;
            }
            // Somebody waits: for the session to begin anew, for an answer to a ping.
            *now += SECOND;
            initiator.handle_timeout(*now);
            target.handle_timeout(*now);
        }
    }
}

/// Passes a PDU through a connection: (upwards, connection, PDU) to the received PDU.
type Line<'a> = dyn FnMut(bool, usize, Outbound) -> Vec<Outbound> + 'a;

/// As a socket would carry it. None: the reader gives the connection up.
fn carried(out: &Outbound, framing: wire::iscsi::Framing) -> Option<wire::iscsi::Received> {
    let mut bytes = BytesMut::new();
    out.framing.encode(&out.pdu, &mut bytes);
    framing.decode(&mut bytes).ok().flatten()
}

/// One round; whether anything was done.
fn turn(
    now: Time,
    initiator: &mut Initiator,
    target: &mut Target,
    medium: &Medium0,
    pipes: &mut BTreeMap<usize, ConnectionId>,
    line: &mut Line<'_>,
) -> bool {
    let mut any = false;
    while let Some(index) = initiator.poll_connect() {
        if let Some(old) = pipes.insert(index, target.open(now, "127.0.0.1:3260", [9; 17])) {
            target.handle_closed(old);
        }
        initiator.handle_connected(now, index);
        any = true;
    }
    while let Some(work) = target.poll_work() {
        target.handle_work(work.id, medium.0.perform(&work.op));
        any = true;
    }
    for (index, id) in pipes.clone() {
        let mut broken = initiator.poll_close(index).is_some();
        while let (Some(out), false) = (initiator.poll_pdu(index), broken) {
            any = true;
            for out in line(true, index, out) {
                match carried(&out, target.framing(id)) {
                    Some(received) if received.intact => target.handle_pdu(now, id, received.pdu),
                    Some(received) => target.handle_damaged(now, id, &received.pdu),
                    None => broken = true,
                }
            }
        }
        while let (Some(out), false) = (target.poll_pdu(id), broken) {
            any = true;
            for out in line(false, index, out) {
                match carried(&out, initiator.framing(index)) {
                    Some(received) if received.intact => initiator.handle_pdu(now, index, received.pdu),
                    _ => broken = true,
                }
            }
        }
        if broken || target.poll_close(id).is_some() {
            any = true;
            pipes.remove(&index);
            target.handle_closed(id);
            initiator.handle_closed(now, index, "the line broke");
        }
    }
    any
}

pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let flags = input.u8();
    let mut config = InitiatorConfig {
        connections: usize::from(flags & 1) + 1,
        ..InitiatorConfig::new("iqn.2026-01.example:a", Some(NAME))
    };
    config.settings.initial_r2t = flags & 2 != 0;
    config.settings.immediate_data = flags & 4 != 0;
    config.settings.max_connections = 2;
    config.settings.max_burst_bytes = 1024;
    config.settings.first_burst_bytes = 512;
    config.settings.max_recv_bytes = 512;
    if flags & 8 != 0 {
        (config.settings.header_digest, config.settings.data_digest) = (Digest::Preferred, Digest::Preferred);
    }
    let settings = config.settings;
    let mut initiator = Initiator::new(config);
    let mut target = Target::new(TargetConfig { settings, window: 8, ..TargetConfig::new(NAME) }, device());
    let (medium, mut pipes, mut now) = (Medium0::default(), BTreeMap::new(), Time(0));
    for n in 0..u32::from(flags >> 4) {
        let data = Payload::from(vec![n as u8; 512 * (1 + n as usize % 5)]);
        initiator.submit(if n % 2 == 0 { write(n, &data) } else { read(n, 1 + n % 7) });
    }
    if flags & 128 != 0 {
        initiator.manage(5, 0, None);
    }
    let mut known = [Known::default(); 2];
    let (mut turns, mut is_over, mut anew) = (0, false, false);
    while turns < MOST_TURNS {
        turns += 1;
        let moved = turn(now, &mut initiator, &mut target, &medium, &mut pipes, &mut |up, _, out| {
            let framing = out.framing;
            let seen = &mut known[usize::from(up)];
            match out.pdu.header {
                Header::ScsiCommand(h) => (seen.number, seen.itt) = (h.cmd_sn, h.itt),
                Header::ScsiResponse(h) => (seen.number, seen.itt) = (h.stat_sn, h.itt),
                Header::DataIn(h) => (seen.number, seen.itt, seen.offset) = (h.stat_sn, h.itt, h.buffer_offset),
                Header::ReadyToTransfer(h) => (seen.itt, seen.ttt) = (h.itt, h.ttt),
                _ => {}
            }
            match input.u8() {
                // Most go through; behind the input's end all do.
                0..=199 => vec![out],
                200..=209 => vec![],
                210..=219 => vec![out.clone(), out],
                220..=234 => vec![out, Outbound { pdu: pdu(&mut input, *seen, !up), framing }],
                235..=244 => vec![Outbound { pdu: pdu(&mut input, *seen, !up), framing }],
                _ => {
                    let mut bytes = BytesMut::new();
                    framing.encode(&out.pdu, &mut bytes);
                    let at = usize::from(input.u16()) % bytes.len();
                    bytes[at] ^= input.u8();
                    match framing.decode(&mut bytes) {
                        Ok(Some(received)) => vec![Outbound { pdu: received.pdu, framing }],
                        _ => vec![],
                    }
                }
            }
        });
        while let Some(event) = initiator.poll_event() {
            is_over |= matches!(event, Event::Failed(_));
        }
        if initiator.outstanding() == 0 && !moved || is_over {
            break;
        }
        if !anew && input.is_empty() && now > Time(0) + PATIENCE {
            anew = true;
            for (index, id) in std::mem::take(&mut pipes) {
                target.handle_closed(id);
                initiator.handle_closed(now, index, "made anew");
            }
        }
        if !moved {
            now += SECOND;
            initiator.handle_timeout(now);
            target.handle_timeout(now);
        }
    }
    assert!(turns < MOST_TURNS, "the session goes on without end");
    assert!(initiator.outstanding() == 0, "commands without a status");
}
