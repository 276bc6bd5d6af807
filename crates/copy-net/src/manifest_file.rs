//! The manifest on disk: rows are appended as entries are concluded; when the copy is done, its root is its name.

use crate::destination::user_state_folder;
use crate::error::{CopyError, ErrorKind};
use crate::known_hashes::{manifests, KnownHashes};
use copy::{hex, manifest_row, CopyOptions, Entry, Manifest};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Manifests of one copy that are kept: a hundred daily receipts can be verified.
const MANIFESTS: usize = 100;

/// Rows in order, with their root.
pub(crate) struct ManifestFile {
    manifest: Manifest,
    file: BufWriter<File>,
    part: PathBuf,
    folder: PathBuf,
    options: CopyOptions,
    error: Option<std::io::Error>,
}

impl ManifestFile {
    /// `end`: "sender" or "receiver".
    ///
    /// # Errors
    /// `Io`: the user's state folder cannot be written.
    pub fn create(copy: &str, end: &str, options: &CopyOptions) -> Result<ManifestFile, CopyError> {
        let folder = user_state_folder()?.join(copy).join("manifests");
        let part = folder.join(format!("{end}.part"));
        let made = std::fs::create_dir_all(&folder).and_then(|()| File::create(&part));
        let file =
            made.map_err(|error| CopyError { kind: ErrorKind::Io, text: format!("{}: {error}", part.display()) })?;
        Ok(ManifestFile {
            manifest: Manifest::default(),
            file: BufWriter::new(file),
            folder,
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

    /// Hashes of the last copy's manifest.
    pub fn known_hashes(&self) -> KnownHashes {
        KnownHashes::read(&self.folder)
    }

    /// Syncs it and gives it its name, which is returned. Of the older ones the last [`MANIFESTS`] stay, for receipts.
    ///
    /// # Errors
    /// `Io`.
    pub fn keep(mut self) -> Result<String, CopyError> {
        let path = self.folder.join(hex(&self.root()));
        let kept = match self.error.take() {
            Some(error) => Err(error),
            None => self
                .file
                .flush()
                .and_then(|()| self.file.get_ref().sync_data())
                .and_then(|()| std::fs::rename(&self.part, &path))
                .and_then(|()| File::open(&self.folder)?.sync_all()),
        };
        kept.map_err(|error| CopyError { kind: ErrorKind::Io, text: format!("{}: {error}", path.display()) })?;
        let all = manifests(&self.folder);
        for old in &all[..all.len().saturating_sub(MANIFESTS)] {
            let _ = std::fs::remove_file(old);
        }
        Ok(path.to_string_lossy().into_owned())
    }
}
