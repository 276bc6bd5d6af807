//! Needs of the engine from a transport: blocking halves, a way to close from another thread, and facts.

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// A connection that can be used: encrypted where it should be. The token has not been looked at yet.
pub struct Connection {
    /// Blocks until a byte or the end comes. Each half is used by one thread.
    pub reader: Box<dyn Read + Send>,
    /// Blocks while the window is full. `flush` hands everything to the transport.
    pub writer: Box<dyn Write + Send>,
    /// For other threads.
    pub handle: Arc<dyn Handle>,
}

/// Handle of a connection for other threads, while its halves are at work.
pub trait Handle: Send + Sync {
    /// Ends it at once: blocked calls of both halves return soon, with an error or the end. More than once is allowed.
    fn close(&self);
    /// The same for a peer that has not shown the token: the transport keeps nothing of the connection.
    fn abort(&self) {
        self.close();
    }
    /// The other end has shown the token: from now on it may send as much as the transport takes.
    fn trust(&self) {}
    /// False: the other end has closed it or it is lost. A sender that has nothing to write does not learn it
    /// otherwise.
    fn is_open(&self) -> bool;
    /// State of the transport; absent members where it does not tell.
    fn facts(&self) -> StreamFacts;
    /// Sends at most so many bytes per second from now on; None: no limit. False: this transport cannot.
    fn pace(&self, bytes_per_s: Option<u64>) -> bool;
}

/// State of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamFacts {
    /// Smoothed RTT, s.
    pub rtt_s: Option<f64>,
    /// Congestion window, bytes.
    pub window_bytes: Option<u64>,
    /// Packets sent again.
    pub retransmitted: Option<u64>,
}

/// Somebody at the port. The handshake is done by `accept`, in a thread of its own: a slow peer delays no other.
pub trait Incoming: Send {
    /// Address of the other end.
    fn peer(&self) -> IpAddr;
    /// Closes it from another thread, during the handshake too.
    fn handle(&self) -> Arc<dyn Handle>;
    /// Handshake, within `wait`.
    ///
    /// # Errors
    /// `InvalidData`: the peer does not speak TLS as it should. Others: it is late, has closed, or the network failed.
    fn accept(self: Box<Self>, wait: Duration) -> io::Result<Connection>;
}

/// The side that is connected to.
pub trait Listener: Send + Sync {
    /// Port of TCP or UDP.
    fn port(&self) -> u16;
    /// Waits for the next connection, at most `wait`; None: nobody came.
    ///
    /// # Errors
    /// Those of the socket; the listener is useless then.
    fn next(&self, wait: Duration) -> io::Result<Option<Box<dyn Incoming>>>;
}

/// The side that connects.
pub trait Dialer: Send + Sync {
    /// Connects, with the handshake, within `wait`.
    ///
    /// # Errors
    /// `InvalidData`: the other end has another certificate. Others: network.
    fn connect(&self, wait: Duration) -> io::Result<Connection>;
}
