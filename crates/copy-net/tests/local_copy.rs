//! A copy from folder to folder in one thread: what the engine does with both sides, without an engine.

use copy::{CopyOptions, Entry, EntryKind, FileFault};
use copy_net::{Base, Closed, CopyError, Destination, EntryFault, Existing, Part, SourceTree};
use std::collections::BTreeMap;

pub const COPY: &str = "00112233445566778899aabbccddeeff";

/// Result of a copy.
#[derive(Debug, Default)]
pub struct Outcome {
    pub entries: u64,
    /// Bytes that were read at the source.
    pub read_bytes: u64,
    pub linked: u64,
    pub faults: Vec<FileFault>,
    pub closed: Closed,
}

/// Copies all; the state folder goes at the end.
pub fn copy(sources: &[String], destination: &str, options: &CopyOptions) -> Result<Outcome, CopyError> {
    let mut tree = SourceTree::open(sources, options)?;
    let target = Destination::open(destination, tree.shape(), options, COPY)?;
    let files = tree.files();
    let mut outcome = Outcome::default();
    let mut paths = BTreeMap::new();
    let mut batch: Vec<(Part, Entry)> = vec![];
    let mut links = vec![];
    for found in &mut tree {
        let (number, entry) = match found {
            Ok(found) => found,
            Err(fault) => {
                outcome.faults.push(fault);
                continue;
            }
        };
        outcome.entries += 1;
        paths.insert(number, entry.path.clone());
        if matches!(entry.kind, EntryKind::HardLink { .. }) {
            links.push(entry);
            continue;
        }
        match one(&target, &files, number, &entry, &mut outcome) {
            Ok(Some(part)) => batch.push((part, entry)),
            Ok(None) => {}
            Err(fault) => outcome.faults.push(fault.into()),
        }
        if batch.len() == 20 {
            finish(&target, &mut batch, &mut outcome);
        }
    }
    finish(&target, &mut batch, &mut outcome);
    for entry in links {
        let EntryKind::HardLink { to } = entry.kind else { continue };
        let first = Some(paths[&to].as_slice());
        match target.look(&entry, first) {
            Ok(Existing::Same) => {}
            Ok(_) => note(target.make(&entry, first), &mut outcome),
            Err(fault) => outcome.faults.push(fault.into()),
        }
    }
    outcome.closed = target.close(outcome.faults.is_empty())?;
    target.clear();
    Ok(outcome)
}

fn note(result: Result<Option<EntryFault>, EntryFault>, outcome: &mut Outcome) {
    match result {
        Ok(fault) => outcome.faults.extend(fault.map(Into::into)),
        Err(fault) => outcome.faults.push(fault.into()),
    }
}

fn one(
    target: &Destination,
    files: &copy_net::SourceFiles,
    number: u64,
    entry: &Entry,
    outcome: &mut Outcome,
) -> Result<Option<Part>, EntryFault> {
    let existing = target.look(entry, None)?;
    let EntryKind::File { size, extents } = &entry.kind else {
        if existing != Existing::Same || entry.kind == EntryKind::Folder {
            note(target.make(entry, None), outcome);
        }
        return Ok(None);
    };
    let base = match existing {
        Existing::Same => return Ok(None),
        Existing::SameContent => return target.adjust(entry).map(|()| None),
        Existing::Linkable => {
            outcome.linked += 1;
            return target.link_older(entry).map(|()| None);
        }
        Existing::Differs { .. } => Base::Existing,
        Existing::Older { .. } => Base::Older,
        Existing::Absent => Base::Nothing,
    };
    let file = files.open(number, entry)?;
    assert_eq!(file.identity().unwrap(), entry.identity);
    let part = target.begin(number, entry, base)?;
    let whole = [(0, *size)];
    let mut data = vec![0; 65_536];
    let old = match base {
        Base::Nothing => None,
        base => Some(target.base(entry, base)?.0),
    };
    let mut old_data = vec![0; 65_536];
    let mut end_before = 0;
    for (begin, end) in extents.as_deref().unwrap_or(&whole) {
        part.hole(end_before, *begin).unwrap();
        end_before = *end;
        let mut at = *begin;
        while at < *end {
            let length = usize::try_from((*end - at).min(65_536)).unwrap();
            file.read_at(at, &mut data[..length]).unwrap();
            outcome.read_bytes += length as u64;
            let next = at + length as u64;
            let same = old.as_ref().is_some_and(|old| {
                use std::os::unix::fs::FileExt;
                old.read_exact_at(&mut old_data[..length], at).is_ok() && old_data[..length] == data[..length]
            });
            match same {
                true => part.take(at, next).unwrap(),
                false => part.write_at(at, &data[..length]).unwrap(),
            }
            at = next;
        }
    }
    part.hole(end_before, *size).unwrap();
    part.set_len(*size).unwrap();
    file.release(0, *size);
    Ok(Some(part))
}

fn finish(target: &Destination, batch: &mut Vec<(Part, Entry)>, outcome: &mut Outcome) {
    for (part, entry) in batch.iter() {
        match target.seal(part, entry) {
            Ok(fault) => outcome.faults.extend(fault.map(Into::into)),
            Err(fault) => outcome.faults.push(fault.into()),
        }
    }
    target.sync(&batch.iter().map(|(part, _)| part).collect::<Vec<_>>()).unwrap();
    let (parts, entries): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
    parts.iter().for_each(|part| part.release(0, u64::MAX));
    for result in target.finish(parts.into_iter().zip(&entries).collect()) {
        outcome.faults.extend(result.err().map(Into::into));
    }
}
