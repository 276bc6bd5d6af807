"""A wheel for aarch64 on another processor: Debian's Python for it, unpacked and not installed, under qemu-user.

This machine's pip installs packages of aarch64 for it. A command under qemu-user cannot start a program of aarch64 when
this machine's kernel does not know how (binfmt_misc), and is told of success when there is no such program at all.
README's commands start none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.wheel.installed import ROOT, Installed
from tests.wheel.objects import digest

FOREIGN = ROOT / "target" / "foreign-python" / "arm64"
GLIBC = range(17, 37)
"""Minor versions of the C library that packages may ask for: from manylinux2014's to Debian 12's."""


def install(wheel: Path, site: Path, python: Path) -> None:
    """Install a wheel and what it requires in `site`, for the program `python`. Raises CalledProcessError."""
    version = python.name.removeprefix("python")
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--target", site]
    words += ["--python-version", version, "--implementation", "cp"]
    for abi in (f"cp{version.replace('.', '')}", "abi3", "none"):
        words += ["--abi", abi]
    for platform in [f"manylinux_2_{minor}_aarch64" for minor in GLIBC] + ["manylinux2014_aarch64"]:
        words += ["--platform", platform]
    constraints = {"PIP_CONSTRAINT": str(ROOT / "scripts" / "constraints.txt")}
    subprocess.run([*words, wheel], env=os.environ | constraints, check=True)


def check(wheel: Path, folder: Path) -> None:
    """Check a wheel below a folder. Raises SystemExit or CalledProcessError when it is wrong.

    Without an emulator or Debian's Python it only says so.
    """
    qemu = shutil.which("qemu-aarch64-static")
    unpack = [ROOT / "scripts" / "foreign_python.sh", "arm64", FOREIGN]
    if qemu is None or subprocess.run(unpack, check=False).returncode:
        print(f"not done: {wheel.name} was not run, which takes qemu-user-static and Debian's packages of arm64")
        return
    root = FOREIGN / "root"
    python = (root / "usr" / "bin" / "python3").resolve()
    site = folder / "site"
    install(wheel, site, python)
    # No program of this machine is in reach. elephan is the wheel's; tests come from the source tree, which is last.
    environment = {"PATH": str(folder / "programs"), "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    emulated = [qemu, "-L", root, python]
    installed = Installed(folder, site, [*emulated, site / "bin" / "elephan"], environment)
    installed.demand_libraries()
    ours = f"aarch64 {digest()} {site}/elephan/_native"
    installed.call(*emulated, "-m", "tests.wheel.objects", says=ours, name="the same BPF objects as here")
    golden = ["-m", "tests.determinism.golden", "--module"]
    installed.call(*emulated, *golden, name=f"python {' '.join(golden)}")
    installed.run_everywhere()
    print("not done on aarch64: the kernel's commands, since qemu-user has no bpf(2), and a user's own C file")
