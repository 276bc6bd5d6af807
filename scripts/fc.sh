#!/usr/bin/env bash
# Linux's own Fibre Channel stack against a gateway: runs tests/fc, which boots virtual machines with Debian's kernel
# (the cloud kernel has no fcoe) whose Ethernet is a gateway's socket. Without KVM and without networking of this
# machine's.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
mkdir -p target/fc && cd target/fc
. "$here/scripts/machine.sh"
kernel linux-image-amd64

# Commands come on the second serial port, a line each; the first has the kernel's messages.
first first virtio_pci virtio_net crc32c_generic crct10dif_generic sd_mod sg ext4 fcoe configfs target_core_file \
    tcm_fc <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev
for module in /modules/*; do insmod "$module"; done
mount -t configfs config /sys/kernel/config
mkdir -p /scratch /volume && mount -t tmpfs -o size=300m scratch /scratch
# Fair queueing drops frames of FCoE, and the disk is lost.
echo pfifo_fast >/proc/sys/net/core/default_qdisc
exec </dev/ttyS1 >/dev/ttyS1 2>&1
stty raw -echo
echo "== 0"
while read -r command; do
    eval "$command"
    echo "== $?"
done
poweroff -f
INIT

cd "$here"
exec .venv/bin/python -m tests.fc "$@"
