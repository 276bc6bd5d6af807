//! Methods by which frames pass between the process and an interface.

/// A method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Memory that the interface's driver works on, or copies to and from (AF_XDP).
    AfXdp,
    /// Rings of a packet socket that the kernel shares (packet(7), PACKET_RX_RING and PACKET_TX_RING).
    PacketMmap,
}

impl Method {
    /// All of them, the best first.
    pub const ALL: [Method; 2] = [Method::AfXdp, Method::PacketMmap];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Method::AfXdp => "af-xdp",
            Method::PacketMmap => "packet-mmap",
        }
    }

    /// The method of a name.
    pub fn of(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }
}
