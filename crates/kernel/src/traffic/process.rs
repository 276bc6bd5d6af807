//! A real program in a namespace: start, wait, end, and output.

use super::written::Written;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A program that runs until it ends or this is dropped.
pub(crate) struct Process {
    child: Child,
    said: [PathBuf; 2],
    ended: Option<ExitStatus>,
}

/// Limit of a program's output in an error, bytes.
const WORDS: usize = 400;

/// PATH of programs: servers are often not on a user's.
pub const SEARCHED: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Process {
    /// Starts `words` in the network namespace whose file is `namespace`, None: this one, and in `folder`, where what
    /// it says goes to `name`.out and `name`.err. It has an environment of its own, so that nothing comes from the
    /// user's settings, and dies with this thread.
    ///
    /// # Errors
    /// The program or the namespace is not there.
    pub fn start(words: &[String], namespace: Option<&str>, folder: &Path, name: &str) -> io::Result<Process> {
        let (first, rest) = words.split_first().ok_or_else(|| io::Error::other("a program without a name"))?;
        let there = namespace.map(File::open).transpose()?;
        let said = ["out", "err"].map(|kind| folder.join(format!("{name}.{kind}")));
        let mut command = Command::new(first);
        command
            .args(rest)
            .current_dir(folder)
            .env_clear()
            .env("PATH", SEARCHED)
            .env("HOME", folder)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(File::create(&said[0])?)
            .stderr(File::create(&said[1])?)
            // A Ctrl-C at the terminal is for elephan, which then ends it.
            .process_group(0);
        let enter = move || {
            // SAFETY: system calls alone, between fork and exec.
            unsafe {
                if let Some(there) = &there {
                    if libc::setns(there.as_raw_fd(), libc::CLONE_NEWNET) != 0 {
                        return Err(io::Error::last_os_error());
                    }
                }
                // An ordinary program, whatever the thread that starts it is.
                libc::setpriority(libc::PRIO_PROCESS, 0, 0);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0);
            }
            Ok(())
        };
        // SAFETY: `enter` allocates nothing and takes no lock.
        let child = unsafe { command.pre_exec(enter).spawn()? };
        Ok(Process { child, said, ended: None })
    }

    /// A descriptor that is readable when it has ended (pidfd_open(2), Linux 5.3).
    pub fn end(&self) -> io::Result<OwnedFd> {
        // SAFETY: a plain system call; the child is not reaped by anybody else.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, self.child.id(), 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and has no other owner.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
    }

    /// Counts the bytes that it writes from now on, without what it says.
    ///
    /// # Errors
    /// The kernel's; it has no counter.
    pub fn written(&self) -> io::Result<Written> {
        Written::since_now(File::open(format!("/proc/{}/io", self.child.id()))?, self.said.to_vec())
    }

    /// Returns the exit status; None while it runs.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended)
    }

    /// Returns the end of its output as one line, from both streams: iperf3 and ftp clients use different ones for
    /// errors.
    pub fn words(&self) -> String {
        let texts = self.said.iter().rev().map(|file| std::fs::read(file).unwrap_or_default());
        let lines: Vec<String> = texts.map(|text| one_line(&String::from_utf8_lossy(&text))).collect();
        lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// An exit status and the words of a program, if it said any, as an error has them.
pub(crate) fn told(status: ExitStatus, words: &str) -> String {
    if words.is_empty() {
        return status.to_string();
    }
    format!("{status}: {words}")
}

impl Drop for Process {
    /// Ends it with its children, as far as they stayed in its group; the rest ends with the namespace.
    fn drop(&mut self) {
        if self.ended.is_none() {
            // SAFETY: a plain system call; the group is the child's own and has it in it until it is waited for.
            unsafe { libc::kill(-(self.child.id() as libc::pid_t), libc::SIGKILL) };
            let _ = self.child.wait();
        }
    }
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let from = line.char_indices().map(|(at, _)| at).find(|at| line.len() - at <= WORDS).unwrap_or(line.len());
    line[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_much_that_a_program_said_the_end_is_kept_and_no_letter_is_cut() {
        assert_eq!(one_line(" a\n b\t c\n"), "a b c");
        let long = one_line(&"ü".repeat(1000));
        assert!(long.len() <= WORDS && long.chars().all(|c| c == 'ü') && !long.is_empty());
    }
}
