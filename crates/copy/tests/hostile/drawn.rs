//! The functions on inputs that are drawn: any bytes, and small numbers, which mean more.

use super::ALL;
use proptest::collection::vec;
use proptest::prelude::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        vec(any::<u8>(), 0..40),
        vec(0_u8..20, 0..80),
        // The beginning of a frame, and bytes that make paths and keys.
        Just(vec![0x6c, 0x66, 0x65, 0x31, 0, 0, 0, 0]),
        vec(Just(0_u8), 30..40),
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn any_bytes_are_refused_or_within_bounds(bytes in bytes()) {
        for (_, function) in ALL {
            function(&bytes);
        }
    }

    #[test]
    fn a_message_of_each_kind_is_refused_or_within_bounds(kind in 0_u8..19, bytes in bytes()) {
        ALL[0].1(&[&[kind][..], &bytes].concat());
    }
}
