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
