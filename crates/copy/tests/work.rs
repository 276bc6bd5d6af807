//! The sender's queue and the rate limit.

use copy::{Action, Bucket, Plan, Task, Work};

fn taken(work: &mut Work, bytes: u64) -> Vec<(u64, u64)> {
    let mut tasks = vec![];
    work.take(bytes, &mut tasks);
    tasks.iter().map(|task| (task.number, task.chunk)).collect()
}

#[test]
fn small_files_are_taken_many_at_once_and_lost_chunks_first() {
    let mut work = Work::default();
    for number in 0..5 {
        work.push(number, 0, 0, 1, Plan::new(300, None));
    }
    work.push(5, 0, 1, 4, Plan::new(1 << 20, Some(1 << 18)));
    let hash = Task { number: 6, generation: 0, chunk: 0, action: Action::Hash };
    work.push_hash(hash);
    assert_eq!(taken(&mut work, 1000), [(0, 0), (1, 0), (2, 0)]);
    let lost = Task { number: 1, generation: 0, chunk: 0, action: Action::Send };
    work.push_again(lost.clone());
    assert_eq!(taken(&mut work, 1000), [(1, 0)]);
    assert_eq!(taken(&mut work, 1000), [(3, 0), (4, 0)]);
    // One chunk at least, however large.
    assert_eq!(taken(&mut work, 1000), [(5, 1)]);
    assert_eq!(taken(&mut work, 1 << 19), [(5, 2), (5, 3)]);
    assert_eq!(taken(&mut work, 1000), [(6, 0)]);
    assert!(work.is_empty() && taken(&mut work, 1000).is_empty());
}

#[test]
fn hashes_to_compare_go_with_their_chunks() {
    let mut work = Work::default();
    work.push_compare(0, 0, 3, vec![[3; 32], [4; 32]], Plan::new(1 << 20, Some(4096)));
    let mut tasks = vec![];
    work.take(4096, &mut tasks);
    work.take(100_000, &mut tasks);
    let found: Vec<_> = tasks.iter().map(|task| (task.chunk, task.action)).collect();
    assert_eq!(found, [(3, Action::Compare([3; 32])), (4, Action::Compare([4; 32]))]);
}

#[test]
fn a_bucket_gives_its_rate() {
    let mut bucket = Bucket::new(1_000_000, 10_000, 0);
    assert_eq!(bucket.take(10_000, 0), 0);
    let (mut now_ns, mut sent) = (0, 0);
    while now_ns < 1_000_000_000 {
        now_ns += bucket.take(5_000, now_ns);
        sent += 5_000;
    }
    assert_eq!(sent, 1_000_000 + 5_000 - 5_000);
    // A pause fills no more than the burst; without a limit nothing waits.
    assert!(bucket.take(25_000, now_ns + 10_000_000_000) >= 15_000_000);
    bucket.set_rate(0, now_ns + 11_000_000_000);
    assert_eq!(bucket.take(1 << 40, now_ns + 11_000_000_000), 0);
    let mut fast = Bucket::new(50_000_000_000, 1 << 20, 0);
    fast.take(u64::MAX, u64::MAX);
}
