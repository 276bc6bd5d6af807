//! Ways to Ethernet: an interface, or a UNIX datagram socket on which each datagram is a frame.

mod attachment;
mod batch;
mod config;
mod datagram_socket;
mod mac;
mod packet_filter;
mod packet_socket;

pub(crate) use attachment::{Attachment, Losses};
pub use config::AttachmentConfig;
pub(crate) use mac::Mac;
pub(crate) use packet_socket::Interface;
