//! Reads PDUs from a socket. **Invariant: the data of a PDU has a buffer of its own, of its own size: keeping it keeps
//! nothing else in memory.**
//!
//! Headers and small PDUs go through a reused buffer; their data is copied. A large PDU gets a buffer of its length
//! once its header is complete, and the socket's bytes go straight into it.

use crate::buffer_pool::DataBuffer;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use wire::iscsi::{Framing, Header, IscsiError, Received, BHS_BYTES};

/// Bytes of the buffer for headers and small PDUs.
pub(crate) const BUFFER_BYTES: usize = 32 << 10;
/// A PDU beyond this is a large one, bytes: for smaller ones a copy costs less than a system call.
const LARGE: usize = 16 << 10;
/// Bytes read beyond a large PDU: the next header, and little data that has to be copied.
const BEYOND: usize = 4096;

/// Reads the PDUs of a connection.
#[derive(Debug, Default)]
pub(crate) struct PduReader {
    /// Empty until the first read; unprocessed bytes are `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// A large PDU that is incomplete.
    large: Option<DataBuffer>,
    /// Bytes to discard.
    skip: usize,
}

/// The next PDU.
pub(crate) enum NextPdu {
    /// A complete PDU.
    Complete(Received),
    /// The header of a large PDU, and its number of data bytes: [`PduReader::take`] or [`PduReader::skip`] it.
    LargeHeader(Header, u32),
    /// No complete PDU.
    Incomplete,
}

impl PduReader {
    /// Reads available bytes; 0 at the end of the stream.
    pub fn receive(&mut self, socket: &TcpStream) -> io::Result<usize> {
        self.buffer.resize(BUFFER_BYTES, 0);
        // Less than a small PDU.
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let (to, missing) = self.large.as_mut().map_or((std::ptr::null_mut(), 0), DataBuffer::spare);
        let spare = &mut self.buffer[self.end..];
        let beyond = if missing > 0 { spare.len().min(BEYOND) } else { spare.len() };
        let slices = [
            libc::iovec { iov_base: to.cast(), iov_len: missing },
            libc::iovec { iov_base: spare.as_mut_ptr().cast(), iov_len: beyond },
        ];
        // SAFETY: the slices cover writable bytes that only this call uses.
        let got = unsafe { libc::readv(socket.as_raw_fd(), slices.as_ptr(), 2) };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        let first = got.min(missing);
        if let Some(large) = &mut self.large {
            // SAFETY: the kernel wrote that many bytes.
            unsafe { large.fill(first) };
        }
        self.end += got - first;
        self.skip_now();
        Ok(got)
    }

    /// The next PDU, by the framing in force.
    ///
    /// # Errors
    /// As [`Framing::decode`].
    pub fn next(&mut self, framing: &Framing) -> Result<NextPdu, IscsiError> {
        if self.large.as_ref().is_some_and(|large| large.left() > 0) {
            return Ok(NextPdu::Incomplete);
        }
        if let Some(large) = self.large.take() {
            let frame = large.into_bytes();
            return Ok(framing.decode_frame(&frame)?.map_or(NextPdu::Incomplete, NextPdu::Complete));
        }
        let bytes = &self.buffer[self.start..self.end];
        if let Some((received, length)) = framing.decode_copy(bytes)? {
            self.start += length;
            return Ok(NextPdu::Complete(received));
        }
        let (Some(bhs), length) = (bytes.first_chunk::<BHS_BYTES>(), framing.needed(bytes)) else {
            return Ok(NextPdu::Incomplete);
        };
        // A header with a digest was checked when all of it is there.
        let head = BHS_BYTES + usize::from(bhs[4]) * 4 + if framing.header_digest { 4 } else { 0 };
        if length <= LARGE || bytes.len() < head {
            return Ok(NextPdu::Incomplete);
        }
        Ok(NextPdu::LargeHeader(Header::parse(bhs), u32::from_be_bytes([0, bhs[5], bhs[6], bhs[7]])))
    }

    /// Accepts the large PDU at the front.
    pub fn take(&mut self, framing: &Framing) {
        let bytes = &self.buffer[self.start..self.end];
        let mut frame = DataBuffer::new(framing.needed(bytes));
        // It is incomplete: all bytes here belong to it.
        frame.push(bytes);
        self.large = Some(frame);
        self.start = self.end;
    }

    /// Discards the large PDU at the front.
    pub fn skip(&mut self, framing: &Framing) {
        self.skip = framing.needed(&self.buffer[self.start..self.end]);
        self.skip_now();
    }

    fn skip_now(&mut self) {
        let here = self.skip.min(self.end - self.start);
        self.start += here;
        self.skip -= here;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use std::io::Write;
    use std::net::TcpListener;
    use wire::iscsi::{DataOut, Payload, Pdu};

    const FRAMING: Framing = Framing { header_digest: true, data_digest: true, max_data_bytes: 1 << 20 };

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn pdus_of_any_size_have_buffers_of_their_own_and_skipped_ones_none() {
        let sizes = [0, 5, 4096, 100_000, 65_536, 0, 16_300, 16_384, 300_000, 48, 20_000, 1, 200_000, 7];
        let (near, mut far) = pair();
        let sent: Vec<Pdu> = sizes
            .iter()
            .enumerate()
            .map(|(n, &size)| {
                let data: Vec<u8> = (0..size).map(|at| (at + n) as u8).collect();
                Pdu::with(DataOut { itt: n as u32, last: true, ..DataOut::default() }, data.into())
            })
            .collect();
        let mut bytes = BytesMut::new();
        sent.iter().for_each(|pdu| FRAMING.encode(pdu, &mut bytes));
        let writer = std::thread::spawn(move || far.write_all(&bytes).unwrap());
        let mut reader = PduReader::default();
        let (mut got, mut skipped) = (Vec::new(), Vec::new());
        while reader.receive(&near).unwrap() > 0 {
            loop {
                match reader.next(&FRAMING).unwrap() {
                    NextPdu::Complete(received) => {
                        assert!(received.intact);
                        assert!(matches!(received.pdu.data, Payload::Bytes(_)));
                        got.push(received.pdu);
                    }
                    NextPdu::LargeHeader(Header::DataOut(header), length) if header.itt % 4 == 0 => {
                        skipped.push((header.itt, length));
                        reader.skip(&FRAMING);
                    }
                    NextPdu::LargeHeader(..) => reader.take(&FRAMING),
                    NextPdu::Incomplete => break,
                }
            }
        }
        writer.join().unwrap();
        let wanted: Vec<&Pdu> =
            sent.iter().enumerate().filter(|(n, _)| ![4, 8, 12].contains(n)).map(|(_, pdu)| pdu).collect();
        assert_eq!(got.iter().collect::<Vec<_>>(), wanted);
        assert_eq!(skipped, [(4, 65_536), (8, 300_000), (12, 200_000)]);
    }
}
