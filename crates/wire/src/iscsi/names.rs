//! Numbers with a name (RFC 7143, sections 11.5, 11.6, 11.13 and 11.17; 11.2.1.8 and 15).

/// A task tag that stands for none.
pub const NO_TAG: u32 = 0xffff_ffff;
/// The port that IANA gave to iSCSI.
pub const PORT: u16 = 3260;

/// Task management functions.
pub mod task {
    /// One task.
    pub const ABORT_TASK: u8 = 1;
    /// All tasks of this session on a logical unit.
    pub const ABORT_TASK_SET: u8 = 2;
    /// Auto contingent allegiance.
    pub const CLEAR_ACA: u8 = 3;
    /// All tasks on a logical unit.
    pub const CLEAR_TASK_SET: u8 = 4;
    /// A logical unit.
    pub const LOGICAL_UNIT_RESET: u8 = 5;
    /// All logical units.
    pub const TARGET_WARM_RESET: u8 = 6;
    /// All logical units, and the connections are closed.
    pub const TARGET_COLD_RESET: u8 = 7;
    /// A task goes on over another connection.
    pub const TASK_REASSIGN: u8 = 8;
}

/// Responses to task management functions.
pub mod task_response {
    /// Done.
    pub const COMPLETE: u8 = 0;
    /// There is no such task.
    pub const NO_TASK: u8 = 1;
    /// There is no such logical unit.
    pub const NO_LUN: u8 = 2;
    /// Tasks cannot be reassigned.
    pub const NO_REASSIGNMENT: u8 = 4;
    /// Not known here.
    pub const NOT_SUPPORTED: u8 = 5;
    /// Rejected.
    pub const REJECTED: u8 = 255;
}

/// Reason for which a PDU was rejected.
pub mod reject {
    /// The data digest does not match.
    pub const DATA_DIGEST: u8 = 2;
    /// SNACK.
    pub const SNACK: u8 = 3;
    /// Against the protocol.
    pub const PROTOCOL: u8 = 4;
    /// The command is not known here.
    pub const NOT_SUPPORTED: u8 = 5;
    /// More immediate commands than the target takes.
    pub const TOO_MANY_IMMEDIATE: u8 = 6;
    /// The tag is in use.
    pub const TASK_IN_PROGRESS: u8 = 7;
    /// A field of the PDU is wrong.
    pub const INVALID_FIELD: u8 = 9;
    /// Out of resources for a long text.
    pub const LONG_OPERATION: u8 = 10;
}

/// Class and detail of a login's status.
pub mod login_status {
    /// Going on, or done.
    pub const SUCCESS: (u8, u8) = (0, 0);
    /// The initiator did something wrong.
    pub const INITIATOR_ERROR: (u8, u8) = (2, 0);
    /// The initiator did not prove its identity.
    pub const AUTHENTICATION: (u8, u8) = (2, 1);
    /// Not allowed here.
    pub const AUTHORIZATION: (u8, u8) = (2, 2);
    /// There is no such target.
    pub const NOT_FOUND: (u8, u8) = (2, 3);
    /// The version is not known here.
    pub const VERSION: (u8, u8) = (2, 5);
    /// The session has all the connections that it may have.
    pub const TOO_MANY_CONNECTIONS: (u8, u8) = (2, 6);
    /// A parameter that the stage needs is missing.
    pub const MISSING_PARAMETER: (u8, u8) = (2, 7);
    /// The connection cannot be part of the session.
    pub const CANNOT_INCLUDE: (u8, u8) = (2, 8);
    /// The type of session is not known here.
    pub const SESSION_TYPE: (u8, u8) = (2, 9);
    /// There is no such session.
    pub const NO_SESSION: (u8, u8) = (2, 10);
    /// Not to be sent during login.
    pub const INVALID_DURING_LOGIN: (u8, u8) = (2, 11);
    /// The target has a fault.
    pub const TARGET_ERROR: (u8, u8) = (3, 0);
    /// The target has no room for another session.
    pub const OUT_OF_RESOURCES: (u8, u8) = (3, 2);
}
