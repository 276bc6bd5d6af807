//! Drives made small, whose times can be worked out by hand, and what every drive holds to.

use super::mechanics::Arm;
use super::*;
use crate::trace::Kind;
use proptest::prelude::*;
use units::Time;

/// Two surfaces, ten cylinders of ten sectors, 6,000 rpm: 10 ms a revolution, 1 ms a sector. Seeks take 1 ms and 0.1
/// ms per cylinder more; overheads are unlike each other, so that a sum tells what went into it.
fn spec() -> DriveSpec {
    let zone = Zone {
        first_cylinder: 0,
        last_cylinder: 9,
        sectors: 10,
        offset: 0,
        track_skew: 2 * REVOLUTION / 10,
        cylinder_skew: 3 * REVOLUTION / 10,
        unused: 0,
        spares: 0,
        slips: vec![],
        remaps: vec![],
    };
    DriveSpec {
        name: "small".to_owned(),
        layout: Layout::new(2, Mapping::Normal, Sparing::Zone, 1, vec![zone]).unwrap(),
        mechanics: Mechanics {
            rpm: 6_000,
            seek_ns: (0..10).map(|d| if d == 0 { 0 } else { 900_000 + d * 100_000 }).collect(),
            head_switch_ns: 500_000,
            settle_ns: 250_000,
            average_rotation: false,
        },
        control: Control {
            block_ns: (2_000, 2_000),
            request_ns: 0,
            read_hit_ns: (10_000, 20_000),
            read_miss_ns: (30_000, 40_000),
            write_hit_ns: (50_000, 60_000),
            write_miss_ns: (70_000, 80_000),
            read_complete_ns: 0,
            write_complete_ns: 0,
            prepare_ns: 0,
            reselect_ns: (0, 0),
            read_disconnect_ns: (0, 0),
            write_disconnect_ns: 0,
            hold_read: false,
            hold_write: false,
            never_disconnect: false,
            extra_disconnect: None,
            least_write_seek_ns: 0,
        },
        buffer: Buffer {
            segments: 2,
            blocks: 40,
            write_segment: false,
            enabled: true,
            read_ahead: ReadAhead::No,
            ahead_max: 0,
            ahead_counts_request: false,
            forget_read: false,
            ahead_on_hit: false,
            write_back: false,
            combine_writes: true,
            hit_on_written: true,
            almost_hit: false,
            free_blocks: false,
            partial_at_once: true,
            sneaky: false,
            stop_in_sector: false,
            read_watermark_e6: 0,
            watermark_of_request: true,
        },
        scheduler: Scheduler::Fcfs,
    }
}

fn read(block: u64, blocks: u64) -> Extent {
    Extent { block, blocks, kind: Kind::Read }
}

fn write(block: u64, blocks: u64) -> Extent {
    Extent { block, blocks, kind: Kind::Write }
}

#[test]
fn a_read_takes_command_seek_rotation_sectors_and_bus() {
    let mut drive = Drive::new(spec());
    // Block 43 lies on cylinder 2, track 4 of the zone: skew 2 + 3 + 2 + 3 = 10 sectors, so that it begins at 3 ms of
    // a turn. Command 0.03 ms, seek 1.1 ms; at 1.13 ms the wait is 1.87 ms; two sectors; the last goes over the bus in
    // 2 us.
    assert_eq!(drive.serve(0, read(43, 2)), 5_002_000);
    // Again, after a turn: it is in the buffer. Command 10 us, two blocks.
    assert_eq!(drive.serve(20_000_000, read(43, 2)), 20_014_000);
    // Sector 3 of the other track: switch 0.5 ms, skew 2: it begins at 5 ms of a turn.
    assert_eq!(drive.serve(40_000_000, read(53, 1)), 46_002_000);
}

#[test]
fn a_write_settles_and_ends_on_the_medium() {
    let mut drive = Drive::new(spec());
    // Command 0.07 ms, seek 1.1 ms and 0.25 ms to settle: at 1.42 ms the wait for 3 ms is 1.58 ms, and two sectors.
    assert_eq!(drive.serve(0, write(43, 2)), 5_000_000);
    // On the track nothing settles: command 0.08 ms after a write, then the wait for the next turn's 3 ms.
    assert_eq!(drive.serve(6_000_000, write(43, 1)), 14_000_000);
    assert_eq!(drive.durable_at(15_000_000), 15_000_000);
}

#[test]
fn settling_may_take_time_off_a_write() {
    let mut spec = spec();
    let (from, to) = (Arm::default(), Arm { cylinder: 2, head: 0 });
    assert_eq!((spec.seek_ns(from, to, false), spec.seek_ns(from, to, true)), (1_100_000, 1_350_000));
    spec.mechanics.settle_ns = -642_000;
    assert_eq!((spec.seek_ns(from, to, false), spec.seek_ns(from, to, true)), (1_100_000, 458_000));
    assert_eq!(spec.seek_ns(from, from, true), 0, "nothing settles on the track");
    spec.mechanics.settle_ns = -2_000_000;
    assert_eq!(spec.seek_ns(from, to, true), 0);
}

#[test]
fn the_bus_takes_its_own_time_for_reads_and_writes() {
    let mut spec = spec();
    spec.control.block_ns = (2_000, 5_000);
    spec.buffer.write_back = true;
    let mut drive = Drive::new(spec);
    // Command 0.05 ms and two blocks of 5 us; back from the buffer, command 20 us after a write and two of 2 us.
    assert_eq!(drive.serve(0, write(43, 2)), 60_000);
    assert_eq!(drive.serve(20_000_000, read(43, 2)), 20_024_000);
}

/// Two blocks over a bus of 1.6 ms each are there at 1.67 and 3.27 ms; the first block's place passes at 3 ms.
#[test]
fn a_drive_with_extra_disconnections_waits_for_the_first_blocks_of_a_write() {
    let mut spec = spec();
    spec.control.block_ns.1 = 1_600_000;
    assert_eq!(Drive::new(spec.clone()).serve(0, write(43, 2)), 5_000_000);
    let none = ExtraDisconnect { command_ns: 0, disconnect_ns: 0, between_ns: 0, again_ns: 0, seek_delta_ns: 0 };
    spec.control.extra_disconnect = Some(none);
    assert_eq!(Drive::new(spec.clone()).serve(0, write(43, 2)), 15_000_000);
    let first = [1, 9, 10, 44, 45, 200].map(|blocks| spec.control.first_blocks(blocks));
    assert_eq!(first, [1, 9, 10, 10, 15, 15]);
}

#[test]
fn a_write_back_drive_completes_from_the_buffer_and_delays_the_next() {
    let mut spec = spec();
    spec.buffer.write_back = true;
    let mut drive = Drive::new(spec);
    // Command 0.05 ms and two blocks over the bus.
    assert_eq!(drive.serve(0, write(43, 2)), 54_000);
    assert_eq!(drive.durable_at(60_000), 5_000_000);
    // A request that follows on joins it: command 0.06 ms and a block.
    assert_eq!(drive.serve(60_000, write(45, 1)), 122_000);
    assert_eq!(drive.durable_at(130_000), 6_000_000);
    // A read waits for the medium: block 43 is then in the buffer and goes over the bus.
    assert_eq!(drive.serve(130_000, read(45, 1)), 6_002_000);
    assert_eq!(drive.durable_at(7_000_000), 7_000_000);
}

#[test]
fn read_ahead_respects_its_limit_and_hits_cost_bus_time_only() {
    for (read_ahead, hits) in
        [(ReadAhead::No, 0), (ReadAhead::Track, 4), (ReadAhead::Cylinder, 14), (ReadAhead::Segment, 20)]
    {
        let mut spec = spec();
        spec.buffer.read_ahead = read_ahead;
        spec.buffer.ahead_max = 20;
        let mut drive = Drive::new(spec);
        let mut now = drive.serve(0, read(44, 2)) + 100_000_000;
        let mut found = 0;
        for block in 46..100 {
            let done = drive.serve(now, read(block, 1));
            if done - now != 12_000 {
                break;
            }
            found += 1;
            // Without a pause long enough to read more than the limit moves on.
            now = done;
        }
        // Each hit moves the limit of Segment on, but nothing reads on without being asked.
        assert_eq!(found, hits, "{read_ahead:?}");
    }
}

#[test]
fn a_request_during_read_ahead_uses_the_data_read_so_far() {
    let mut spec = spec();
    spec.buffer.read_ahead = ReadAhead::Segment;
    spec.buffer.ahead_max = 20;
    let mut drive = Drive::new(spec);
    // Block 0 begins to pass at 10 ms, 10 ms - 0.03 ms after the command; done at 11.002 ms. Block 4 has passed at 15
    // ms.
    assert_eq!(drive.serve(0, read(0, 1)), 11_002_000);
    // At 13.5 ms blocks 1 and 2 are there, 3 and 4 on their way: the last goes over the bus when it has passed.
    assert_eq!(drive.serve(13_500_000, read(1, 4)), 15_002_000);
    // Another request stops reading ahead at the end of the sector that is passing.
    let mut other = drive.clone();
    let stopped = other.serve(15_300_000, read(199, 1));
    assert!(stopped > 16_000_000 + 1_800_000, "{stopped}");
}

#[test]
fn a_slow_bus_dominates_and_large_requests_fit_small_segments() {
    let mut spec = spec();
    spec.control.block_ns = (3_000_000, 3_000_000);
    spec.buffer.blocks = 4;
    let mut drive = Drive::new(spec);
    let done = drive.serve(0, read(0, 8));
    // First block at 11 ms, then eight blocks of 3 ms; no block is lost, each turn that is missed only delays.
    assert!(done >= 11_000_000 + 8 * 3_000_000, "{done}");
    assert!(done < 100_000_000, "{done}");
}

#[test]
fn schedulers_differ_in_order() {
    let total = |scheduler| {
        let mut disk = Disk::new(Device::Drive(Box::new(Drive::new(spec()))), scheduler);
        for (id, block) in [190, 5, 150, 25, 110, 45, 70, 65].into_iter().enumerate() {
            disk.handle_request(Time(0), id as u64, read(block, 1)).unwrap();
        }
        let mut order = vec![];
        while let Some(next) = disk.poll_timeout() {
            disk.handle_timeout(next);
            while let Some(completion) = disk.poll_completion() {
                assert!(completion.arrived <= completion.began && completion.began < completion.done);
                order.push((completion.id, completion.done.0));
            }
        }
        assert_eq!(disk.outstanding(), 0);
        order
    };
    let ids = |scheduler| total(scheduler).iter().map(|one| one.0).collect::<Vec<_>>();
    assert_eq!(ids(Scheduler::Fcfs), [0, 1, 2, 3, 4, 5, 6, 7]);
    // The first goes at once, to cylinder 9; from there on down, or from the lowest.
    assert_eq!(ids(Scheduler::Look), [0, 2, 4, 6, 7, 5, 3, 1]);
    assert_eq!(ids(Scheduler::Sstf), [0, 2, 4, 6, 7, 5, 3, 1]);
    assert_eq!(ids(Scheduler::CLook), [0, 1, 3, 5, 6, 7, 4, 2]);
    let last = |scheduler| total(scheduler).last().unwrap().1;
    assert!(last(Scheduler::Sstf) < last(Scheduler::Fcfs) && last(Scheduler::Sptf) < last(Scheduler::Fcfs));
}

#[test]
fn a_request_beyond_the_disk_is_refused() {
    let mut disk = Disk::new(named("cheetah-9lp").unwrap(), Scheduler::Fcfs);
    let blocks = disk.device().blocks();
    assert_eq!(disk.handle_request(Time(0), 1, read(blocks - 1, 1)), Ok(()));
    for bad in [read(blocks, 1), read(0, blocks + 1), read(u64::MAX, 2), read(5, 0)] {
        let error = disk.handle_request(Time(0), 1, bad).unwrap_err();
        assert!(error.contains("cheetah-9lp has 17918387 blocks"), "{error}");
    }
    assert_eq!(disk.outstanding(), 1);
    assert!(device("floppy").unwrap_err().to_string().contains("cheetah-9lp, nvme, or a .parv"));
}

proptest! {
    #[test]
    fn completions_follow_arrivals_and_bus_time(
        requests in prop::collection::vec((0u64..190, 1u64..10, any::<bool>(), 0u64..30_000_000), 1..60),
        read_ahead in prop::sample::select(vec![
            ReadAhead::No, ReadAhead::Track, ReadAhead::Cylinder, ReadAhead::Segment,
            ReadAhead::TrackThenNext]),
        switches in any::<u16>(),
        segments in 2usize..5,
        room in 3u64..50,
    ) {
        let mut spec = spec();
        let on = |bit: u16| switches >> bit & 1 == 1;
        spec.buffer.read_ahead = read_ahead;
        spec.buffer.segments = segments;
        spec.buffer.blocks = room;
        (spec.buffer.write_back, spec.buffer.write_segment, spec.buffer.hit_on_written) = (on(0), on(1), on(2));
        (spec.buffer.almost_hit, spec.buffer.free_blocks) = (on(3), on(4));
        (spec.buffer.sneaky, spec.buffer.stop_in_sector) = (on(7), on(8));
        (spec.buffer.ahead_on_hit, spec.buffer.forget_read, spec.control.never_disconnect) = (on(9), on(10), on(11));
        (spec.control.hold_read, spec.control.hold_write, spec.buffer.partial_at_once) = (on(12), on(13), on(14));
        spec.buffer.read_watermark_e6 = if on(15) { 750_000 } else { 0 };
        let turn = spec.revolution_ns();
        let mut drive = Drive::new(spec);
        let mut now = 0;
        for (block, blocks, is_read, pause) in requests {
            let extent = if is_read { read(block, blocks) } else { write(block, blocks) };
            let done = drive.serve(now, extent);
            prop_assert!(done >= now + blocks * 2_000, "{extent:?} at {now}: {done}");
            // Earlier writes, seek, and a turn for each block that the small segment makes wait.
            prop_assert!(done <= now + (30 + 2 * blocks) * turn, "{extent:?} at {now}: {done}");
            prop_assert!(drive.durable_at(done) >= done);
            now = done + pause;
        }
    }
}
