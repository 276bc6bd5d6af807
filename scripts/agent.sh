#!/usr/bin/env bash
# Builds the agent for real hosts as static binaries, target/agent/elephan-agent-MACHINE: for this machine, and on
# x86_64 for aarch64 too, with Debian's cross compiler. Without that compiler it names what is missing, and succeeds.
#
#   agent.sh            all that can be built here
#   agent.sh MACHINE    that one, or it fails
set -euo pipefail
cd "$(dirname "$0")/.."

# agent MACHINE: builds and checks one. libelf and zlib are built from sources, so that nothing of this machine's
# distribution is linked in but its C library, for which a host needs no other.
agent() {
    local machine=$1 began=$SECONDS target=$1-unknown-linux-gnu
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc RUSTFLAGS="-C target-feature=+crt-static" \
        cargo build --quiet --locked -p agent --profile static --features vendored --target "$target"
    mkdir -p target/agent
    # A new file: one that runs could not be written.
    cp --remove-destination "target/$target/static/elephan-agent" "target/agent/elephan-agent-$machine"
    file -b "target/agent/elephan-agent-$machine" | grep -qE 'statically linked|static-pie linked' || {
        echo "elephan: target/agent/elephan-agent-$machine is not static" >&2
        exit 1
    }
    echo "elephan: built in $((SECONDS - began)) s: $(du -h "target/agent/elephan-agent-$machine")"
}

here=$(uname -m)
scripts/packages.sh agent
case "${1:-all}" in
    "$here") agent "$here" ;;
    aarch64) scripts/packages.sh cross && agent aarch64 ;;
    all)
        agent "$here"
        [[ $here == x86_64 ]] || exit 0
        if scripts/packages.sh cross; then
            agent aarch64
        else
            echo "not done: the agent for aarch64, which needs what is missing above"
        fi
        ;;
    *) echo "usage: $0 [$here|aarch64]" >&2; exit 2 ;;
esac
