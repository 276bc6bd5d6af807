#!/usr/bin/env bash
# Runs a module of tests/power_cut in a virtual machine with Debian's cloud kernel, which has dm-log-writes and
# dm-flakey: over this machine's files, with disks of its own.
#
#   power_cut.sh MODULE WORK ARGUMENT ...   python -m tests.power_cut.MODULE WORK ARGUMENT ...; WORK has the disks
#                                           sources.img, disk.img and log.img (/dev/vda to vdc)
#
# PRELOAD names a library that is loaded before all others, to plant a fault.
set -euo pipefail
module=$1 work=$(realpath "$2")
shift 2
cd "$(dirname "$0")/.."
here=$PWD
mkdir -p target/power_cut && cd target/power_cut
# One machine at a time: its files have fixed names.
exec 9>lock && flock 9
. "$here/scripts/machine.sh"
kernel linux-image-cloud-amd64

disks=()
for name in sources disk log; do
    disks+=(-drive "file=$work/$name.img,format=raw,if=none,id=$name,cache=unsafe"
        -device "virtio-blk-pci,drive=$name")
done
shared "$here" "virtio_blk dm-log-writes dm-flakey ext4 xfs" 1800 "${disks[@]}" -- \
    env ${PRELOAD:+"LD_PRELOAD=$PRELOAD"} "$here/.venv/bin/python" -m "tests.power_cut.$module" "$work" "$@"
