"""Harm of UDT to three CUBIC flows, of this machine's TCP and libudt, and simulated: a part of docs/results/udt.md.

`python -m evaluation.fidelity.udt_neighbours`, with --measure as root to run it live, with iperf3.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from elephan.api import jobs_of, load
from elephan.errors import RunError
from elephan.path import shell
from elephan.path.report import Report
from evaluation.fidelity import udt_live
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code, require
from evaluation.runner import OUT, Runner, add_options

PAGE = "udt.md"
COMMAND = "python -m evaluation.fidelity.udt_neighbours"
MEASURED = Path(__file__).with_name("udt_neighbours.jsonl")
NEIGHBOURS = 3
BEGIN_S, WARMUP_S, END_S = 5, 20, 50
"""Start of the newcomer, and the interval that is measured, s."""
QUEUES = ("0.1bdp", "1bdp")
NEWCOMERS = ("tcp", "udt4")
WINDOW_BYTES = 8_000_000
MTU_BYTES = 1500

SCENARIO = """\
[run]
duration = "{end}s"
[path]
bandwidth = "200Mbit/s"
rtt = "50ms"
queue = "{queue}"
[[flow]]
name = "neighbours"
connections = {neighbours}
workload = "bulk"
window = "8MB"
[[flow]]
name = "newcomer"
transport = "{transport}"
start = "{begin}s"
workload = "bulk"
window = "8MB"
[measure]
warmup = "{warmup}s"
series = "1s"
"""

SCRIPT = f"""\
set -e
for n in $ELEPHAN_PATH_NEAR_NETNS $ELEPHAN_PATH_FAR_NETNS; do
  ip netns exec $n sysctl -qw net.ipv4.tcp_wmem="4096 65536 67108864" net.ipv4.tcp_rmem="4096 131072 67108864"; done
far="ip netns exec $ELEPHAN_PATH_FAR_NETNS"
for port in 5201 5202; do $far iperf3 -s -1 -D -p $port; done
$far "$0" receive $ELEPHAN_PATH_FAR 5000 {END_S - BEGIN_S} 500 {WINDOW_BYTES} {MTU_BYTES} >"$1/received" &
receiver=$!
until grep -qs listening "$1/received"; do kill -0 $receiver; sleep 0.05; done
until [ $($far ss -Hltn | grep -c ':520[12]') = 2 ]; do sleep 0.05; done
iperf3 -c $ELEPHAN_PATH_FAR -p 5201 -P {NEIGHBOURS} -O {WARMUP_S} -t {END_S - WARMUP_S} -w 8M -J >"$1/neighbours" &
sleep {BEGIN_S}
case $2 in
  udt4) "$0" send $ELEPHAN_PATH_FAR 5000 {END_S - BEGIN_S} 500 {WINDOW_BYTES} {MTU_BYTES} >"$1/sent"; wait ;;
  tcp) iperf3 -c $ELEPHAN_PATH_FAR -p 5202 -O {WARMUP_S - BEGIN_S} -t {END_S - WARMUP_S} -w 8M -J >"$1/newcomer"
    wait %2; kill $receiver ;;
esac
"""
"""$0 is libudt's program, $1 the folder of output, $2 the newcomer's transport."""


def scenario(queue: str, transport: str) -> str:
    """Return the scenario of a run."""
    return SCENARIO.format(
        end=END_S, queue=queue, neighbours=NEIGHBOURS, transport=transport, begin=BEGIN_S, warmup=WARMUP_S
    )


def measure() -> None:
    """Run what is not measured yet. Raises `RunError`."""
    require(udt_live.TOOLS | {"iperf3": "iperf3", "ss": "iproute2"}, root=True, path=True)
    known = {(row["queue"], row["newcomer"]) for row in rows()}
    for queue, newcomer in ((queue, newcomer) for queue in QUEUES for newcomer in NEWCOMERS):
        if (queue, newcomer) in known:
            continue
        row = live(queue, newcomer)
        with MEASURED.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)


def live(queue: str, newcomer: str) -> dict[str, Any]:
    """Run three flows of iperf3 and a newcomer over the emulated path. Raises `RunError`."""
    program = udt_live.built()
    with tempfile.TemporaryDirectory(prefix="elephan-udt-") as folder:
        file = Path(folder, "path.toml")
        file.write_text(scenario(queue, "tcp"), encoding="utf-8")
        code, report = shell.run(file, ["sh", "-c", SCRIPT, str(program), folder, newcomer])
        texts = {path.name: path.read_text(encoding="utf-8") for path in Path(folder).iterdir() if path.is_file()}
    assert isinstance(report, Report), "elephan's own emulator carried it"
    if code != 0:
        raise RunError(f"the run beside {newcomer} ended with {code}")
    neighbours = _received_bps(texts["neighbours"])
    if newcomer == "tcp":
        own = _received_bps(texts["newcomer"])
    else:
        seen = [(float(ms) / 1000, int(count)) for ms, count in map(str.split, texts["received"].splitlines()[1:])]
        own = _between(seen, WARMUP_S - BEGIN_S, END_S - BEGIN_S - 1)
    faults = [str(fault) for fault in report.faults()]
    return {"queue": queue, "newcomer": newcomer, "neighbours_bps": neighbours, "newcomer_bps": own, "faults": faults}


def _received_bps(text: str) -> float:
    return float(json.loads(text)["end"]["sum_received"]["bits_per_second"])


def _between(seen: list[tuple[float, int]], start_s: float, end_s: float) -> float:
    """Return the mean rate between two times, bit/s."""
    inside = [one for one in seen if start_s <= one[0] <= end_s]
    (first_s, first), (last_s, last) = inside[0], inside[-1]
    return 8 * (last - first) / (last_s - first_s)


def rows() -> list[dict[str, Any]]:
    """Return what was measured."""
    if not MEASURED.is_file():
        return []
    return [json.loads(line) for line in MEASURED.read_text(encoding="utf-8").splitlines()]


def _live(row: dict[str, Any] | None) -> list[str]:
    """Return the two numbers of a live run."""
    if row is None:
        return ["", ""]
    seen = [f"{row[key] / 1e6:.0f}" for key in ("neighbours_bps", "newcomer_bps")]
    return [f"({text})" for text in seen] if row["faults"] else seen


def simulated(queue: str, transport: str, runner: Runner) -> tuple[float, float]:
    """Return the goodput of the neighbours together and of the newcomer, bit/s."""
    OUT.mkdir(parents=True, exist_ok=True)
    file = OUT / f"udt-neighbours-{transport}-{queue}.toml"
    file.write_text(scenario(queue, transport), encoding="utf-8")
    (record,) = runner.run(jobs_of(load(file))).records
    goodput = [float(flow["goodput_bps"]) for flow in record.flows]
    return sum(goodput[:NEIGHBOURS]), goodput[NEIGHBOURS]


def page(runner: Runner) -> None:
    """Simulate, and write the part of the page."""
    measured = {(row["queue"], row["newcomer"]): row for row in rows()}
    cells = []
    for queue in QUEUES:
        for transport in (*NEWCOMERS, "udt-2003"):
            neighbours, newcomer = simulated(queue, transport, runner)
            name = "CUBIC" if transport == "tcp" else transport
            line = [name, queue, f"{neighbours / 1e6:.0f}", f"{newcomer / 1e6:.0f}"]
            if measured:
                line += _live(measured.get((queue, transport)))
            cells.append(line)
    head = ["newcomer", "queue", f"{NEIGHBOURS} neighbours together", "newcomer"]
    said = (
        f"Mbit/s of goodput from {WARMUP_S} to {END_S} s, simulated; 200 Mbit/s, 50 ms; {NEIGHBOURS} CUBIC flows from "
        f"the start, the newcomer from {BEGIN_S} s."
    )
    if measured:
        head += ["neighbours, live", "newcomer, live"]
        said += (
            " Live are iperf3 and libudt over the emulated path, one run each; in brackets where the emulator did not "
            "honour the path."
        )
    write_parts(PAGE, COMMAND, {"neighbours": f"{table(head, cells)}\n\n{fill(said)}"})


def main() -> None:
    """Measure, or write the part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="run live what lacks")
    add_options(parser)
    options = parser.parse_args()
    if options.measure:
        measure()
    page(Runner.of(options))


if __name__ == "__main__":
    sys.exit(exit_code("udt_neighbours", main))
