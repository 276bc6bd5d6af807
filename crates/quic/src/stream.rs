//! One connection with one stream of bytes each way, for threads that block.

use crate::control::Shown;
use crate::runtime::{Lingering, Shared};
use quinn::{Connection, ConnectionError, Endpoint, ReadError, RecvStream, SendStream, VarInt, WriteError};
use std::fmt;
use std::future::{poll_fn, Future};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Notify;

/// First byte from the end that connects: without one the other end would not hear of the stream.
pub(crate) const GREETING: u8 = b'E';
/// Most bytes that one call hands over: quinn keeps them as one piece.
const MOST_AT_ONCE: usize = 1 << 20;
/// Application's error codes in CONNECTION_CLOSE.
const DONE: VarInt = VarInt::from_u32(0);
const SHUT_DOWN: VarInt = VarInt::from_u32(1);
/// Least time for the packet that ends the connection.
const LAST: Duration = Duration::from_millis(20);
/// Time for the last packets when nobody waits any more.
const LINGER: Duration = Duration::from_secs(5);

/// A connection with one stream of bytes each way.
pub struct QuicStream {
    reader: QuicReader,
    writer: QuicWriter,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Congestion window, bytes.
    pub window_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets judged lost; their content was sent again.
    pub lost_packets: u64,
    /// Bytes of these.
    pub lost_bytes: u64,
    /// UDP payload of the largest packets, bytes.
    pub payload_bytes: u16,
}

/// The half that reads.
pub struct QuicReader {
    recv: RecvStream,
    inner: Arc<Inner>,
}

/// The half that writes. Dropped, it ends the stream after what was written; so does [`QuicWriter::finish`], which
/// waits.
pub struct QuicWriter {
    /// Taken when it is dropped.
    send: Option<SendStream>,
    inner: Arc<Inner>,
}

/// Another thread's hold on a stream.
#[derive(Clone)]
pub struct QuicHandle {
    inner: Arc<Inner>,
}

struct Inner {
    connection: Connection,
    endpoint: Endpoint,
    shown: Arc<Shown>,
    window: VarInt,
    runtime: Arc<Shared>,
    /// Left by the writer: its data may still be on its way.
    last: Mutex<Option<SendStream>>,
    is_shut: AtomicBool,
    shut: Notify,
}

impl Inner {
    /// Blocks on `operation` until the stream is shut down.
    fn block_on<T>(&self, operation: impl Future<Output = T>) -> io::Result<T> {
        let refused = || Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, "shut down")));
        self.runtime.handle().block_on(async {
            let mut operation = pin!(operation);
            // Made before the look at `is_shut`: it hears of what comes after.
            let mut shut = pin!(self.shut.notified());
            poll_fn(|context| {
                if self.is_shut.load(Ordering::Acquire) {
                    return refused();
                }
                if let Poll::Ready(result) = operation.as_mut().poll(context) {
                    return Poll::Ready(Ok(result));
                }
                if shut.as_mut().poll(context).is_ready() {
                    return refused();
                }
                Poll::Pending
            })
            .await
        })
    }
}

impl QuicStream {
    pub(crate) fn new(
        runtime: Arc<Shared>,
        endpoint: Endpoint,
        connection: Connection,
        (send, recv): (SendStream, RecvStream),
        (shown, window): (Arc<Shown>, VarInt),
    ) -> QuicStream {
        let last = Mutex::new(None);
        let (is_shut, shut) = (AtomicBool::new(false), Notify::new());
        let inner = Arc::new(Inner { connection, endpoint, shown, window, runtime, last, is_shut, shut });
        QuicStream { reader: QuicReader { recv, inner: inner.clone() }, writer: QuicWriter { send: Some(send), inner } }
    }

    /// The two halves, for a thread each.
    pub fn split(self) -> (QuicReader, QuicWriter) {
        (self.reader, self.writer)
    }

    /// A hold on the stream for another thread.
    pub fn handle(&self) -> QuicHandle {
        QuicHandle { inner: self.reader.inner.clone() }
    }
}

impl Read for QuicStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buf)
    }
}

impl Write for QuicStream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.writer.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl QuicHandle {
    /// Ends the stream at once, in both directions, as shutdown(2) does: calls that are blocked and those that come
    /// return with an error. What was written before still arrives if that takes some seconds at most.
    pub fn shutdown(&self) {
        self.inner.is_shut.store(true, Ordering::Release);
        self.inner.shut.notify_waiters();
        let connection = self.inner.connection.clone();
        self.inner.runtime.handle().spawn(async move {
            if tokio::time::timeout(LINGER, connection.closed()).await.is_err() {
                connection.close(SHUT_DOWN, b"shut down");
            }
        });
    }

    /// Closes the connection at once, without time for data that was written: the peer has not authenticated.
    pub fn abort(&self) {
        self.inner.is_shut.store(true, Ordering::Release);
        self.inner.shut.notify_waiters();
        self.inner.connection.close(SHUT_DOWN, b"");
    }

    /// Opens the flow control window to its full size: the peer has shown that it belongs here.
    pub fn trust(&self) {
        self.inner.connection.set_receive_window(self.inner.window);
    }

    /// False: it was shut down here, or its connection is closed or lost.
    pub fn is_open(&self) -> bool {
        !self.inner.is_shut.load(Ordering::Acquire) && self.inner.connection.close_reason().is_none()
    }

    /// Address of the other end.
    pub fn peer(&self) -> SocketAddr {
        self.inner.connection.remote_address()
    }

    /// State of the connection.
    pub fn facts(&self) -> Facts {
        let path = self.inner.connection.stats().path;
        Facts {
            rtt: path.rtt,
            window_bytes: self.inner.shown.window(),
            sent_packets: path.sent_packets,
            lost_packets: path.lost_packets,
            lost_bytes: path.lost_bytes,
            payload_bytes: path.current_mtu,
        }
    }

    /// State of the congestion control.
    pub fn control(&self) -> &Shown {
        &self.inner.shown
    }
}

impl QuicReader {
    /// A hold on the stream for another thread.
    pub fn handle(&self) -> QuicHandle {
        QuicHandle { inner: self.inner.clone() }
    }
}

impl Read for QuicReader {
    /// Blocks until there is something, the other end has ended its stream (0), or the connection is lost.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        match self.inner.block_on(self.recv.read(buf))? {
            Ok(read) => Ok(read.unwrap_or(0)),
            Err(ReadError::ConnectionLost(error)) => Err(lost(error)),
            Err(error) => Err(io::Error::new(io::ErrorKind::ConnectionReset, error)),
        }
    }
}

impl QuicWriter {
    /// A hold on the stream for another thread.
    pub fn handle(&self) -> QuicHandle {
        QuicHandle { inner: self.inner.clone() }
    }

    /// Ends this direction and waits until the other end has all of it.
    ///
    /// # Errors
    /// The connection is lost, or the other end wants no more.
    pub fn finish(&mut self) -> io::Result<()> {
        let reset = |error: String| io::Error::new(io::ErrorKind::ConnectionReset, error);
        let send = self.send.as_mut().expect("there until it is dropped");
        send.finish().map_err(|e| reset(e.to_string()))?;
        match self.inner.block_on(send.stopped())? {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(reset(format!("the other end stopped the stream: {code}"))),
            Err(quinn::StoppedError::ConnectionLost(error)) => Err(lost(error)),
            Err(error) => Err(reset(error.to_string())),
        }
    }
}

impl Write for QuicWriter {
    /// Blocks while the window is full. Returns how many bytes quinn took: they are not sent yet.
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let buf = &buf[..buf.len().min(MOST_AT_ONCE)];
        let send = self.send.as_mut().expect("there until it is dropped");
        match self.inner.block_on(send.write(buf))? {
            Ok(written) => Ok(written),
            Err(WriteError::ConnectionLost(error)) => Err(lost(error)),
            Err(error) => Err(io::Error::new(io::ErrorKind::ConnectionReset, error)),
        }
    }

    /// Does nothing: quinn sends what it has as the window allows.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for QuicWriter {
    fn drop(&mut self) {
        if let Some(mut send) = self.send.take() {
            // Refused if it has been finished, or the connection is lost.
            let _ = send.finish();
            *self.inner.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(send);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (connection, endpoint, runtime) = (self.connection.clone(), self.endpoint.clone(), self.runtime.clone());
        let lingering = Lingering::new();
        self.runtime.handle().spawn(async move {
            if let Some(send) = last {
                let _ = tokio::time::timeout(LINGER, send.stopped()).await;
            }
            connection.close(DONE, b"done");
            // The last packet goes out only while the threads are there, and once more if the other end still sends.
            let within = LAST.max(2 * connection.rtt()).min(LINGER);
            let _ = tokio::time::timeout(within, endpoint.wait_idle()).await;
            drop((runtime, lingering));
        });
    }
}

impl fmt::Debug for QuicStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle().fmt(f)
    }
}

impl fmt::Debug for QuicHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicStream").field("peer", &self.peer()).finish_non_exhaustive()
    }
}

fn lost(error: ConnectionError) -> io::Error {
    let kind = match error {
        ConnectionError::TimedOut => io::ErrorKind::TimedOut,
        ConnectionError::LocallyClosed => io::ErrorKind::ConnectionAborted,
        _ => io::ErrorKind::ConnectionReset,
    };
    io::Error::new(kind, error)
}
