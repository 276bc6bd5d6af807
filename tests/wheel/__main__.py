"""Install a wheel into a fresh virtual environment without any compiler in reach, and run README's commands from it.

    make wheel                             # builds it, and does this
    python -m tests.wheel out/wheel/elephan-*.whl

As root, commands that use the running kernel are among them, and what they load is unloaded again.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILERS = re.compile(
    r"(.*-)?(cc|c89|c99|gcc|g\+\+|c\+\+|clang|clang\+\+|cpp|cargo|rustc|rustup|maturin|ld|as)(-?[\d.]+)?$"
)
"""Names of programs that are kept out of reach."""

SHORT = ["--set", "run.duration=2s", "--no-report"]
SCENARIO = """
[run]
duration = "2s"
[path]
bandwidth = "50Mbit/s"
rtt = "20ms"
[[flow]]
name = "copy"
"""


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


class Installed:
    """The command of the wheel, in a folder of its own with the examples and a store."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        """Install it. Raises CalledProcessError."""
        self.folder = folder
        (folder / "programs").mkdir()
        venv.create(folder / "venv", with_pip=True)
        self.environment = {
            "PATH": f"{folder / 'venv' / 'bin'}{os.pathsep}{without_compilers(folder / 'programs')}",
            "HOME": str(folder),
            "ELEPHAN_STORE": str(folder / "results.sqlite"),
            # The papers are of the source tree, not of the package.
            "ELEPHAN_PAPERS": str(ROOT / "evaluation" / "papers"),
            "PIP_CONSTRAINT": str(ROOT / "scripts" / "constraints.txt"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        shutil.copytree(ROOT / "examples", folder / "examples")
        (folder / "my.toml").write_text(SCENARIO)
        # Wheels alone: nothing is built here.
        self.call("pip", "install", "--quiet", "--only-binary", ":all:", str(wheel))

    def call(self, *words: str, status: int = 0, says: str = "") -> None:
        """Run a command, and demand its exit status and a part of its output. Raises SystemExit otherwise."""
        done = subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode != status or says not in said or "Traceback" in said:
            sys.exit(f"{' '.join(words)}: exit code {done.returncode}, expected {status} and {says!r}:\n{said}")
        print(f"ok: {' '.join(words)}", flush=True)

    def elephan(self, *words: str, status: int = 0, says: str = "") -> None:
        """As `call`, of the command elephan."""
        self.call("elephan", *words, status=status, says=says)


def brings_its_libraries(installed: Installed) -> None:
    """Demand that the native module takes no library of BPF from the machine. Raises SystemExit."""
    where = "import elephan._native as native; print(native.__file__)"
    python = installed.folder / "venv" / "bin" / "python"
    command = [python, "-c", where]
    module = subprocess.check_output(command, cwd=installed.folder, env=installed.environment, text=True).strip()
    needed = subprocess.check_output(["ldd", module], text=True)
    if "libc." not in needed or re.search(r"lib(bpf|elf|z|zstd)\.", needed):
        sys.exit(f"{module} needs a library that the wheel ought to bring:\n{needed}")
    print("ok: the native module brings libbpf, libelf and zlib along", flush=True)


def everywhere(installed: Installed) -> None:
    """Run the commands that need no privilege."""
    elephan = installed.elephan
    lossy = ["--set", "path.loss=1e-3", "--set", "run.duration=2s", "--out", "lossy"]
    elephan("run", "examples/replicate-oltp.toml", *lossy)
    elephan("check", "my.toml")
    elephan("compare", "my.toml", "--budget", "1s")
    elephan("cc", says="cubic")
    elephan("results", "list", says="replicate-oltp")
    elephan("trace", "examples/traces/tpcc-small.trace", says="mqsim")
    elephan("disk", "replay", "examples/traces/tpcc-small.trace", "--out-of-range", "wrap")
    elephan("run", "examples/hybrid-manager.toml", "--set", "run.duration=40s", "--no-report")
    elephan("paper", "list", says="dsan")
    # A user's own file is the one thing that needs a compiler, and its error says so.
    elephan(
        "run", "examples/own-congestion-control.toml", *SHORT, "--set", "measure.warmup=1s", status=2, says="compiler"
    )


def as_root(installed: Installed) -> None:
    """Run the commands that use this machine's kernel: the wheel brings the BPF objects."""
    elephan = installed.elephan
    elephan("kernel", "load", "cubic=wheeltest")
    try:
        elephan("kernel", "list", says="wheeltest")
    finally:
        elephan("kernel", "unload", "wheeltest")
    elephan("run", "my.toml", "--on", "sim,kernel", "--no-report")


def main() -> int:
    """Check one wheel."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="elephan-") as folder:
        installed = Installed(Path(sys.argv[1]).resolve(), Path(folder))
        brings_its_libraries(installed)
        everywhere(installed)
        if os.geteuid() == 0 and Path("/sys/kernel/btf/vmlinux").exists():
            # The lock of the tests that touch the kernel (tests/conftest.py).
            with open(Path(tempfile.gettempdir()) / "elephan-tests.lock", "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                as_root(installed)
        else:
            print("not done: the kernel's commands need root and a kernel with BTF")
    return 0


if __name__ == "__main__":
    sys.exit(main())
