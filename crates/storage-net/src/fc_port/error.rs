//! Reasons for which a port cannot do what it was asked for.

use std::io;
use wire::fc::FcId;

/// A reason.
#[derive(Debug, thiserror::Error)]
pub enum FcPortError {
    /// The caller's stop.
    #[error("stopped")]
    Stopped,
    /// The interface or socket.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// No forwarder.
    #[error("no forwarder (FCF) answers: is the gateway running, and is this its Ethernet and VLAN?")]
    NoForwarder,
    /// The fabric's refusal, or its silence.
    #[error("the fabric does not let the port in: {0}")]
    NotLoggedIn(&'static str),
    /// The login ended.
    #[error("the login with the fabric ended: {0}")]
    Offline(&'static str),
    /// The name server.
    #[error("the name server does not answer")]
    NoDirectory,
    /// Another port's refusal, or its silence.
    #[error("{0} does not let this port log in: {1}")]
    Refused(FcId, &'static str),
    /// The end of a login with another port.
    #[error("the login with {0} ended: {1}")]
    PeerDown(FcId, &'static str),
    /// The load.
    #[error("{0}")]
    WrongLoad(#[from] storage::fc::generator::WrongSettings),
}
