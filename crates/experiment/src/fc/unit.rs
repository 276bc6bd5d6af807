//! Content of a connection between gateways.

use super::carried::Carried;

/// A message.
pub enum Unit {
    /// The gateway that connected asks for the session: CBIND, or FCIP's special frame.
    Open,
    /// The other grants it: the response to CBIND, or the special frame's echo.
    Opened,
    /// A frame of a pair.
    Frame(usize, Carried),
}
