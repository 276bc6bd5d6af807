//! Arbitrary input of peers and files: each function takes any bytes and panics when an invariant is broken. `cargo
//! test` runs them on some thousand inputs drawn from a seed (`tests/hostile/drawn.rs`); `fuzz/` runs them under
//! libFuzzer, guided by coverage.

#[cfg(test)]
mod drawn;
mod fc_edge;
mod fc_frame;
mod fc_peers;
mod fc_readers;
mod formats;
mod input;
mod pdu;
mod session;
mod target;

/// Takes any bytes.
pub type Hostile = fn(&[u8]);

/// Name and function of each.
pub const ALL: [(&str, Hostile); 13] = [
    ("wire", formats::wire),
    ("text", formats::text),
    ("trace", formats::trace),
    ("disksim", formats::disksim),
    ("target", target::run),
    ("session", session::run),
    ("fc-fields", fc_readers::fields),
    ("fc-streams", fc_readers::streams),
    ("fc-forwarder", fc_edge::forwarder),
    ("fc-nport", fc_edge::n_port),
    ("ifcp", fc_peers::gateway),
    ("fcip", fc_peers::tunnel),
    ("isns", fc_peers::name_server),
];
