//! The manifest on disk: rows are appended as entries are concluded; it gets its name when the copy is done.

use crate::destination::user_state_folder;
use crate::error::{CopyError, ErrorKind};
use copy::{manifest_row, CopyOptions, Entry, Manifest};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Rows in order, with their root.
pub(crate) struct ManifestFile {
    manifest: Manifest,
    file: BufWriter<File>,
    part: PathBuf,
    path: PathBuf,
    options: CopyOptions,
    error: Option<std::io::Error>,
}

impl ManifestFile {
    /// `end`: "sender" or "receiver".
    ///
    /// # Errors
    /// `Io`: the user's state folder cannot be written.
    pub fn create(copy: &str, end: &str, options: &CopyOptions) -> Result<ManifestFile, CopyError> {
        let folder = user_state_folder()?.join(copy);
        let part = folder.join(format!("{end}.manifest.part"));
        let made = std::fs::create_dir_all(&folder).and_then(|()| File::create(&part));
        let file =
            made.map_err(|error| CopyError { kind: ErrorKind::Io, text: format!("{}: {error}", part.display()) })?;
        Ok(ManifestFile {
            manifest: Manifest::default(),
            file: BufWriter::new(file),
            path: folder.join(format!("{end}.manifest")),
            part,
            options: options.clone(),
            error: None,
        })
    }

    /// An entry is at the destination, with this content.
    pub fn done(&mut self, number: u64, entry: &Entry, first: Option<&[Vec<u8>]>, hash: Option<[u8; 32]>) {
        let row = manifest_row(entry, first, hash, &self.options);
        self.conclude(number, Some(row));
    }

    /// An entry is left out.
    pub fn left_out(&mut self, number: u64) {
        self.conclude(number, None);
    }

    fn conclude(&mut self, number: u64, row: Option<String>) {
        let rows = self.manifest.conclude(number, row);
        if let Err(error) = self.file.write_all(rows.as_bytes()) {
            self.error.get_or_insert(error);
        }
    }

    /// Entries that are concluded, without a gap.
    pub fn concluded(&self) -> u64 {
        self.manifest.concluded()
    }

    /// BLAKE3 of the rows.
    pub fn root(&self) -> [u8; 32] {
        self.manifest.root()
    }

    /// Syncs it and gives it its name, which is returned.
    ///
    /// # Errors
    /// `Io`.
    pub fn keep(mut self) -> Result<String, CopyError> {
        let kept = match self.error.take() {
            Some(error) => Err(error),
            None => self
                .file
                .flush()
                .and_then(|()| self.file.get_ref().sync_data())
                .and_then(|()| std::fs::rename(&self.part, &self.path)),
        };
        kept.map_err(|error| CopyError { kind: ErrorKind::Io, text: format!("{}: {error}", self.path.display()) })?;
        Ok(self.path.to_string_lossy().into_owned())
    }
}
