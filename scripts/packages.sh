#!/usr/bin/env bash
# Installs the Debian packages that one act needs, only those that are missing, and checks the compilers.
#
#   packages.sh build   what the native module and the virtual environment need
#   packages.sh test    what some tests need beside that: each of them says so and is skipped where it is missing
#   packages.sh peers   the other simulators, for `make bench` and `make fidelity`
#   packages.sh netem   a virtual machine, for `make netem`
#   packages.sh power-cut   a virtual machine with disks that lose their power, for `make power-cut`
#   packages.sh modules a virtual machine with Linux's own congestion controls, for `make modules`
#   packages.sh wheel   what builds the libraries that a wheel brings along, for `make wheel`
#   packages.sh agent   what builds the libraries that the static agent has linked in, for `make agent`
#   packages.sh wasm    what builds the crates without I/O for WebAssembly, for `make wasm`
#   packages.sh cross   a C compiler, Rust's library and an emulator for aarch64, for `make golden`, `make wheel` and
#                       `make agent`
#
# Without root or sudo nothing is installed: the missing packages are named, and it fails only for `build`.
set -euo pipefail

case "${1:-}" in
    # From make on: what builds libbpf, which is linked into the native module, and what that needs.
    build) packages=(gcc libc6-dev python3-venv make pkg-config libelf-dev zlib1g-dev) ;;
    test)  packages=(clang-16 tshark iproute2 iputils-ping iperf3 libiscsi-bin
           qemu-utils qemu-block-extra tgt curl openssh-client openssh-server sudo vsftpd rsync rclone lftp ns2
           postgresql mariadb-server-core mariadb-client-core chromium open-isns-server g++ libudt-dev srt-tools
           prometheus iputils-tracepath traceroute xfsprogs) ;;
    peers) packages=(ns2 libns3-dev g++ pkg-config) ;;
    netem) packages=(qemu-system-x86 qemu-system-common busybox-static kmod cpio) ;;
    power-cut) packages=(qemu-system-x86 qemu-system-common busybox-static kmod cpio dmsetup xfsprogs gcc libc6-dev) ;;
    modules) packages=(qemu-system-x86 qemu-system-common busybox-static kmod cpio bpftool clang-16 iproute2) ;;
    # They build libelf from sources, which a wheel has linked in (NOTICE).
    wheel) packages=(autoconf automake autopoint flex bison gawk) ;;
    agent) packages=(autoconf automake autopoint flex bison gawk file) ;;
    cross) packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static) ;;
    wasm)  packages=(clang-16) ;;
    *) echo "usage: $0 build|test|peers|netem|power-cut|modules|wheel|agent|wasm|cross" >&2; exit 2 ;;
esac
act=$1

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }

# Tests that the need behind a package is met already, from any source (a compiler under /usr/local, pyenv's Python).
met() {
    case "$1" in
        gcc|libc6-dev)
            command -v cc >/dev/null && echo 'int main(void){return 0;}' | cc -x c -o /dev/null - 2>/dev/null ;;
        python3-venv) "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null ;;
        make|pkg-config) command -v "$1" >/dev/null ;;
        libelf-dev) [[ -e $(cc -print-file-name=libelf.so) ]] ;;
        zlib1g-dev) [[ -e $(cc -print-file-name=libz.so) ]] ;;
        *) command -v dpkg-query >/dev/null && installed "$1" ;;
    esac
}

# Packages that bring a daemon, and its service. It is not to run here, now or when the machine starts: tests start
# their own. (mariadb-server-core brings MariaDB's server without a service.)
declare -A daemons=([openssh-server]=ssh [vsftpd]=vsftpd [tgt]=tgt [postgresql]=postgresql
                  [open-isns-server]=isnsd [rsync]=rsync [prometheus]=prometheus)

# Installs a package without letting the maintainer's scripts start anything (policy-rc.d is Debian's way to forbid it).
install_quietly() {
    local policy=/usr/sbin/policy-rc.d made=
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$policy" >/dev/null
        "${root[@]}" chmod 755 "$policy"
        made=1
    fi
    local status=0
    "${apt[@]}" install -y --no-install-recommends "$1" >/dev/null || status=$?
    [[ -z $made ]] || "${root[@]}" rm -f "$policy"
    if ((status == 0)); then
        "${root[@]}" update-rc.d "${daemons[$1]}" disable >/dev/null
        # Some releases begin by a socket.
        "${root[@]}" systemctl disable "${daemons[$1]}.socket" >/dev/null 2>&1 || true
    fi
    return "$status"
}

missing=()
for package in "${packages[@]}"; do met "$package" || missing+=("$package"); done

if ((${#missing[@]})); then
    if ! command -v apt-get >/dev/null; then root=none
    elif ((EUID == 0)); then root=()
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then root=(sudo)
    else root=none
    fi
    if [[ ${root[*]-} == none ]]; then
        echo "elephan: missing: ${missing[*]}. As root: apt-get install --no-install-recommends ${missing[*]}" >&2
        [[ $act == test ]] || exit 1
    else
        echo "elephan: installing ${missing[*]}"
        apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600)
        "${apt[@]}" update
        # One by one for tests: a package that this release does not have costs its own test and no other.
        if [[ $act == test ]]; then
            for package in "${missing[@]}"; do
                if [[ -n ${daemons[$package]-} ]]; then
                    install_quietly "$package"
                else
                    "${apt[@]}" install -y --no-install-recommends "$package" >/dev/null
                fi ||
                    echo "elephan: could not install $package; the tests that need it will be skipped" >&2
            done
        else
            "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null
        fi
    fi
fi

if [[ $act == build ]]; then
    if ! command -v cargo >/dev/null; then
        echo "elephan: Rust is missing (cargo is not on the PATH). Install it from https://rustup.rs" >&2
        exit 1
    fi
    "${PYTHON:-python3}" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        echo "elephan: Python 3.11 or newer is needed; make PYTHON=/path/to/python3.11" >&2
        exit 1
    }
fi

case $act in cross) target=aarch64-unknown-linux-gnu ;; wasm) target=wasm32-unknown-unknown ;; *) target= ;; esac
if [[ -n $target && ! -d $(rustc --print sysroot)/lib/rustlib/$target ]] && ! rustup target add "$target"; then
    echo "elephan: Rust's library for $target is missing: rustup target add $target" >&2
    exit 1
fi
