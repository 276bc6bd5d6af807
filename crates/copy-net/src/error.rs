//! Reasons that a copy ended before it was done.

use std::fmt;

/// A copy that ended early; what is durable stays, and the same command goes on from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyError {
    /// Kind.
    pub kind: ErrorKind,
    /// One line.
    pub text: String,
}

/// Kinds, by what helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The specification, a path or an option is wrong: the user's to change.
    Input,
    /// The port cannot be bound.
    Port,
    /// The other end did not come, or has gone: another attempt may help.
    Peer,
    /// The other end refuses this end's token: it runs another copy.
    Token,
    /// The other end said what the protocol does not have.
    Protocol,
    /// The disk is full; the text says how much is needed.
    Full,
    /// This host refused something else.
    Io,
    /// Both ends are of the same copy elsewhere: another process has its journal.
    Busy,
    /// It was asked to.
    Stopped,
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for CopyError {}
