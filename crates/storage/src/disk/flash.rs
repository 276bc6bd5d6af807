//! A simple SSD: dies behind channels behind a host interface.
//!
//! A request is cut into flash pages, dealt over the dies in turn by their address. A read occupies its die for the
//! sensing time, then its channel and the host interface for the transfer; a write the host interface, the channel,
//! then its die for the programming time. There is no garbage collection, no wear, no cache and no translation: what a
//! drive does after its spare blocks are used up is not modelled.

use super::drive::Extent;
use crate::trace::Kind;

/// Description of an SSD. Times in ns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlashSpec {
    /// Its name for users.
    pub name: String,
    /// Capacity in blocks of 512 bytes.
    pub blocks: u64,
    /// Channels.
    pub channels: usize,
    /// Dies on each.
    pub dies: usize,
    /// Blocks of 512 bytes per page; above zero.
    pub page_blocks: u64,
    /// Sensing a page.
    pub read_ns: u64,
    /// Programming a page.
    pub program_ns: u64,
    /// A block's 512 bytes over a channel, 2^-10 ns.
    pub channel_block: u64,
    /// The same over the host interface.
    pub host_block: u64,
    /// Per command.
    pub command_ns: u64,
    /// Commands that are worked on at once; others wait in the host.
    pub queue_depth: usize,
}

impl FlashSpec {
    /// The SSD of MQSim's default configuration (Tavakkol et al., FAST 2018): 8 channels of 4 chips of 2 dies, 8 KiB
    /// pages of MLC flash, 75 us to sense, 750 us to program, NV-DDR2 at 333 MT/s and one byte, PCIe of four lanes of
    /// 1 GB/s. Taken here: 960 GB, and 256 commands at once.
    pub fn nvme() -> FlashSpec {
        FlashSpec {
            name: "nvme".to_owned(),
            blocks: 960_000_000_000 / 512,
            channels: 8,
            dies: 8,
            page_blocks: 16,
            read_ns: 75_000,
            program_ns: 750_000,
            // 512 bytes at 333 MB/s: 1537.5 ns; at 4 GB/s: 128 ns.
            channel_block: 512 * 1024 * 1000 / 333,
            host_block: 128 * 1024,
            command_ns: 0,
            queue_depth: 256,
        }
    }
}

/// An SSD and what its parts are busy with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flash {
    spec: FlashSpec,
    /// Time at which each die is free, channel by channel.
    dies: Vec<u64>,
    channels: Vec<u64>,
    host: u64,
}

impl Flash {
    /// An SSD at rest.
    pub fn new(spec: FlashSpec) -> Flash {
        let dies = vec![0; spec.channels * spec.dies];
        Flash { dies, channels: vec![0; spec.channels], host: 0, spec }
    }

    /// The description of the SSD.
    pub fn spec(&self) -> &FlashSpec {
        &self.spec
    }

    /// Serves a request that is taken at `now`, which never goes back; returns when it is completed. Costs as many
    /// steps as there are pages.
    pub fn serve(&mut self, now: u64, extent: Extent) -> u64 {
        let spec = &self.spec;
        let begin = now + spec.command_ns;
        let end = extent.block + extent.blocks;
        let (mut block, mut done) = (extent.block, begin);
        while block < end {
            let page = block / spec.page_blocks;
            let until = ((page + 1) * spec.page_blocks).min(end);
            // Neighbouring pages lie on different channels, so that a large request uses them all.
            let channel = (page % spec.channels as u64) as usize;
            let die = channel * spec.dies + (page / spec.channels as u64 % spec.dies as u64) as usize;
            let over_channel = ((until - block) * spec.channel_block) >> 10;
            let over_host = ((until - block) * spec.host_block) >> 10;
            let finished = match extent.kind {
                Kind::Read => {
                    let sensed = begin.max(self.dies[die]) + spec.read_ns;
                    let moved = sensed.max(self.channels[channel]) + over_channel;
                    // The page register is taken until its data is on the channel.
                    self.dies[die] = moved;
                    self.channels[channel] = moved;
                    self.host = self.host.max(moved) + over_host;
                    self.host
                }
                Kind::Write => {
                    self.host = self.host.max(begin) + over_host;
                    let moved = self.host.max(self.channels[channel]).max(self.dies[die]) + over_channel;
                    self.channels[channel] = moved;
                    self.dies[die] = moved + spec.program_ns;
                    self.dies[die]
                }
            };
            done = done.max(finished);
            block = until;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(kind: Kind, block: u64, blocks: u64) -> Extent {
        Extent { block, blocks, kind }
    }

    #[test]
    fn a_page_takes_sensing_and_transfers_and_dies_work_at_once() {
        let mut flash = Flash::new(FlashSpec::nvme());
        // 75 us, 16 blocks at 1537.5 ns over the channel, at 128 ns to the host.
        let alone = flash.serve(0, one(Kind::Read, 0, 16));
        assert_eq!(alone, 75_000 + ((16 * 1_574_450) >> 10) + 16 * 128);
        // The next page lies on another channel: only the host interface is shared.
        let other = flash.serve(0, one(Kind::Read, 16, 16));
        assert_eq!(other, alone + 16 * 128);
        // The same die: after the first.
        let same = flash.serve(0, one(Kind::Read, 64 * 16, 16));
        assert!(same > 2 * 75_000, "{same}");
        let write = flash.serve(1_000_000, one(Kind::Write, 32, 16));
        assert!((1_750_000..1_800_000).contains(&write), "{write}");
    }

    #[test]
    fn many_small_reads_reach_what_the_dies_can() {
        // 64 dies, 75 us and 24.6 us each: at most 64 / 99.6 us = 643,000 a second; the channels allow 8 / 24.6 us =
        // 325,000.
        let mut flash = Flash::new(FlashSpec::nvme());
        let done =
            (0..100_000u64).map(|i| flash.serve(0, one(Kind::Read, (i * 7919 % 1_000_000) * 16, 16))).max().unwrap();
        let rate = 100_000.0 / (done as f64 / 1e9);
        assert!((250_000.0..326_000.0).contains(&rate), "{rate}");
    }
}
