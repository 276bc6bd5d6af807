//! The headers that an algorithm is compiled with.

/// The headers of an algorithm, path below the include folder and text: cc.h, what it shares with its
/// environments, the environments, what records, listens and steps.
pub const HEADERS: [(&str, &str); 8] = [
    ("cc.h", include_str!("../../../congestion/cc.h")),
    ("definitions.h", include_str!("../../../congestion/definitions.h")),
    ("native/sock.h", include_str!("../../../congestion/native/sock.h")),
    ("native/env.h", include_str!("../../../congestion/native/env.h")),
    ("bpf/env.h", include_str!("../../../congestion/bpf/env.h")),
    ("bpf/record.h", include_str!("../../../congestion/bpf/record.h")),
    ("bpf/cwnd_reduction.h", include_str!("../../../congestion/bpf/cwnd_reduction.h")),
    ("bpf/step.h", include_str!("../../../congestion/bpf/step.h")),
];
