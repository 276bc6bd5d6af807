#!/usr/bin/env bash
# Runs tests/netem in a virtual machine with Debian's cloud kernel, which has netem, over this machine's files (read
# only; what is written there is gone with it). For machines whose own kernel has no netem.
#
#   netem.sh [COMMAND ...]   another command in place of the tests, in this folder
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
mkdir -p target/netem && cd target/netem
. "$here/scripts/machine.sh"
kernel linux-image-cloud-amd64

words=("$here/.venv/bin/python" -m pytest -q -p no:cacheprovider tests/netem)
(($# == 0)) || words=("$@")
shared "$here" "tun veth sch_netem" 1800 -- "${words[@]}"
