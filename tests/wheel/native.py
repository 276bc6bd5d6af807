"""A wheel for this machine: in a fresh virtual environment, without any compiler in reach, its kernel commands too."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import venv
from pathlib import Path

from tests.wheel.installed import ROOT, Installed

COMPILERS = re.compile(
    r"(.*-)?(cc|c89|c99|gcc|g\+\+|c\+\+|clang|clang\+\+|cpp|cargo|rustc|rustup|maturin|ld|as)(-?[\d.]+)?$"
)
"""Names of programs that are kept out of reach."""


def without_compilers(folder: Path) -> str:
    """Fill a folder with links to this machine's programs but compilers, and return it as a PATH."""
    for place in os.environ["PATH"].split(os.pathsep):
        for program in sorted(Path(place).glob("*")) if place.startswith(("/usr", "/bin", "/sbin")) else []:
            link = folder / program.name
            if not COMPILERS.match(program.name) and not link.is_symlink():
                link.symlink_to(program)
    for name in ("cc", "gcc", "clang", "cargo", "rustc"):
        assert shutil.which(name, path=str(folder)) is None, name
    return str(folder)


def install(wheel: Path, folder: Path) -> Installed:
    """Install it below a folder. Raises CalledProcessError."""
    (folder / "programs").mkdir()
    venv.create(folder / "venv", with_pip=True)
    environment = {
        "PATH": f"{folder / 'venv' / 'bin'}{os.pathsep}{without_compilers(folder / 'programs')}",
        "PIP_CONSTRAINT": str(ROOT / "scripts" / "constraints.txt"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    # Wheels alone: nothing is built here.
    words = [folder / "venv" / "bin" / "pip", "install", "--quiet", "--only-binary", ":all:", wheel]
    subprocess.run(words, env=environment | {"HOME": str(folder)}, check=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    return Installed(folder, site, ["elephan"], environment)


def miss_a_compiler(installed: Installed) -> None:
    """Demand that a user's own file, the one thing that needs a compiler, is refused with an error that says so."""
    short = ["--set", "run.duration=2s", "--set", "measure.warmup=1s", "--no-report"]
    installed.elephan("run", "examples/own-congestion-control.toml", *short, status=2, says="compiler")


def run_as_root(installed: Installed) -> None:
    """Run the commands that use this machine's kernel: the wheel brings the BPF objects."""
    elephan = installed.elephan
    elephan("kernel", "load", "cubic=wheeltest")
    try:
        elephan("kernel", "list", says="wheeltest")
    finally:
        elephan("kernel", "unload", "wheeltest")
    elephan("run", "my.toml", "--on", "sim,kernel", "--no-report")


def check(wheel: Path, folder: Path) -> None:
    """Check a wheel below a folder. Raises SystemExit or CalledProcessError when it is wrong."""
    installed = install(wheel, folder)
    installed.demand_libraries()
    installed.run_everywhere()
    miss_a_compiler(installed)
    if os.geteuid() == 0 and Path("/sys/kernel/btf/vmlinux").exists():
        # The lock of the tests that touch the kernel (tests/conftest.py).
        with open(Path(tempfile.gettempdir()) / "elephan-tests.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            run_as_root(installed)
    else:
        print("not done: the kernel's commands need root and a kernel with BTF")
