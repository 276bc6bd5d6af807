//! Workload of a real program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A real program, where there are sockets; simulated, as bulk. Keys that a run does not use are absent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    /// Name of the program.
    pub program: ProgramName,
    /// Bytes to send; null = until the end.
    pub bytes: Option<u64>,
    /// Files of equal size that hold `bytes`.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub files: u32,
    /// Parallel connections that were asked for.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub streams: u32,
    /// Application buffer, bytes; absent = the program's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// SFTP requests without an answer; absent = the program's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u32>,
    /// Medium that the data comes from.
    #[serde(default, skip_serializing_if = "MediumSpec::is_memory")]
    pub source: MediumSpec,
    /// Medium that the data goes to.
    #[serde(default, skip_serializing_if = "MediumSpec::is_memory")]
    pub sink: MediumSpec,
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Place of a program's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MediumSpec {
    /// No disk: a hole in a file to read, a device that discards to write.
    #[default]
    Memory,
    /// Files on a disk.
    Disk,
}

impl MediumSpec {
    /// Returns true if no disk takes part.
    pub fn is_memory(&self) -> bool {
        *self == MediumSpec::Memory
    }
}

/// A program that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProgramName {
    /// iperf3, client and server.
    Iperf3,
    /// OpenSSH's scp, to an sshd.
    Scp,
    /// OpenSSH's sftp, to an sshd.
    Sftp,
    /// rsync, over ssh.
    Rsync,
    /// rsync, to its own daemon.
    Rsyncd,
    /// rclone, over SFTP to an sshd.
    Rclone,
    /// curl, to a vsftpd.
    Ftp,
    /// lftp's put, to a vsftpd.
    Lftp,
    /// lftp's pget, from a vsftpd.
    Pget,
    /// A sender and a receiver on libudt.
    Udt,
    /// srt-file-transmit, to another one.
    Srt,
}

impl ProgramName {
    /// Its name as a user writes it.
    pub fn name(self) -> &'static str {
        match self {
            ProgramName::Iperf3 => "iperf3",
            ProgramName::Scp => "scp",
            ProgramName::Sftp => "sftp",
            ProgramName::Rsync => "rsync",
            ProgramName::Rsyncd => "rsyncd",
            ProgramName::Rclone => "rclone",
            ProgramName::Ftp => "ftp",
            ProgramName::Lftp => "lftp",
            ProgramName::Pget => "pget",
            ProgramName::Udt => "udt",
            ProgramName::Srt => "srt",
        }
    }
}
