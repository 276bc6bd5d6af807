#!/usr/bin/env bash
# Builds manylinux wheels in out/wheel, and runs README's commands from each (tests/wheel): one for this machine, and
# on x86_64 one for aarch64 with Debian's cross compiler. Without that compiler it names what is missing, and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."

# The oldest C library that a wheel of Debian 12's runs with: Debian 12, Ubuntu 22.04, RHEL 9. maturin refuses a lower
# one for both processors: from 2.34 on, pthread and dl functions are versioned symbols of libc itself.
manylinux=${MANYLINUX:-manylinux_2_34}
aarch64=aarch64-unknown-linux-gnu

# wheel MACHINE [ARGUMENT ...]: builds and tests one, with more arguments for maturin.
wheel() {
    local machine=$1 began=$SECONDS
    shift
    VIRTUAL_ENV=$PWD/.venv .venv/bin/maturin build --quiet --release --features vendored \
        --compatibility "$manylinux" --out out/wheel "$@"
    echo "elephan: built in $((SECONDS - began)) s: $(du -h out/wheel/*_"$machine".whl)"
    .venv/bin/python -m tests.wheel out/wheel/*_"$machine".whl
}

scripts/packages.sh wheel
# The agents that an installed elephan sends to hosts.
scripts/agent.sh
mkdir -p elephan/hosts/bin
cp --remove-destination target/agent/elephan-agent-* elephan/hosts/bin/
rm -rf out/wheel
wheel "$(uname -m)"

[[ $(uname -m) == x86_64 ]] || exit 0
if scripts/packages.sh cross; then
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc wheel aarch64 --target $aarch64
else
    echo "not done: a wheel for aarch64, which needs what is missing above"
fi
