//! Everything that can go wrong between a program and the kernel's BPF.

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Reason for which something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call failed.
    #[error("cannot {attempt}: {}", words_of(*.errno))]
    Call {
        /// The attempt, as the end of a sentence that begins with "cannot".
        attempt: String,
        /// The kernel's or libbpf's number for the reason.
        errno: i32,
    },
    /// libbpf or the kernel's verifier refused an object.
    #[error("the kernel refuses the object: {}", words_of(*.errno))]
    Load {
        /// The kernel's or libbpf's number for the reason.
        errno: i32,
        /// The program that the verifier refused; empty when it came to none.
        program: String,
        /// The end of the verifier's log, where the reason stands.
        log: String,
        /// libbpf's own words, line by line.
        messages: Vec<String>,
    },
    /// The object has not what was asked for.
    #[error("the compiled object has no {0}")]
    Lacks(String),
    /// A value does not fit.
    #[error("{what} has {bytes} bytes, and there is room for {room}")]
    Size {
        /// The value.
        what: String,
        /// Its size.
        bytes: usize,
        /// Size of its place.
        room: usize,
    },
}

impl Error {
    /// The error of `attempt` that libbpf-rs reports.
    pub(crate) fn call(attempt: impl Into<String>, error: &libbpf_rs::Error) -> Error {
        Error::Call { attempt: attempt.into(), errno: errno_of(error) }
    }

    /// The error of `attempt` that a call of libbpf returned as a negative number.
    pub(crate) fn returned(attempt: impl Into<String>, result: i32) -> Error {
        Error::Call { attempt: attempt.into(), errno: -result }
    }

    /// The reason without the attempt.
    pub fn reason(&self) -> String {
        self.errno().map_or_else(|| self.to_string(), words_of)
    }

    /// The kernel's or libbpf's number for the reason; `None` when no call failed.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Call { errno, .. } | Error::Load { errno, .. } => Some(*errno),
            Error::Lacks(_) | Error::Size { .. } => None,
        }
    }
}

/// The system's words for a number, or libbpf's for one of its own, which begin at 4000.
fn words_of(errno: i32) -> String {
    let mut room = [0u8; 128];
    // SAFETY: the call writes a text that ends into so many bytes.
    unsafe { libbpf_rs::libbpf_sys::libbpf_strerror(errno, room.as_mut_ptr().cast(), room.len() as _) };
    let end = room.iter().position(|&byte| byte == 0).unwrap_or(room.len());
    String::from_utf8_lossy(&room[..end]).into_owned()
}

/// The number behind an error of libbpf-rs, which keeps it to itself but for its text. EINVAL where there is none.
fn errno_of(error: &libbpf_rs::Error) -> i32 {
    let text = format!("{error:#}");
    let number = text.rsplit_once("(os error ").and_then(|(_, rest)| rest.split(')').next()?.parse().ok());
    number.unwrap_or(libc::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use libbpf_rs::ErrorExt;

    #[test]
    fn the_number_comes_through_whatever_is_said_around_it() {
        let plain = libbpf_rs::Error::from_raw_os_error(libc::EPERM);
        assert_eq!(errno_of(&plain), libc::EPERM);
        assert_eq!(errno_of(&plain.context("failed (os error of its own)")), libc::EPERM);
        let error = Error::call("look", &libbpf_rs::Error::from_raw_os_error(libc::ENOENT));
        assert_eq!(error.to_string(), "cannot look: No such file or directory");
        assert_eq!(error.errno(), Some(libc::ENOENT));
        assert_eq!(error.reason(), "No such file or directory");
        // LIBBPF_ERRNO__FORMAT of libbpf.h.
        assert_eq!(words_of(4001), "BPF object format invalid");
    }
}
