//! open-isns, a server of iSNS that we did not write (Debian package open-isns-server), with a database of its own.
//!
//! Included by path, as skip.rs is.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time between two attempts to connect, and their number: 30 s.
const PAUSE: Duration = Duration::from_millis(10);
const LOOKS_MAX: usize = 3_000;

/// A server, ended when it is dropped.
pub struct IsnsServer {
    process: Child,
}

impl IsnsServer {
    /// Starts a server whose database is in `folder`; None when none is installed.
    pub fn start(folder: &Path, address: SocketAddr) -> Option<IsnsServer> {
        // Debian installs it where only root's PATH looks.
        let is_there = |program: &&str| Command::new(program).arg("--help").output().is_ok();
        let program = ["isnsd", "/usr/sbin/isnsd"].into_iter().find(is_there)?;
        std::fs::create_dir_all(folder).unwrap();
        let configuration = folder.join("isnsd.conf");
        let text = format!(
            "HostName = localhost\nSourceName = iqn.2026-11.example:server\n\
             Database = {0}/database\nPIDFile = {0}/pid\nControlSocket = {0}/control\n\
             BindAddress = {address}\nDefaultDiscoveryDomain = 1\nSecurity = 0\nSLPRegister = 0\nESIMinInterval = 1s\n",
            folder.display()
        );
        std::fs::create_dir_all(folder.join("database")).unwrap();
        std::fs::write(&configuration, text).unwrap();
        let process = Command::new(program)
            .args(["-f", "-4", "-c"])
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let server = IsnsServer { process };
        let up = (0..LOOKS_MAX).any(|_| {
            std::thread::park_timeout(PAUSE);
            TcpStream::connect(address).is_ok()
        });
        assert!(up, "{}", std::fs::read_to_string(folder.join("log")).unwrap_or_default());
        Some(server)
    }
}

impl Drop for IsnsServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
