//! Capture files in the pcapng format (draft-ietf-opsawg-pcapng): one section, an interface of raw IP packets or of
//! Ethernet frames, others of Fibre Channel frames beside it, times in ns.

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::{DataLink, Endianness, PcapError};
// A length of time; core has no clock.
use core::time::Duration;
use std::borrow::Cow;
use std::io::{self, Write};

/// Option if_tsresol of an interface: times are in 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Writes a capture, little-endian on every machine.
pub struct Writer<W: Write> {
    inner: PcapNgWriter<W>,
    interfaces: u32,
}

/// An interface of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface(u32);

impl<W: Write> Writer<W> {
    /// Begins a capture of IPv4 packets on `out`, best a buffered one.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W) -> io::Result<Writer<W>> {
        Writer::of(DataLink::IPV4, out)
    }

    /// Begins a capture of IPv4 and IPv6 packets on `out`, which their first bits tell apart.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn of_both_ip(out: W) -> io::Result<Writer<W>> {
        Writer::of(DataLink::RAW, out)
    }

    /// Begins a capture of Ethernet frames on `out`, best a buffered one.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn of_ethernet(out: W) -> io::Result<Writer<W>> {
        Writer::of(DataLink::ETHERNET, out)
    }

    fn of(linktype: DataLink, out: W) -> io::Result<Writer<W>> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed("elephan"))],
            ..SectionHeaderBlock::default()
        };
        let inner = PcapNgWriter::with_section_header(out, section).map_err(io_error)?;
        let mut writer = Writer { inner, interfaces: 0 };
        writer.add(linktype, "sim")?;
        Ok(writer)
    }

    fn add(&mut self, linktype: DataLink, name: &str) -> io::Result<Interface> {
        let description = InterfaceDescriptionBlock {
            linktype,
            // No limit on captured bytes.
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        self.inner.write_pcapng_block(description).map_err(io_error)?;
        self.interfaces += 1;
        Ok(Interface(self.interfaces - 1))
    }

    /// Adds an interface of Fibre Channel frames as [`crate::fc::Frame::encode_delimited`] writes them.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn add_fibre_channel(&mut self, name: &str) -> io::Result<Interface> {
        self.add(DataLink::FC_2_WITH_FRAME_DELIMS, name)
    }

    /// Adds a packet of `original_bytes`, of which `captured` is the beginning, seen at `time_ns`.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn write_packet(&mut self, time_ns: u64, captured: &[u8], original_bytes: u32) -> io::Result<()> {
        self.write_packet_at(Interface(0), time_ns, captured, original_bytes)
    }

    /// Adds a packet as [`Writer::write_packet`] does, at `interface`.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn write_packet_at(
        &mut self,
        interface: Interface,
        time_ns: u64,
        captured: &[u8],
        original_bytes: u32,
    ) -> io::Result<()> {
        let packet = EnhancedPacketBlock {
            interface_id: interface.0,
            timestamp: Duration::from_nanos(time_ns),
            original_len: original_bytes.max(captured.len() as u32),
            data: Cow::Borrowed(captured),
            options: vec![],
        };
        self.inner.write_pcapng_block(packet).map(drop).map_err(io_error)
    }

    /// Flushes, and gives the writer back.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn finish(self) -> io::Result<W> {
        let mut out = self.inner.into_inner();
        out.flush()?;
        Ok(out)
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcapng::{Block, PcapNgReader};

    #[test]
    fn what_is_written_reads_back() {
        let packets = [(0, vec![0x45; 40], 1500), (u64::MAX, vec![0x45; 41], 41), (1 << 40, vec![], 7)];
        let mut writer = Writer::new(Vec::new()).unwrap();
        for (time, bytes, original) in &packets {
            writer.write_packet(*time, bytes, *original).unwrap();
        }
        let file = writer.finish().unwrap();
        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let mut read = vec![];
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.unwrap().into_owned() {
                read.push((packet.timestamp.as_nanos() as u64, packet.data.into_owned(), packet.original_len));
            }
        }
        assert_eq!(read, packets);
    }

    #[test]
    fn a_capture_begins_with_its_section_and_an_interface_of_ipv4_in_ns() {
        let file = Writer::new(Vec::new()).unwrap().finish().unwrap();
        // Section header: type, 44 bytes, byte order, 1.0, length not given, shb_userappl, end of options, 44 bytes.
        let section = b"\x0a\x0d\x0d\x0a\x2c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\
            \x04\0\x07\0elephan\0\0\0\0\0\x2c\0\0\0";
        // Interface description: type, 40 bytes, LINKTYPE_IPV4, no limit, if_name, if_tsresol, end, 40 bytes.
        let interface =
            b"\x01\0\0\0\x28\0\0\0\xe4\0\0\0\0\0\0\0\x02\0\x03\0sim\0\x09\0\x01\0\x09\0\0\0\0\0\0\0\x28\0\0\0";
        assert_eq!(file, [&section[..], &interface[..]].concat());
    }
}
