#!/usr/bin/env bash
# Runs Linux's own congestion controls beside ours in a virtual machine with Debian's kernel 6.1, which has them as
# modules. The machine has one processor of 500 million instructions per second by its own clock, and its waits take no
# time: what it does does not depend on how busy this machine is.
#
#   modules.sh version
#   modules.sh FIRST RUNS OBJECTS TRAFFIC SECONDS
#
# The first form fetches the kernel and prints its version.
# FIRST program, its list of RUNS, a folder of BPF OBJECTS, the program that carries a connection (TRAFFIC); the machine
# ends after so many SECONDS.
set -euo pipefail
if [[ $1 != version ]]; then
    first_program=$(realpath "$1") runs=$(realpath "$2") objects=$(realpath "$3") traffic=$(realpath "$4") limit_s=$5
fi
cd "$(dirname "$0")/.."
. scripts/machine.sh
mkdir -p target/modules && cd target/modules
kernel linux-image-amd64
[[ $1 != version ]] || { echo "$version" && exit; }
first first veth sch_netem tcp_bic tcp_highspeed tcp_htcp tcp_illinois tcp_scalable tcp_vegas tcp_westwood tcp_bbr \
    <"$first_program"

# Beside busybox the first program needs tools with their libraries: it sees no file of this machine.
mkdir -p first/{boot,own,objects,lib64}
cp image/boot/config-* first/boot/
cp "$runs" first/runs
cp "$objects"/*.o first/objects/
cp "$traffic" first/own/traffic
for tool in ip tc bpftool; do
    file=$(PATH=$PATH:/usr/sbin:/sbin command -v $tool)
    cp "$file" first/own/
    ldd "$file" | awk '/=> \// { print $3 }' | xargs -I{} cp -L {} first/own/
done
cp -L /lib64/ld-linux-x86-64.so.2 first/lib64/
(cd first && find . | cpio --quiet -o -H newc | gzip -1) >machine.gz

exec timeout "$limit_s" qemu-system-x86_64 -accel tcg,thread=single -smp 1 -icount shift=1,sleep=off -rtc clock=vm \
    -cpu max -m 1G -no-reboot -nographic -nodefaults -serial stdio -kernel image/boot/vmlinuz-* -initrd machine.gz \
    -append "console=ttyS0 quiet panic=1 tsc=reliable clocksource=tsc mitigations=off random.trust_cpu=on" </dev/null
