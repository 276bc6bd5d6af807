//! A compiler's process, with bounds: a user's file may make it read or write without an end.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// Interval at which the compiler's end is looked for. It takes some 100 ms.
const INTERVAL: Duration = Duration::from_millis(2);

/// Looks after which it is ended: a minute or more, also for what takes no CPU time.
const LOOKS_MAX: u32 = 30_000;

/// Bytes of its messages that are read.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// The end of a compiler.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    /// Its messages.
    pub(crate) text: String,
}

/// Runs a compiler, which may write its own temporary files to `folder`; its messages go to a file there.
///
/// # Errors
/// The kernel's, and `TimedOut`.
#[allow(clippy::disallowed_methods, reason = "the compiler is waited for, and no run is")]
pub(crate) fn run(command: &mut Command, folder: &Path) -> io::Result<Finished> {
    let messages = folder.join("messages");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&messages)?);
    // A compiler that is killed leaves its own files there as well, and they go with the folder.
    command.env("LC_ALL", "C").env("TMPDIR", folder);
    apart(command);
    bound(command);
    let mut child = command.spawn()?;
    let mut looks = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        looks += 1;
        if looks > LOOKS_MAX {
            end(&mut child);
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the compiler has not ended after a minute"));
        }
        thread::sleep(INTERVAL);
    };
    let mut bytes = vec![];
    io::Read::read_to_end(&mut io::Read::take(std::fs::File::open(&messages)?, MESSAGE_BYTES_MAX), &mut bytes)?;
    Ok(Finished { status, text: String::from_utf8_lossy(&bytes).trim_end().to_owned() })
}

/// Out of the terminal's reach: a Ctrl-C there is for elephan, and a compiler that it kills would look like a wrong
/// file.
#[cfg_attr(not(unix), allow(unused_variables))]
fn apart(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(unix)]
fn bound(command: &mut Command) {
    /// Memory, bytes: gcc and clang take 200 MB for a congestion control.
    const MEMORY: libc::rlim_t = 4 << 30;
    /// CPU time of each of its processes, s.
    const CPU_S: libc::rlim_t = 60;
    /// A file that it writes, bytes: an object has some 20 kB.
    const FILE: libc::rlim_t = 64 << 20;
    let set = || {
        let bounds =
            [(libc::RLIMIT_AS, MEMORY), (libc::RLIMIT_CPU, CPU_S), (libc::RLIMIT_FSIZE, FILE), (libc::RLIMIT_CORE, 0)];
        for (resource, most) in bounds {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: both take a structure of this form.
            unsafe {
                if libc::getrlimit(resource, &mut limit) == 0 {
                    limit.rlim_cur = limit.rlim_cur.min(most);
                    libc::setrlimit(resource, &limit);
                }
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec it makes system calls alone.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, set) };
}

#[cfg(not(unix))]
fn bound(_: &mut Command) {}

/// Ends the compiler with the processes that it has started.
fn end(child: &mut std::process::Child) {
    #[cfg(unix)]
    if let Ok(group) = libc::pid_t::try_from(child.id()) {
        // SAFETY: no memory is concerned; the child leads this group and has not been waited for.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    let _ = child.kill();
    let _ = child.wait();
}
