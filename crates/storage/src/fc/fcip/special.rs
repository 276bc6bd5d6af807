//! The special frame: what opens a connection, and what closes it again (RFC 3821, 8.1.2.3 and 8.1.3).

use super::output::CloseReason;
use super::settings::Settings;
use wire::fc::Wwn;
use wire::fcip::SpecialFrame;

/// Reply to a special frame that a peer sent to open a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    /// It goes back as it came, and the connection is open.
    Echo,
    /// It goes back changed, and the connection is closed.
    Correct(SpecialFrame, CloseReason),
    /// The connection is closed.
    Refuse(CloseReason),
}

/// Checks the special frame of a peer. `last_nonce` is that of its last request, `entity` that of its open connections.
pub(super) fn reply_to(
    special: &SpecialFrame,
    settings: &Settings,
    last_nonce: Option<u64>,
    entity: Option<u64>,
) -> Reply {
    if special.changed {
        return Reply::Refuse(CloseReason::OutOfPlace);
    }
    if last_nonce == Some(special.nonce) {
        return Reply::Refuse(CloseReason::RepeatedNonce);
    }
    // The name of this end is for its peer alone.
    if special.source != settings.peer {
        return Reply::Refuse(CloseReason::WrongSource(special.source));
    }
    if let Some(entity) = entity.filter(|entity| *entity != special.entity) {
        return Reply::Refuse(CloseReason::OtherEntity(entity));
    }
    if special.destination != settings.own {
        let reason = CloseReason::WrongDestination(special.destination);
        if settings.tells_name {
            let corrected = SpecialFrame { destination: settings.own, changed: true, ..*special };
            return Reply::Correct(corrected, reason);
        }
        return Reply::Refuse(reason);
    }
    Reply::Echo
}

/// Compares an echo with what was sent, words 7 to 17.
///
/// # Errors
/// The reason to close the connection.
pub(super) fn check_echo(sent: &SpecialFrame, echo: &SpecialFrame) -> Result<(), CloseReason> {
    let same = SpecialFrame { changed: sent.changed, ..*echo } == *sent;
    if same && !echo.changed && echo.destination != Wwn(0) {
        return Ok(());
    }
    let named = SpecialFrame { destination: sent.destination, changed: sent.changed, ..*echo } == *sent;
    if named && echo.destination != sent.destination && echo.destination != Wwn(0) {
        return Err(CloseReason::OtherName(echo.destination));
    }
    Err(CloseReason::NotEchoed)
}
