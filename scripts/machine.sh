# Parts of a virtual machine: a kernel of Debian's, unpacked and never installed, and a first program with modules.
# To be sourced; all is made in the present folder.

# kernel PACKAGE: unpacks the kernel that a package of Debian's depends on to image/, and sets version.
kernel() {
    local package
    if [[ ! -e image/.complete ]]; then
        package=$(apt-cache depends "$1" | awk '/Depends: linux-image/ { print $2; exit }')
        rm -rf image ./*.deb && apt-get download -qq "$package"
        dpkg-deb -x "$package"_*.deb image
        rm -f ./*.deb && touch image/.complete
    fi
    version=$(basename image/lib/modules/*)
    depmod -b image "$version"
}

# first FOLDER MODULE ...: makes a folder with busybox, the modules with all that they need, in order, and stdin as its
# first program; packs it as FOLDER.gz.
first() {
    local folder=$1 number=100 module
    shift
    rm -rf "$folder" && mkdir -p "$folder"/{bin,dev,host,modules,new,proc,sys,upper}
    cp "$(command -v busybox)" "$folder/bin/busybox"
    for module in "$@"; do modprobe -d image -S "$version" --show-depends "$module"; done |
        awk '$1 == "insmod" && !seen[$2]++ { print $2 }' |
        while read -r file; do cp "$file" "$folder/modules/$number-${file##*/}"; number=$((number + 1)); done
    cat >"$folder/init"
    chmod +x "$folder/init"
    (cd "$folder" && find . | cpio --quiet -o -H newc | gzip) >"$folder.gz"
}

# shared HERE MODULES LIMIT_S [QEMU OPTION ...] -- COMMAND ...: boots the kernel with this machine's name and files (all
# that is written there is gone with it), loads modules, runs the command in the folder HERE and prints its output.
# Fails if it fails. Without KVM, so that it runs inside others.
shared() {
    local here=$1 modules=$2 limit_s=$3 options=() socket=files.sock files code
    shift 3
    while [[ $1 != -- ]]; do options+=("$1"); shift; done
    shift

    # Modules for the shared files, then the machine's own root below a file system in memory.
    sed "s|__WORK__|$PWD|" <<'INIT' | first first virtio_pci virtiofs overlay
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

    cat >command <<COMMAND
export PATH=$PATH HOME=/tmp
mkdir -p /lib/modules && cp -r $PWD/image/lib/modules/$version /lib/modules/
for module in $modules; do modprobe \$module; done
hostname $(uname -n)
ip link set lo up
cd $here && ${*@Q}
echo "exit code: \$?"
sync
echo o >/proc/sysrq-trigger
sleep 60
COMMAND

    # By its short name: a socket's has room for 107 characters.
    rm -f "$socket"
    /usr/lib/qemu/virtiofsd --socket-path="$socket" -o source=/ -o cache=auto -o sandbox=chroot >files.log 2>&1 &
    files=$!
    trap "kill $files 2>/dev/null || true; rm -f '$socket'" EXIT
    for _ in $(seq 50); do [[ -S $socket ]] && break; sleep 0.1; done
    timeout "$limit_s" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 3G -no-reboot -nographic \
        -nodefaults -serial stdio \
        -object memory-backend-memfd,id=memory,size=3G,share=on -numa node,memdev=memory \
        -chardev socket,id=files,path="$socket" -device vhost-user-fs-pci,chardev=files,tag=root \
        -kernel image/boot/vmlinuz-* -initrd first.gz "${options[@]}" \
        -append "console=ttyS0 quiet panic=1 tsc=unstable" </dev/null | tee console.log
    # The machine has no other way to return an exit code.
    code=$(tr -d '\r' <console.log | sed -n 's/^exit code: //p')
    [[ ${code:-1} == 0 ]]
}
