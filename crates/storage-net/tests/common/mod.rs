//! Fixtures for tests of target and load over sockets.

use std::path::PathBuf;

pub const NAME: &str = "iqn.2026-01.example:disk";
pub const BYTES: u64 = 8 << 20;

/// A file of zeros that goes with the test.
pub struct Image(pub PathBuf);

impl Image {
    pub fn new(name: &str) -> Image {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.img"));
        std::fs::File::create(&path).unwrap().set_len(BYTES).unwrap();
        Image(path)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
