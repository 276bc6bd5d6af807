//! Files that a user names, read with bounds: a regular file of a size that its kind can have, or a clear refusal.
//!
//! A path may lead to a device that never ends, to a FIFO that no process writes, or to a sparse file larger than the
//! memory.
//!
//! **Invariant: no function waits for another process, and none reads more than the bound that it was given.**
//! `elephan/user_files.py` has the same rule for Python.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of a congestion control's C file: Linux's largest, BBR, has 43 kB.
pub const SOURCE_BYTES_MAX: u64 = 1 << 20;

/// Most bytes of a file with keys or certificates in PEM: Debian's bundle of authorities has 220 kB.
pub const PEM_BYTES_MAX: u64 = 4 << 20;

/// Opens a regular file, or a link to one, to be read.
///
/// # Errors
/// The kernel's; `InvalidInput` for a device, a FIFO, a socket; `IsADirectory`.
pub fn open(path: &Path) -> io::Result<File> {
    // Before it is opened: to open a device may change it, such as a tape's position.
    must_be_regular(&fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    must_be_regular(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of at most `bytes_max` bytes.
///
/// # Errors
/// Those of [`open`]; `FileTooLarge`; the kernel's.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    must_fit(file.metadata()?.len(), bytes_max)?;
    let mut content = vec![];
    // A file may grow, and one of /proc has no size.
    file.take(bytes_max + 1).read_to_end(&mut content)?;
    must_fit(content.len() as u64, bytes_max)?;
    Ok(content)
}

/// Reads a regular file of at most `bytes_max` bytes that is UTF-8.
///
/// # Errors
/// Those of [`read`]; `InvalidData` for other bytes.
pub fn read_to_string(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, bytes_max)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

fn must_be_regular(status: &Metadata) -> io::Result<()> {
    if status.is_file() {
        return Ok(());
    }
    if status.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory; a regular file is needed"));
    }
    let text = format!("it is {}; a regular file is needed", kind(status));
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

#[cfg(unix)]
fn kind(status: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match status.file_type() {
        kind if kind.is_fifo() => "a FIFO or pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(unix))]
fn kind(_: &Metadata) -> &'static str {
    "no regular file"
}

fn must_fit(bytes: u64, bytes_max: u64) -> io::Result<()> {
    if bytes <= bytes_max {
        return Ok(());
    }
    let text = format!("it has {}; at most {} are read", size(bytes), size(bytes_max));
    Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
}

/// Bytes with binary prefixes, as limits are set.
fn size(bytes: u64) -> String {
    let prefixes = [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")];
    match prefixes.iter().find(|(power, _)| bytes >> power > 0) {
        Some((power, prefix)) => {
            let tenths = (u128::from(bytes) * 10) >> power;
            let rest = if tenths % 10 == 0 { String::new() } else { format!(".{}", tenths % 10) };
            format!("{}{rest} {prefix}B", tenths / 10)
        }
        None => format!("{bytes} B"),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;
    use std::{env, process};

    /// A folder of the test's own, removed with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = env::temp_dir().join(format!("user-files-{}-{name}", process::id()));
            fs::create_dir_all(&path).expect("temporary files can be written");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn refusal(path: &Path) -> String {
        read(path, 1000).expect_err("it is refused").to_string()
    }

    #[test]
    fn a_link_to_a_regular_file_is_read_and_one_to_a_device_is_refused() {
        let folder = Folder::new("links");
        let (file, link, device) = (folder.0.join("file"), folder.0.join("link"), folder.0.join("device"));
        fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
        assert_eq!(read_to_string(&link, 4).unwrap(), "text");
        assert_eq!(refusal(&device), "it is a device; a regular file is needed");
        assert!(refusal(&folder.0).contains("it is a directory"));
    }

    #[test]
    fn a_fifo_without_a_writer_is_refused_at_once() {
        let folder = Folder::new("fifo");
        let path = folder.0.join("fifo");
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name ends with a NUL.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert_eq!(refusal(&path), "it is a FIFO or pipe; a regular file is needed");
    }

    #[test]
    fn a_sparse_file_is_refused_by_its_size() {
        let folder = Folder::new("sparse");
        let path = folder.0.join("sparse");
        File::create(&path).unwrap().set_len(10 << 30).unwrap();
        assert_eq!(refusal(&path), "it has 10 GiB; at most 1000 B are read");
        File::create(&path).unwrap().set_len(1001).unwrap();
        assert_eq!(refusal(&path), "it has 1001 B; at most 1000 B are read");
        assert_eq!(size(1_700_000), "1.6 MiB");
    }
}
