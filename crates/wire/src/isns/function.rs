//! Functions of messages (RFC 4171, 4.1.3 and 5.6.5) and the status of responses (5.4).

use std::fmt;

/// Function of a message. Responses are those of the requests with the leading bit set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Function(pub u16);

impl Function {
    /// DevAttrReg: registers objects.
    pub const REGISTER: Function = Function(0x0001);
    /// DevAttrQry: asks for attributes.
    pub const QUERY: Function = Function(0x0002);
    /// DevGetNext: asks for the next object.
    pub const GET_NEXT: Function = Function(0x0003);
    /// DevDereg: takes objects away.
    pub const DEREGISTER: Function = Function(0x0004);
    /// SCNReg: asks for notifications.
    pub const REGISTER_CHANGES: Function = Function(0x0005);
    /// SCNDereg: wants no notifications any more.
    pub const DEREGISTER_CHANGES: Function = Function(0x0006);
    /// SCN: a notification.
    pub const CHANGE: Function = Function(0x0008);
    /// ESI: the server asks for a sign of life.
    pub const STATUS_INQUIRY: Function = Function(0x000d);
    /// Heartbeat of a server, to a group.
    pub const HEARTBEAT: Function = Function(0x000e);
    const RESPONSE: u16 = 0x8000;

    /// True for the function of a response.
    pub const fn is_response(self) -> bool {
        self.0 & Function::RESPONSE != 0
    }

    /// The function of the response to a request.
    pub const fn response(self) -> Function {
        Function(self.0 | Function::RESPONSE)
    }
}

/// Status of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status(pub u32);

impl Status {
    /// Done.
    pub const SUCCESS: Status = Status(0);
    /// The message is malformed.
    pub const FORMAT_ERROR: Status = Status(2);
    /// The registration contradicts itself or what is registered.
    pub const INVALID_REGISTRATION: Status = Status(3);
    /// The source of the request is not registered.
    pub const SOURCE_UNKNOWN: Status = Status(6);
    /// The source of the request may not do that.
    pub const SOURCE_UNAUTHORIZED: Status = Status(8);
    /// There is no such entry.
    pub const NO_SUCH_ENTRY: Status = Status(9);
    /// The server does not know the function.
    pub const NOT_SUPPORTED: Status = Status(15);
    /// The server sends no notifications to this client.
    pub const CHANGES_REJECTED: Status = Status(17);
}

/// Descriptions of codes 0 to 23 (5.4).
const DESCRIPTIONS: [&str; 24] = [
    "successful",
    "unknown error",
    "message format error",
    "invalid registration",
    "reserved",
    "invalid query",
    "source unknown",
    "source absent",
    "source unauthorized",
    "no such entry",
    "version not supported",
    "internal error",
    "busy",
    "option not understood",
    "invalid update",
    "message not supported",
    "SCN event rejected",
    "SCN registration rejected",
    "attribute not implemented",
    "FC_DOMAIN_ID not available",
    "FC_DOMAIN_ID not allocated",
    "ESI not available",
    "invalid deregistration",
    "registration feature not supported",
];

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0).ok().and_then(|code| DESCRIPTIONS.get(code)) {
            Some(description) => f.write_str(description),
            None => write!(f, "status {}", self.0),
        }
    }
}
