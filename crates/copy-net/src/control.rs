//! The connection for messages: one thread reads it, one writes it.

use crate::error::{CopyError, ErrorKind};
use crate::session::{peer_error, Session};
use copy::{Message, WireError, MESSAGE_MAX};
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Time in which the reader finds the last words of an end that has gone.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Reads one message.
///
/// # Errors
/// The connection's, or `InvalidInput` with what was wrong.
pub(crate) fn read_message(reader: &mut dyn Read, buffer: &mut Vec<u8>) -> io::Result<Message> {
    let wrong = |error: WireError| io::Error::new(io::ErrorKind::InvalidInput, error.to_string());
    let mut length = [0; 4];
    reader.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MESSAGE_MAX + (512 << 10) {
        return Err(wrong(WireError("a message beyond its bound")));
    }
    buffer.resize(length, 0);
    reader.read_exact(buffer)?;
    Message::decode(buffer).map_err(wrong)
}

/// Takes messages until the copy is over.
pub(crate) fn read_all(session: &Session, reader: &mut dyn Read, handle: &dyn Fn(Message) -> Result<(), WireError>) {
    let mut buffer = vec![];
    while !session.is_over() {
        match read_message(reader, &mut buffer) {
            Ok(message) => {
                session.heard();
                let result = match message {
                    Message::Ping => {
                        session.say(&Message::Pong);
                        Ok(())
                    }
                    Message::Pong => Ok(()),
                    Message::Abort { kind, text } => {
                        session.fail(peer_error(kind, &text));
                        return;
                    }
                    message => {
                        session.is_handling.store(true, Relaxed);
                        let result = handle(message);
                        session.is_handling.store(false, Relaxed);
                        session.heard();
                        result
                    }
                };
                if let Err(error) = result {
                    return session.fail_protocol(error);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return session.fail_protocol(error),
            Err(error) => {
                // After the end of a copy that is done, the other end closes.
                let text = match error.kind() {
                    io::ErrorKind::UnexpectedEof => "the other end has gone".into(),
                    _ => format!("the other end has gone: {error}"),
                };
                return session.fail(CopyError { kind: ErrorKind::Peer, text });
            }
        }
    }
}

/// Sends what is said until nothing more will be.
pub(crate) fn write_all(session: &Session, writer: &mut dyn Write) {
    let mut bytes = vec![];
    while session.take_said(&mut bytes) {
        if let Err(error) = writer.write_all(&bytes).and_then(|()| writer.flush()) {
            // The other end may have told why before it closed: its last words are still to be read.
            session.wait_over(LAST_WORDS);
            let text = format!("the other end has gone: {error}");
            return session.fail(CopyError { kind: ErrorKind::Peer, text });
        }
    }
}
