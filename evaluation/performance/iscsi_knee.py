"""The knee of a load curve over an emulated path: `python -m evaluation.performance.iscsi_knee`, as root.

Path, congestion control and reads of examples/iscsi-depth.toml in wall-clock time, between elephan's target and load.
The target serves a file in memory, so that no drive is measured. Writes a part of docs/results/iscsi.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elephan.errors import RunError
from elephan.path import congestion
from elephan.path.session import Opened, ends_of, open_path, spec_of
from elephan.scenario import load
from elephan.units import pluralize
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.performance.iscsi import PAGE
from evaluation.performance.iscsi_point import FILE_BYTES, MAIN, target
from evaluation.requirements import exit_code, require
from evaluation.runner import ROOT

COMMAND = "python -m evaluation.performance.iscsi_knee"
SCENARIO = ROOT / "examples" / "iscsi-depth.toml"
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONNECTIONS = (1, 4)
SECONDS = 4
"""Of a point: a hundred round trips."""
COMMAND_WINDOW = 1024
"""As in the scenario."""


def listed(numbers: Sequence[int]) -> str:
    """Return numbers as an option of `elephan iscsi bench` has them."""
    return ",".join(map(str, numbers))


OF_A_POINT = ("--size", "8KiB", "--random", "--duration", f"{SECONDS}s")
POINTS = ("--depth", listed(DEPTHS), "--connections", listed(CONNECTIONS))


def measure() -> tuple[Mapping[str, Any], list[str]]:
    """Return the load's result and the emulator's faults. Raises `RunError`."""
    spec, _ = spec_of(load(SCENARIO))
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as place,
        open_path(ends_of(spec), spec, {"what": "bench", "of": SCENARIO.name}) as path,
        congestion.as_default(path.place, spec),
    ):
        image = Path(place, "disk.img")
        with image.open("wb") as file:
            file.truncate(FILE_BYTES)
        assert isinstance(path, Opened), "elephan's own emulator carries it"
        path.start(spec)
        with target(path, image, "--command-window", str(COMMAND_WINDOW)) as url:
            where = ("ip", "netns", "exec", path.place.names[0])
            command = [*where, *MAIN, "bench", url, "--json", *OF_A_POINT, *POINTS]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        faults = path.stop(spec).faults()
    if done.returncode != 0:
        raise RunError(f"the load ended with {done.returncode}")
    return json.loads(done.stdout), faults


def _connections(count: int) -> str:
    return pluralize(count, "connection")


def text_of(result: Mapping[str, Any], faults: Sequence[str]) -> str:
    """Return the part of the page."""
    points = {(point["connections"], point["depth"]): point for point in result["points"]}
    rows = []
    for count in CONNECTIONS:
        some = [points[count, depth] for depth in DEPTHS]
        rates = (point["reads"]["bytes"] / point["elapsed_ns"] * 1e3 for point in some)
        rows.append([f"MB/s, {_connections(count)}", *(f"{rate:.1f}" for rate in rates)])
        for which in ("p50", "p99"):
            times_ms = (point["reads"][f"latency_{which}_ns"] / 1e6 for point in some)
            rows.append([f"{which}, ms", *(f"{time_ms:.0f}" for time_ms in times_ms)])
    knee = result["knee"]
    sentence = (
        f"The knee is at a depth of {knee['depth']}, with {_connections(knee['connections'])}. One run of {SECONDS} s "
        "for each point."
    )
    if faults:
        sentence += f" The emulator did not honour the path: {'; '.join(faults)}."
    return f"{fill(sentence)}\n\n{table(['depth', *map(str, DEPTHS)], rows)}"


def main() -> None:
    """Measure, then write."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    require({}, path=True)
    write_parts(PAGE, COMMAND, {"knee": text_of(*measure())})


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.iscsi_knee", main))
