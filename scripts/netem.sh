#!/usr/bin/env bash
# Runs tests/netem in a virtual machine with Debian's cloud kernel, which has netem, over this machine's files (read
# only; what is written there is gone with it). For machines whose own kernel has no netem; without KVM, so that it
# runs inside others.
#
#   netem.sh [COMMAND ...]   another command in place of the tests, in this folder
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD work=$PWD/target/netem
mkdir -p "$work" && cd "$work"

. "$here/scripts/machine.sh"
kernel linux-image-cloud-amd64

# Modules for the shared files, then the machine's own root below a file system in memory.
sed "s|__WORK__|$work|" <<'INIT' | first first virtio_pci virtiofs overlay
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev
for module in /modules/*; do insmod "$module"; done
mount -t virtiofs -o ro root /host && mount -t tmpfs upper /upper && mkdir /upper/changes /upper/work
mount -t overlay -o lowerdir=/host,upperdir=/upper/changes,workdir=/upper/work root /new
for name in proc sys dev; do mount --move /$name /new/$name; done
mkdir -p /new/dev/shm && mount -t tmpfs shm /new/dev/shm && mount -t tmpfs run /new/run && mount -t tmpfs tmp /new/tmp
mount -t bpf bpf /new/sys/fs/bpf
exec chroot /new /bin/bash __WORK__/command
INIT

words=("$here/.venv/bin/python" -m pytest -q -p no:cacheprovider tests/netem)
(($# == 0)) || words=("$@")
cat >command <<COMMAND
export PATH=$PATH HOME=/tmp
mkdir -p /lib/modules && cp -r $work/image/lib/modules/$version /lib/modules/
for module in tun veth sch_netem; do modprobe \$module; done
ip link set lo up
cd $here && ${words[*]@Q}
echo "exit code: \$?"
sync
echo o >/proc/sysrq-trigger
sleep 60
COMMAND

# By its short name: a socket's has room for 107 characters.
socket=files.sock
rm -f "$socket"
/usr/lib/qemu/virtiofsd --socket-path="$socket" -o source=/ -o cache=auto -o sandbox=chroot >files.log 2>&1 &
files=$!
trap 'kill $files 2>/dev/null || true; rm -f "$socket"' EXIT
for _ in $(seq 50); do [[ -S $socket ]] && break; sleep 0.1; done
timeout 1800 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 3G -no-reboot -nographic -nodefaults \
    -serial stdio \
    -object memory-backend-memfd,id=memory,size=3G,share=on -numa node,memdev=memory \
    -chardev socket,id=files,path="$socket" -device vhost-user-fs-pci,chardev=files,tag=root \
    -kernel image/boot/vmlinuz-* -initrd first.gz \
    -append "console=ttyS0 quiet panic=1 tsc=unstable" </dev/null | tee console.log
# The machine has no other way to return an exit code.
code=$(tr -d '\r' <console.log | sed -n 's/^exit code: //p')
[[ ${code:-1} == 0 ]]
