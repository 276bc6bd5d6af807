//! The file as a medium: what was truncated, what is allocated, large comparisons.

use super::*;
use std::path::PathBuf;

fn image(name: &str, bytes: usize) -> (PathBuf, FileMedium) {
    let path = std::env::temp_dir().join(format!("elephan-{name}-{}", std::process::id()));
    std::fs::write(&path, vec![7; bytes]).unwrap();
    let medium = FileMedium::open(&path, false, false, 512).unwrap();
    (path, medium)
}

#[test]
fn truncated_blocks_are_medium_errors_and_are_not_extended_by_zeros() {
    let (path, medium) = image("truncated", 16 * 512);
    let read = |lba| {
        medium
            .try_immediate(&Op::Read { lba, blocks: 1 })
            .unwrap_or_else(|| medium.perform(&Op::Read { lba, blocks: 1 }))
    };
    let write = |lba| {
        let data = Payload::from(vec![1; 512]).into();
        medium.try_immediate(&Op::Write { lba, data, durable: false, verify: false }).unwrap()
    };
    let here = Outcome::Data(Payload::from(vec![7; 512]));
    let (unreadable, unwritable) = (Outcome::Failed(MediumError::Read), Outcome::Failed(MediumError::Write));
    assert_eq!((read(15), medium.perform(&Op::Flush), medium.take_notice()), (here.clone(), Outcome::Done, None));
    let other = OpenOptions::new().write(true).open(&path).unwrap();
    other.set_len(4 * 512).unwrap();
    // The first comer finds it, here a write, which would have made the file longer again.
    assert_eq!(write(12), unwritable);
    assert_eq!(other.metadata().unwrap().len(), 4 * 512);
    assert_eq!((read(8), read(3), write(2)), (unreadable.clone(), here, Outcome::Done));
    for op in [
        Op::WriteSame { lba: 4, blocks: 2, pattern: None, unmap: true, durable: false },
        Op::Unmap { ranges: vec![(0, 1), (4, 1)] },
        Op::Flush,
    ] {
        assert_eq!(medium.perform(&op), unwritable, "{op:?}");
    }
    assert_eq!(medium.perform(&Op::Allocation { lba: 4 }), unreadable);
    // Zeros in its place are not its data.
    other.set_len(16 * 512).unwrap();
    assert_eq!((read(15), write(15)), (unreadable, unwritable));
    assert!(medium.take_notice().unwrap().contains("2048 of 8192 bytes"));
    assert_eq!(medium.take_notice(), None);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_read_beyond_the_new_end_of_a_file_fails() {
    let (path, medium) = image("end", 16 * 512);
    OpenOptions::new().write(true).open(&path).unwrap().set_len(5 * 512 + 100).unwrap();
    assert_eq!(medium.perform(&Op::Read { lba: 4, blocks: 2 }), Outcome::Failed(MediumError::Read));
    assert!(medium.take_notice().unwrap().contains("2660 of 8192 bytes"));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn blocks_are_allocated_unless_reported_as_holes() {
    let (path, medium) = image("extent", 8 * 512);
    std::fs::remove_file(&path).unwrap();
    let fault = |number| Err(io::Error::from_raw_os_error(number));
    assert_eq!(medium.extent(2, Ok(1024), Ok(2048)), (2, 2, true));
    assert_eq!(medium.extent(2, Ok(2048), Ok(1024)), (2, 2, false));
    // Nothing but a hole to the end.
    assert_eq!(medium.extent(2, fault(libc::ENXIO), Ok(1024)), (2, 6, false));
    // As of a block device.
    assert_eq!(medium.extent(2, fault(libc::EINVAL), fault(libc::EINVAL)), (2, 6, true));
}

#[test]
fn data_larger_than_the_scratch_buffer_is_compared_and_combined() {
    let blocks = 3 * SCRATCH / 512 + 3;
    let (path, medium) = image("pieces", blocks * 512);
    let all = |byte: u8| vec![byte; blocks * 512];
    let rope = |bytes: Vec<u8>| Rope::from(Payload::from(bytes));
    let compare = |bytes| medium.perform(&Op::Compare { lba: 0, blocks: blocks as u32, data: rope(bytes) });
    assert_eq!(compare(all(7)), Outcome::Done);
    for at in [0, SCRATCH, blocks * 512 - 1] {
        let mut other = all(7);
        other[at] = 8;
        assert_eq!(compare(other), Outcome::Miscompare(at as u64));
    }
    let mut bits = all(0);
    bits[2 * SCRATCH + 5] = 0x80;
    assert_eq!(medium.perform(&Op::OrWrite { lba: 0, data: rope(bits), durable: false }), Outcome::Done);
    let mut expected = all(7);
    expected[2 * SCRATCH + 5] = 0x87;
    assert!(std::fs::read(&path).unwrap() == expected);
    assert_eq!(medium.perform(&Op::Verify { lba: 1, blocks: blocks as u32 - 1 }), Outcome::Done);
    OpenOptions::new().write(true).open(&path).unwrap().set_len(2 * SCRATCH as u64).unwrap();
    assert_eq!(medium.perform(&Op::Verify { lba: 1, blocks: blocks as u32 - 1 }), Outcome::Failed(MediumError::Read));
    std::fs::remove_file(path).unwrap();
}
