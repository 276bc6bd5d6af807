//! INQUIRY and its vital product data (SPC-4, 6.6 and 7.8; SBC-3, 6.6).

use super::cdb::Cdb;
use super::command::CommandResult;
use super::limits::{MAX_COMPARE_BLOCKS, MAX_TRANSFER_BYTES, MAX_UNMAP_BLOCKS, MAX_UNMAP_RANGES};
use super::sense::Sense;
use super::settings::LunConfig;

const PAGES: [u8; 6] = [0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2];

/// Text of a fixed width, filled with spaces.
fn padded(text: &str, width: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = text.bytes().filter(|b| (0x20..0x7f).contains(b)).take(width).collect();
    bytes.resize(width, b' ');
    bytes
}

pub(super) fn inquiry(config: &LunConfig, cdb: &Cdb) -> CommandResult {
    if cdb[1] & 1 == 0 {
        // A page without EVPD has no meaning.
        return if cdb[2] == 0 { Ok(standard(config)) } else { Err(Sense::cdb(2)) };
    }
    let content = match cdb[2] {
        0x00 => {
            let thin = config.thin;
            PAGES.into_iter().filter(|&page| page != 0xb2 || thin).collect()
        }
        0x80 => padded(&config.identity.serial, config.identity.serial.len().min(36)),
        0x83 => identification(config),
        0xb0 => limits(config),
        0xb1 => {
            // Not rotating (1), form factor not reported.
            let mut page = vec![0; 60];
            page[1] = 1;
            page
        }
        // Unmap, write same with unmap in both lengths, zeros after unmap, thin.
        0xb2 if config.thin => vec![0, 0xe4, 2, 0],
        _ => return Err(Sense::cdb(2)),
    };
    let length = (content.len() as u16).to_be_bytes();
    let mut data = vec![0, cdb[2], length[0], length[1]];
    data.extend_from_slice(&content);
    Ok(data)
}

fn standard(config: &LunConfig) -> Vec<u8> {
    // Direct access block device, SPC-4, response format 2, command queueing.
    let mut data = vec![0, 0, 0x06, 0x02, 91, 0, 0, 0x02];
    data.extend_from_slice(&padded(&config.identity.vendor, 8));
    data.extend_from_slice(&padded(&config.identity.product, 16));
    data.extend_from_slice(&padded(&config.identity.revision, 4));
    data.resize(58, 0);
    // Version descriptors, no version claimed: SAM-5, iSCSI, SPC-4, SBC-3 (SPC-4, table 147).
    for descriptor in [0x00a0_u16, 0x0960, 0x0460, 0x04c0] {
        data.extend_from_slice(&descriptor.to_be_bytes());
    }
    data.resize(96, 0);
    data
}

/// Of a unit that is not there: qualifier 3, type 1Fh.
pub(super) fn absent() -> Vec<u8> {
    let mut data = vec![0; 96];
    (data[0], data[2], data[3], data[4]) = (0x7f, 0x06, 0x02, 91);
    data
}

fn identification(config: &LunConfig) -> Vec<u8> {
    let identity = &config.identity;
    let mut data = Vec::new();
    let mut designator = |code: u8, kind: u8, bytes: &[u8]| {
        data.extend_from_slice(&[code, kind, 0, bytes.len() as u8]);
        data.extend_from_slice(bytes);
    };
    // Locally assigned NAA (3): 60 bits of a hash of the serial number (FNV-1a), the same whenever the unit is.
    let hash = identity
        .serial
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    designator(1, 0x03, &(hash >> 4 | 3 << 60).to_be_bytes());
    let mut vendor = padded(&identity.vendor, 8);
    vendor.extend_from_slice(&padded(&identity.serial, identity.serial.len().min(36)));
    designator(2, 0x01, &vendor);
    // The target port: its SCSI name over iSCSI (5), and its relative number.
    let mut name = identity.target.as_bytes()[..identity.target.len().min(223)].to_vec();
    name.extend_from_slice(b",t,0x0001\0");
    name.resize(name.len().next_multiple_of(4), 0);
    designator(0x53, 0x98, &name);
    designator(0x51, 0x94, &[0, 0, 0, 1]);
    data
}

fn limits(config: &LunConfig) -> Vec<u8> {
    let mut page = vec![0; 60];
    let most = MAX_TRANSFER_BYTES / config.geometry.block_bytes;
    // WSNZ: WRITE SAME of no blocks does not mean all.
    page[0] = 1;
    page[1] = MAX_COMPARE_BLOCKS;
    page[4..8].copy_from_slice(&most.to_be_bytes());
    page[8..12].copy_from_slice(&(most / 16).to_be_bytes());
    if config.thin {
        let granularity = config.geometry.physical_bytes / config.geometry.block_bytes;
        page[16..20].copy_from_slice(&MAX_UNMAP_BLOCKS.to_be_bytes());
        page[20..24].copy_from_slice(&MAX_UNMAP_RANGES.to_be_bytes());
        page[24..28].copy_from_slice(&granularity.to_be_bytes());
    }
    page[32..40].copy_from_slice(&u64::from(most).to_be_bytes());
    page
}
