#!/bin/sh
# Fuzzes what reads from peers and files: run.sh SECONDS [FUNCTION ...]. All functions at once, each in a process of
# its own with at most 1 GiB of memory and 10 s for an input. What was found lies in fuzz/artifacts, logs in
# fuzz/artifacts/FUNCTION.log.
set -eu
cd "$(dirname "$0")"
seconds=${1:?usage: run.sh SECONDS [FUNCTION ...]}
shift
[ $# -gt 0 ] || set -- wire text trace disksim target session fc-fields fc-streams fc-forwarder fc-nport ifcp fcip \
    isns copy-message copy-frames copy-journal copy-records
# Compiler flags that libFuzzer needs (cargo-fuzz gives the same); stable Rust takes them.
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing"
cargo build --release --target x86_64-unknown-linux-gnu
mkdir -p artifacts
code=0
pids=
for name; do
    mkdir -p "corpus/$name"
    ELEPHAN_FUZZ=$name target/x86_64-unknown-linux-gnu/release/hostile "corpus/$name" -max_total_time="$seconds" \
        -max_len=4096 -len_control=20 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256 -print_final_stats=1 \
        -artifact_prefix="artifacts/$name-" >"artifacts/$name.log" 2>&1 &
    pids="$pids $!"
done
for pid in $pids; do wait "$pid" || code=1; done
grep -H "stat::number_of_executed_units\|SUMMARY" artifacts/*.log || true
exit $code
