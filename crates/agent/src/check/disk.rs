//! Room on a disk.

use serde_json::{json, Value};

/// Returns the bytes that are free where `folder` lies, or why that is not known.
pub fn answer(folder: &str) -> Value {
    match rustix::fs::statvfs(folder) {
        Ok(about) => json!({"folder": folder, "free_bytes": about.f_bavail * about.f_frsize}),
        Err(error) => json!({"folder": folder, "error": error.to_string()}),
    }
}
