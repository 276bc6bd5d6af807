#!/usr/bin/env bash
# Unpacks Debian's Python of another architecture, with the libraries that it and binary Python packages need, and
# installs nothing: apt works on lists and a state of its own below the folder, without root.
#
#   foreign_python.sh ARCHITECTURE FOLDER    as in foreign_python.sh arm64 target/wheel/arm64
set -euo pipefail
architecture=$1 folder=$2
[[ ! -e $folder/.complete ]] || exit 0

rm -rf "$folder"
mkdir -p "$folder"/apt/{lists/partial,archives/partial} "$folder/root"
folder=$(realpath "$folder")
touch "$folder/apt/status"
apt=(apt-get -qq -o APT::Architecture="$architecture" -o APT::Architectures::="$architecture" -o APT::Sandbox::User=
     -o APT::Install-Recommends=false -o Debug::NoLocking=true -o Dir::State="$folder/apt"
     -o Dir::State::status="$folder/apt/status" -o Dir::State::lists="$folder/apt/lists" -o Dir::Cache="$folder/apt"
     -o Dir::Cache::archives="$folder/apt/archives")
"${apt[@]}" update
"${apt[@]}" install --download-only -y python3 libstdc++6 >/dev/null
for package in "$folder"/apt/archives/*.deb; do dpkg-deb -x "$package" "$folder/root"; done
rm -rf "$folder/apt"
touch "$folder/.complete"
