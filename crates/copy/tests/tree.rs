//! Trees: chunks put together are what BLAKE3 gives for the whole.

use copy::{ChunkHashes, Plan};
use proptest::prelude::*;

fn by_chunks(data: &[u8], plan: &Plan) -> [u8; 32] {
    let mut hashes = ChunkHashes::new(plan);
    // From the end, as streams may bring them.
    for chunk in (0..plan.count()).rev() {
        let (begin, length) = (plan.begin(chunk) as usize, plan.length(chunk) as usize);
        let mut hasher = plan.hasher(chunk);
        for piece in data[begin..begin + length].chunks(3000) {
            match piece.iter().all(|&byte| byte == 0) {
                true => hasher.zeros(piece.len() as u64),
                false => hasher.update(piece),
            }
        }
        assert!(hashes.set(chunk, hasher.finish()));
    }
    hashes.file_hash().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn chunks_give_the_hash_of_the_file(size in 0_usize..200_000, power in 12_u32..17, zeros in any::<bool>()) {
        let mut data = vec![0; size];
        if !zeros {
            blake3::Hasher::new().finalize_xof().fill(&mut data);
        }
        let plan = Plan::new(size as u64, Some(1 << power));
        prop_assert_eq!(by_chunks(&data, &plan), *blake3::hash(&data).as_bytes());
    }
}

#[test]
fn sizes_at_the_edges_of_chunks() {
    for size in [0, 1, 1024, 4095, 4096, 4097, 8192, 8193, 12_288, 16_384, 20_481] {
        let data: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let plan = Plan::new(size as u64, Some(4096));
        assert_eq!(by_chunks(&data, &plan), *blake3::hash(&data).as_bytes(), "{size}");
    }
}

#[test]
fn chunks_grow_with_the_file() {
    for (size, chunk, count) in [
        (0, 262_144, 1),
        (262_145, 262_144, 2),
        (10_000_000_000, 1 << 20, 9537),
        (1_000_000_000_000, 16 << 20, 59_605),
        (copy::FILE_MAX, 16 << 20, 1 << 24),
    ] {
        let plan = Plan::new(size, None);
        assert_eq!((plan.chunk_bytes(), plan.count()), (chunk, count));
        assert!((0..plan.count().min(3)).chain([plan.count() - 1]).all(|at| plan.length(at) <= chunk));
        // A size alone costs nothing.
        let hashes = ChunkHashes::new(&plan);
        assert_eq!(hashes.missing_runs(), [(0, count)]);
    }
}

#[test]
fn missing_chunks_are_told_as_runs() {
    let plan = Plan::new(4096 * 1000, Some(4096));
    let mut hashes = ChunkHashes::new(&plan);
    for chunk in [0, 1, 5, 299, 300, 999] {
        hashes.set(chunk, [1; 32]);
    }
    assert_eq!(hashes.missing_runs(), [(2, 5), (6, 299), (301, 999)]);
    hashes.clear(300);
    assert_eq!((hashes.missing_runs()[2], hashes.missing()), ((300, 999), 995));
}
