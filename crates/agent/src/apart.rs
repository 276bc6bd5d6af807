//! The process that a program's end runs in, apart from its host: `elephan-agent apart PLAN WORDS...`.
//!
//! In namespaces of its own for mounts and processes the end's users lie over the host's, and what it receives in
//! memory has a place. All that it starts ends with it, whatever session or process group that moves to: the kernel
//! ends a process namespace with its first process, and that one with the agent. Without rights the namespaces are in a
//! user namespace that knows the user alone.

use crate::rights;
use rustix::fs::{FileType, Mode};
use rustix::io::Errno;
use rustix::mount::{mount, mount_bind, mount_change, MountFlags, MountPropagationFlags};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Name of the agent's argument that makes it such a process.
pub const ARGUMENT: &str = "apart";

/// Exit code where the namespaces cannot be had, as env(1) and unshare(1) have it.
const FAILED: u8 = 125;

/// Exit code of a program that a signal has ended, less the signal's number, as of a shell (POSIX.1-2017, 2.8.2).
const BY_SIGNAL: i32 = 128;

/// Files of a program's users, over those of the same names in /etc.
const USERS: [&str; 3] = ["passwd", "shadow", "group"];

/// Everything that an end has to itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Apart {
    /// Folder with the users that it knows; None: the host's.
    pub users: Option<PathBuf>,
    /// Place of data that stays in memory.
    pub sink: Option<Sink>,
    /// Name of an empty folder under /run, where nothing else is.
    pub own: Option<PathBuf>,
}

/// A folder for what is received and not kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sink {
    folder: PathBuf,
    /// Files in it that discard what is written to them, `file0` and on; 0: a file system in memory.
    discards: u32,
}

/// Returns the command line that runs `words` so.
pub fn command(apart: &Apart, words: &[String]) -> Vec<String> {
    let plan = serde_json::to_string(apart).expect("paths come from JSON");
    ["/proc/self/exe", ARGUMENT, &plan].into_iter().map(str::to_owned).chain(words.iter().cloned()).collect()
}

/// Is the process that was started so; returns the program's exit code.
pub fn enter(plan: &str, words: &[&str]) -> ExitCode {
    match run(plan, words) {
        Ok(code) => ExitCode::from(code),
        Err(text) => {
            eprintln!("{text}");
            ExitCode::from(FAILED)
        }
    }
}

fn run(plan: &str, words: &[&str]) -> Result<u8, String> {
    let apart: Apart = serde_json::from_str(plan).map_err(|error| format!("apart: {error}"))?;
    unshare().map_err(|error| format!("namespaces of its own: {error}"))?;
    end_with_parent();
    make_mounts(&apart)?;
    // The end of the pipe is here alone, so that the child sees its parent's death before it has asked for its signal.
    let (watched, held) = pipe().map_err(|error| format!("pipe: {error}"))?;
    let failed = |error: io::Error| format!("fork: {error}");
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(failed(io::Error::last_os_error())),
        0 => {
            drop(held);
            end_with_parent();
            if has_ended(&watched) {
                return Ok(FAILED);
            }
            drop(watched);
            first(words).map_err(|error| format!("{}: {error}", words.first().unwrap_or(&"")))
        }
        child => {
            drop(watched);
            let code = loop {
                match wait(child) {
                    Ok((_, code)) => break code,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(format!("wait: {error}")),
                }
            };
            drop(held);
            Ok(code)
        }
    }
}

/// Is the first process of the namespace: starts the program and takes in what that leaves behind, until it ends.
fn first(words: &[&str]) -> io::Result<u8> {
    let (name, rest) = words.split_first().ok_or_else(|| io::Error::other("a program without a name"))?;
    // SAFETY: this process has one thread.
    let program = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => return Err(Command::new(name).args(rest).exec()),
        program => program,
    };
    loop {
        match wait(-1) {
            Ok((ended, code)) if ended == program => return Ok(code),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits for a child, -1: any; returns which has ended, and its exit code as a shell has it.
fn wait(child: libc::pid_t) -> io::Result<(libc::pid_t, u8)> {
    let mut status = 0;
    // SAFETY: `status` is valid to write to.
    let ended = unsafe { libc::waitpid(child, &mut status, 0) };
    if ended < 0 {
        return Err(io::Error::last_os_error());
    }
    let code = if libc::WIFSIGNALED(status) { BY_SIGNAL + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) };
    Ok((ended, code as u8))
}

/// This process is killed when its parent has ended.
fn end_with_parent() {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0) };
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors, which then have no other owner.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Returns true if nobody has the other end of a pipe any more.
fn has_ended(watched: &OwnedFd) -> bool {
    let mut byte = [0_u8];
    // SAFETY: `byte` has room for one byte.
    unsafe { libc::read(watched.as_raw_fd(), byte.as_mut_ptr().cast(), 1) == 0 }
}

fn unshare() -> io::Result<()> {
    let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let has_rights = rights::may_mount();
    if !has_rights {
        flags |= libc::CLONE_NEWUSER;
    }
    // SAFETY: a plain system call; this process has one thread.
    if unsafe { libc::unshare(flags) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if !has_rights {
        // In this order (user_namespaces(7)).
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    Ok(mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?)
}

fn make_mounts(apart: &Apart) -> Result<(), String> {
    let failed = |at: &Path| {
        let at = at.display().to_string();
        move |error: Errno| format!("mounting over {at}: {error}")
    };
    if let Some(folder) = &apart.users {
        for name in USERS {
            let (own, there) = (folder.join(name), Path::new("/etc").join(name));
            if own.exists() && there.exists() {
                mount_bind(&own, &there).map_err(failed(&there))?;
            }
        }
    }
    if let Some(sink) = &apart.sink {
        in_memory(&sink.folder, "mode=777,size=100%").map_err(failed(&sink.folder))?;
        for number in 0..sink.discards {
            let path = sink.folder.join(format!("file{number}"));
            discard(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    if let Some(own) = &apart.own {
        in_memory(Path::new("/run"), "mode=755").map_err(failed(Path::new("/run")))?;
        fs::create_dir(own).map_err(|error| format!("{}: {error}", own.display()))?;
    }
    Ok(())
}

fn in_memory(at: &Path, options: &str) -> rustix::io::Result<()> {
    let options = std::ffi::CString::new(options).expect("it has no zero byte");
    mount("elephan", at, "tmpfs", MountFlags::NOSUID, options.as_c_str())
}

/// Makes a file that is like /dev/null: a device, or that one's own where none may be made.
fn discard(path: &Path) -> io::Result<()> {
    let null = rustix::fs::stat("/dev/null")?.st_rdev;
    let mode = Mode::from_raw_mode(0o666);
    match rustix::fs::mknodat(rustix::fs::CWD, path, FileType::CharacterDevice, mode, null) {
        Ok(()) if File::options().write(true).open(path).is_ok() => Ok(rustix::fs::chmod(path, mode)?),
        made => {
            if made.is_ok() {
                fs::remove_file(path)?;
            }
            File::create(path)?;
            Ok(mount_bind("/dev/null", path)?)
        }
    }
}

/// Rights to run a program apart from this host: `Some("root")`, `Some("user")` or, with a reason, none.
pub fn rights() -> Result<&'static str, String> {
    let words = command(&Apart::default(), &["/proc/self/exe".to_owned(), "--version".to_owned()]);
    let done = Command::new(&words[0]).args(&words[1..]).output().map_err(|error| error.to_string())?;
    if done.status.success() {
        return Ok(if rights::may_mount() { "root" } else { "user" });
    }
    let mut said = String::new();
    let _ = done.stderr.as_slice().read_to_string(&mut said);
    Err(said.split_whitespace().collect::<Vec<_>>().join(" "))
}
