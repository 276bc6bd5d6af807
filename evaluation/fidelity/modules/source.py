"""Linux's modules from Debian's source package, each built beside ours into one program."""

from __future__ import annotations

import re
import subprocess
import tarfile
from pathlib import Path

from elephan.errors import InputError
from evaluation.runner import ROOT

PACKAGE = "linux-source-6.1"
FOLDER = ROOT / "out" / "modules"
"""Made anew where it is missing; never committed."""
CONGESTION = ROOT / "congestion"
CALLS = Path(__file__).parent / "calls"
FILES = {
    "bbr": "tcp_bbr.c",
    "bic": "tcp_bic.c",
    "cubic": "tcp_cubic.c",
    "highspeed": "tcp_highspeed.c",
    "htcp": "tcp_htcp.c",
    "illinois": "tcp_illinois.c",
    "reno": None,
    "scalable": "tcp_scalable.c",
    "vegas": "tcp_vegas.c",
    "westwood": "tcp_westwood.c",
}
"""Linux's file of each control; Reno is in tcp_cong.c."""
FUNCTIONS = {
    "include/net/tcp.h": ("tcp_is_cwnd_limited", "tcp_current_ssthresh"),
    "net/ipv4/tcp_cong.c": (
        "tcp_slow_start",
        "tcp_cong_avoid_ai",
        "tcp_reno_cong_avoid",
        "tcp_reno_ssthresh",
        "tcp_reno_undo_cwnd",
    ),
    "lib/win_minmax.c": ("minmax_subwin_update", "minmax_running_max"),
}
"""Functions of Linux's that modules call."""


def version() -> str:
    """Return the package's version, as its file says it."""
    (package,) = FOLDER.glob(f"{PACKAGE}_*.deb")
    return package.name.split("_")[1]


def fetch() -> Path:
    """Return the folder of Linux's source, fetched and unpacked by apt and dpkg where it is not there yet.

    Raises `InputError` without Debian's tools or its archive.
    """
    source = FOLDER / PACKAGE
    wanted = [f"net/ipv4/{name}" for name in FILES.values() if name] + [*FUNCTIONS, "net/ipv4/tcp_vegas.h"]
    if all((source / name).is_file() for name in wanted):
        return source
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        if not list(FOLDER.glob(f"{PACKAGE}_*.deb")):
            subprocess.run(["apt-get", "download", "-qq", PACKAGE], cwd=FOLDER, check=True, stderr=subprocess.DEVNULL)
        (package,) = FOLDER.glob(f"{PACKAGE}_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, FOLDER / "unpacked"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise InputError(f"{PACKAGE} of Debian cannot be had here: {error}") from error
    (archive,) = FOLDER.glob(f"unpacked/usr/src/{PACKAGE}.tar.xz")
    names = {f"{PACKAGE}/{name}" for name in wanted}
    with tarfile.open(archive, "r|xz") as packed:
        for member in packed:
            if member.name in names:
                packed.extract(member, FOLDER, filter="data")
                names.remove(member.name)
                if not names:
                    break
    archive.unlink()
    return source


def function(text: str, name: str) -> str:
    """Return a function of Linux's by its name: from its type to the brace that closes it."""
    found = re.search(rf"^(?:static )?(?:inline )?\w+ \*?{name}\([^;{{]*\)\n{{\n.*?^}}\n", text, re.M | re.S)
    if found is None:
        raise ValueError(f"Linux has no function {name} of the form that is known")
    return re.sub(r"^(static )?(inline )?", "", found[0], count=1)


def build(name: str) -> Path:
    """Return the program that puts a control of ours and Linux's to the same calls."""
    source = fetch()
    made = FOLDER / "build"
    made.mkdir(exist_ok=True)
    text = "\n".join(
        function((source / file).read_text(encoding="utf-8"), one) for file, names in FUNCTIONS.items() for one in names
    )
    (made / "linux_functions.h").write_text(text, encoding="utf-8")
    module = FILES[name]
    if module:
        for header in re.findall(r"^#include <(.*)>", (source / "net/ipv4" / module).read_text("utf-8"), re.M):
            empty = made / "empty" / header
            empty.parent.mkdir(parents=True, exist_ok=True)
            empty.touch()
    (made / "empty/linux").mkdir(parents=True, exist_ok=True)
    (made / "empty/linux/bpf.h").touch()
    flags = ["-O2", "-fwrapv", "-fno-strict-aliasing", "-Wno-unused", "-w"]
    include = [f"-I{CONGESTION}", f"-I{CALLS}", f"-I{made}"]
    theirs = [f"-I{made / 'empty'}", f"-I{source / 'net/ipv4'}", *([f'-DMODULE="{module}"'] if module else [])]
    parts = []
    for part, file, more in (
        ("ours", CONGESTION / f"{name}.c", ["-ffreestanding"]),
        ("theirs", CALLS / "theirs.c", theirs),
        ("main", CALLS / "side_by_side.c", []),
    ):
        parts.append(made / f"{name}_{part}.o")
        subprocess.run(["cc", *flags, *include, *more, "-c", file, "-o", parts[-1]], check=True)
    program = made / name
    subprocess.run(["cc", *parts, "-o", program], check=True)
    return program
