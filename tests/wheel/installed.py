"""A wheel that was installed somewhere, and the commands of README that need no privilege, run from it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = """
[run]
duration = "2s"
[path]
bandwidth = "50Mbit/s"
rtt = "20ms"
[[flow]]
name = "copy"
"""


class Installed:
    """The command of a wheel, in a folder of its own with the examples and a store."""

    def __init__(self, folder: Path, site: Path, command: Sequence[str | Path], environment: dict[str, str]) -> None:
        """Take `command` for elephan, whose packages lie in `site`. `environment` is all that commands get of one."""
        self.folder = folder
        self._site = site
        self._command = [str(word) for word in command]
        self.environment = environment | {
            "HOME": str(folder),
            "ELEPHAN_STORE": str(folder / "results.sqlite"),
            # The papers are of the source tree, not of the package.
            "ELEPHAN_PAPERS": str(ROOT / "evaluation" / "papers"),
        }
        shutil.copytree(ROOT / "examples", folder / "examples")
        (folder / "my.toml").write_text(SCENARIO)

    def call(self, *words: str | Path, status: int = 0, says: str = "", name: str | None = None) -> None:
        """Run a command, and demand its exit status and a part of its output. Raises SystemExit otherwise."""
        name = name or " ".join(map(str, words))
        done = subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode != status or says not in said or "Traceback" in said:
            sys.exit(f"{name}: exit code {done.returncode}, expected {status} and {says!r}:\n{said}")
        print(f"ok: {name}", flush=True)

    def elephan(self, *words: str, status: int = 0, says: str = "") -> None:
        """As `call`, of the command elephan."""
        self.call(*self._command, *words, status=status, says=says, name=f"elephan {' '.join(words)}")

    def demand_libraries(self) -> None:
        """Demand that the native module takes no library of BPF from the machine. Raises SystemExit."""
        (module,) = (self._site / "elephan").glob("_native*.so")
        needed = subprocess.check_output(["readelf", "--dynamic", module], text=True)
        libraries = re.findall(r"\(NEEDED\).*\[(.+)\]", needed)
        if "libc.so.6" not in libraries or any(re.match(r"lib(bpf|elf|z|zstd)\.", name) for name in libraries):
            sys.exit(f"{module} needs a library that the wheel ought to bring: {' '.join(libraries)}")
        print(f"ok: the native module needs {' '.join(libraries)} only", flush=True)

    def demand_sources(self) -> None:
        """Demand the source of the program on libudt, which is built where it runs. Raises SystemExit."""
        if not (self._site / "elephan" / "backends" / "programs" / "udt.cc").is_file():
            sys.exit("the wheel lacks elephan/backends/programs/udt.cc")
        print("ok: the source of udt is there", flush=True)

    def run_everywhere(self) -> None:
        """Run the commands that need neither privilege nor another program."""
        self.demand_sources()
        elephan = self.elephan
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
