"""Figures 6 and 9 of the iSCSI paper: `python -m evaluation.performance.iscsi_path`, as root. Target and load over an
emulated path.

Every point has a path of its own, with evaluation/papers/iscsi/fig6.toml's rate, round trip and queue, in wall-clock
time; the congestion controls are loaded under names of that run, and gone with it. The target serves a file in memory,
so that no drive is measured. Prints a table and the lines for claims.toml's reference; what the emulator could not
honour goes to stderr. With --bursts: by MaxBurstLength, with five connections and the requests of fig10.toml beside
it.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elephan.errors import ElephanError
from elephan.kernel.run_controls import in_kernel
from elephan.papers.catalogue import folder
from elephan.path.session import Opened, ends_of, open_path, spec_of
from elephan.path.testbed import ADDRESSES
from evaluation.markdown import table
from evaluation.performance.iscsi import NAME, end
from evaluation.requirements import exit_code

CCS = ("reno", "fast", "bic", "htcp")
CONNECTIONS = (1, 2, 3, 4, 5, 6, 8, 10)
FILE_BYTES = 256 << 20
MAIN = (sys.executable, "-c", "from elephan.cli import main; main()", "iscsi")

LOAD = ("--reads", "50", "--random", "--overwrite", "--json")
SMALL = ("--size", "64KiB", "--depth", "32")
"""As in evaluation/papers/iscsi/fig6.toml."""
LARGE = ("--size", "1MiB", "--depth", "4")
"""As in evaluation/papers/iscsi/fig10.toml."""
FIGURE6 = [(connections, connections, SMALL) for connections in CONNECTIONS]
BURSTS_KIB = (4, 16, 64, 256, 1024, 4096)


@contextmanager
def target(path: Opened, image: Path, *options: str) -> Iterator[str]:
    """Serve `image` at the path's far end; give its URL."""
    where = ("ip", "netns", "exec", path.place.names[1])
    own = ("--lun", str(image), "--portal", ADDRESSES[1], "--name", NAME)
    process = subprocess.Popen([*where, *MAIN, "target", *own, *options], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        url = next((line.strip() for line in process.stderr if line.startswith("iscsi://")), "")
        if not url:
            raise ElephanError("the target did not start")
        yield url
    finally:
        end(process)


def point(transport: str, connections: int, seconds: int, requests: tuple[str, ...]) -> tuple[float, list[str]]:
    """Measure one: reads and writes in MB/s, and what the emulator did wrong."""
    spec, _ = spec_of(
        folder() / "iscsi" / "fig6.toml", ['sweep.flow.congestion_control=["reno"]', "sweep.flow.connections=[1]"]
    )
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as place,
        open_path(ends_of(spec), spec, {"what": "bench", "of": "fig6.toml"}) as path,
        in_kernel(path.place.id, [(transport, ())]) as (name,),
    ):
        image = Path(place, "disk.img")
        with image.open("wb") as file:
            file.truncate(FILE_BYTES)
        assert isinstance(path, Opened), "elephan's own emulator carries it"
        path.start(spec)
        with target(path, image, "--cc", name) as url:
            where = ("ip", "netns", "exec", path.place.names[0])
            options = (
                "--cc",
                name,
                "--connections",
                str(connections),
                "--duration",
                f"{seconds}s",
                *LOAD,
                *requests,
            )
            done = subprocess.run([*where, *MAIN, "bench", url, *options], capture_output=True, text=True, check=False)
        faults = path.stop(spec).faults()
    if done.returncode != 0:
        raise ElephanError(done.stderr.strip())
    (result,) = json.loads(done.stdout)["points"]
    if result["lost"]:
        raise ElephanError(f"{transport}, {connections} connections: the session was lost {result['lost']} times")
    moved = result["reads"]["bytes"] + result["writes"]["bytes"]
    return moved / result["elapsed_ns"] * 1e3, faults


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="of a point (default: 60)")
    parser.add_argument("--bursts", action="store_true", help="figure 9 in place of figure 6")
    arguments = parser.parse_args()
    points = [(burst, 5, bursts_of(burst)) for burst in BURSTS_KIB] if arguments.bursts else FIGURE6
    found: dict[tuple[str, int], float] = {}
    # Congestion control by congestion control within a point, so that the machine's other load meets all of them.
    for at, connections, requests in points:
        for transport in CCS:
            found[transport, at], faults = point(transport, connections, arguments.seconds, requests)
            print(f"{transport}, {at}: {found[transport, at]:.2f} MB/s", *faults, sep="; ", file=sys.stderr)
    places = [at for at, _, _ in points]
    rows = [[transport, *(f"{found[transport, at]:.2f}" for at in places)] for transport in CCS]
    print(table([f"MB/s, Linux {platform.release().split('-')[0]}", *map(str, places)], rows))
    print(*(f"{transport}_{at} = {value:.2f}" for (transport, at), value in found.items()), sep="\n")


def bursts_of(kib: int) -> tuple[str, ...]:
    """Return the requests of figure 9 for one MaxBurstLength."""
    keys = ("initial_r2t=yes", "max_outstanding_r2t=1", f"first_burst={min(kib, 64)}KiB", f"max_burst={kib}KiB")
    return (*LARGE, *(word for key in keys for word in ("--set", key)))


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.iscsi_path", main))
