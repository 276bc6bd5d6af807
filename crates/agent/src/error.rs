//! Errors as the front reads them: a kind, and one line.

use serde::Serialize;
use std::fmt::Display;

/// Exit code of a process that was called or spoken to wrongly.
pub const WRONG: u8 = 2;

/// Kind of an error; docs/design/agent.md lists them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The bytes are no frame, or the frame is no request.
    Protocol,
    /// Another protocol than this agent's.
    Version,
    /// The request asks for what cannot be.
    Input,
    /// Something else is being done.
    Busy,
    /// This process may not do it.
    Rights,
    /// No port can be bound.
    Port,
    /// The other agent does not answer, or has gone.
    Peer,
    /// The other host shows wrong tokens.
    Token,
    /// The path became worse than the front allows.
    Harm,
    /// The front asked to stop.
    Stopped,
    /// The disk is full.
    Full,
    /// The kernel refused something.
    Kernel,
}

/// Reason that a request was not fulfilled.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AgentError {
    /// See [`Kind`].
    pub kind: Kind,
    /// One line.
    pub text: String,
}

impl AgentError {
    /// An error of `kind` with `text`, as one line.
    pub fn new(kind: Kind, text: impl Display) -> AgentError {
        let text = text.to_string();
        AgentError { kind, text: text.split_whitespace().collect::<Vec<_>>().join(" ") }
    }

    /// The request's fault.
    pub fn input(text: impl Display) -> AgentError {
        AgentError::new(Kind::Input, text)
    }

    /// Something else is being done.
    pub fn busy(text: impl Display) -> AgentError {
        AgentError::new(Kind::Busy, text)
    }

    /// This process may not do it.
    pub fn rights(text: impl Display) -> AgentError {
        AgentError::new(Kind::Rights, text)
    }

    /// The kernel's refusal of `what`.
    pub fn kernel(what: &str, error: impl Display) -> AgentError {
        AgentError::new(Kind::Kernel, format_args!("{what}: {error}"))
    }
}
