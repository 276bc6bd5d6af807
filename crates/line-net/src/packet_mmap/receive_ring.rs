//! A ring of blocks of frames (TPACKET_V3).

use crate::frame::Frame;
use crate::map::Map;
use crate::socket::{get, set};
use std::io;
use std::mem::{offset_of, size_of, zeroed};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

const BLOCK_BYTES: usize = 1 << 20;
/// 64 MiB: what 10 Gbit/s brings in 50 ms, in which this process may have to wait for a processor.
const BLOCKS: usize = 64;
/// Bound on a frame, for the kernel's checks alone: blocks are filled without gaps.
const FRAME_BYTES: usize = 1 << 14;
/// Time after which the kernel hands over a block that is not full, ms: the least that it has.
const RETIRE_MS: u32 = 1;

/// The ring.
#[derive(Debug)]
pub(super) struct ReceiveRing {
    // Before the descriptor, so that it is unmapped first.
    map: Map,
    fd: OwnedFd,
    next: usize,
    drops: u64,
}

impl ReceiveRing {
    /// A ring of a socket that is not bound yet.
    pub fn new(fd: OwnedFd) -> io::Result<ReceiveRing> {
        set(&fd, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as libc::c_int))?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: (BLOCK_BYTES / FRAME_BYTES * BLOCKS) as u32,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        set(&fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
        let map = Map::of(&fd, BLOCK_BYTES * BLOCKS, 0)?;
        Ok(ReceiveRing { map, fd, next: 0, drops: 0 })
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Hands the frames of the next block to `take`, and gives it back; returns their number.
    pub fn receive(&mut self, mut take: impl FnMut(Frame<'_>)) -> usize {
        /// Offset of the first part of a block's header, which holds what follows.
        const HEADER: usize = offset_of!(libc::tpacket_block_desc, hdr);
        let block = self.next * BLOCK_BYTES;
        let status = self.map.word(block + HEADER + offset_of!(libc::tpacket_hdr_v1, block_status));
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return 0;
        }
        // SAFETY: the kernel has filled the header in, and the block is this process's until its status says else.
        let header: libc::tpacket_hdr_v1 = unsafe {
            self.map.at(block + HEADER, size_of::<libc::tpacket_hdr_v1>()).cast::<libc::tpacket_hdr_v1>().read()
        };
        let mut at = block + header.offset_to_first_pkt as usize;
        for _ in 0..header.num_pkts {
            // SAFETY: as above; the kernel aligns each frame's header.
            let frame: libc::tpacket3_hdr =
                unsafe { self.map.at(at, size_of::<libc::tpacket3_hdr>()).cast::<libc::tpacket3_hdr>().read() };
            let tag = (frame.tp_status & libc::TP_STATUS_VLAN_VALID != 0).then_some(frame.hv1.tp_vlan_tci as u16);
            let bytes = self.map.bytes(at + usize::from(frame.tp_mac), frame.tp_snaplen as usize);
            let at_ns = u64::from(frame.tp_sec) * 1_000_000_000 + u64::from(frame.tp_nsec);
            take(Frame { bytes, tag, at_ns });
            at += frame.tp_next_offset as usize;
        }
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        header.num_pkts as usize
    }

    /// Frames that did not fit, since the ring was made.
    pub fn drops(&mut self) -> u64 {
        // SAFETY: the structure has no invalid bit pattern.
        let none: libc::tpacket_stats_v3 = unsafe { zeroed() };
        // The kernel begins anew with each call.
        if let Ok(statistics) = get(&self.fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, none) {
            self.drops += u64::from(statistics.tp_drops);
        }
        self.drops
    }
}
