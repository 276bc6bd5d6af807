//! Tests of the crate `quic`.
