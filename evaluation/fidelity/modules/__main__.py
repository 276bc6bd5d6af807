"""`make modules`: ours and Linux's own modules over netem in a virtual machine; hours for all.

Runs that evaluation/fidelity/modules/measured.jsonl has are not repeated. Writes its parts of docs/results/modules.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from elephan.errors import InputError
from evaluation.fidelity.modules import page, source
from evaluation.requirements import exit_code, require
from evaluation.runner import ROOT

COMMAND = "python -m evaluation.fidelity.modules"
HERE = Path(__file__).parent
MEASURED = HERE / "measured.jsonl"
CONTROLS = ("bbr", "bic", "cubic", "highspeed", "htcp", "illinois", "scalable", "vegas", "westwood")
PATHS = (
    (10, 100, 0.01),
    (50, 20, 0.001),
    (10, 20, 0.01),
    (50, 100, 0.01),
    (10, 100, 0.001),
    (50, 20, 0.01),
    (10, 20, 0.001),
    (50, 100, 0.001),
    (10, 20, 0.0),
    (50, 20, 0.0),
    (10, 100, 0.0),
    (50, 100, 0.0),
)
"""Mbit/s, ms, loss, in turns of both rates: all repetitions of a path come before the next path."""
REPETITIONS = 5
SECONDS, SKIPPED_S = 30, 5
LINE_BYTES = 1514
MARK = "result: "
KERNEL = "Debian's Linux 6.1"
SCRIPT = ROOT / "scripts/modules.sh"
NEW_HOOK = (6, 10)
"""First Linux whose cong_control has the arguments that ours have without -DCC_BEFORE_LINUX_6_4."""


def wanted() -> Iterator[dict[str, Any]]:
    """Yield all pairs: of each path whole repetitions one after the other."""
    for (rate, rtt, loss), repetition, control in product(PATHS, range(1, REPETITIONS + 1), CONTROLS):
        yield {"control": control, "rate_mbps": rate, "rtt_ms": rtt, "loss": loss, "repetition": repetition}


def load() -> list[dict[str, Any]]:
    """Return what was measured."""
    if not MEASURED.exists():
        return []
    return [json.loads(line) for line in MEASURED.read_text(encoding="utf-8").splitlines()]


def key(run: dict[str, Any]) -> tuple[Any, ...]:
    """Return what tells a pair from others."""
    return tuple(run[name] for name in ("control", "rate_mbps", "rtt_ms", "loss", "repetition"))


def code_of(control: str) -> str:
    """Return a control's file in the variant that is Linux's, where it has one."""
    text = (source.CONGESTION / f"{control}.c").read_text(encoding="utf-8")
    return re.sub(r'\(variant, 0, (0, \d+, 1, "published\|linux["|])', r"(variant, 1, \1", text)


def clang() -> str:
    """Return the newest clang. Raises `InputError` where there is none."""
    names = [os.environ.get("CLANG", ""), "clang", *(f"clang-{version}" for version in range(25, 10, -1))]
    found = next((name for name in names if name and shutil.which(name)), None)
    if found is None:
        raise InputError("needs clang (Debian package clang-16)")
    return found


def release() -> tuple[int, int]:
    """Return the first two numbers of the machine's kernel, which is fetched where it is not there yet."""
    said = subprocess.run([SCRIPT, "version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    major, minor = said.split(".")[:2]
    return int(major), int(minor)


def switches(code: str, linux: tuple[int, int]) -> list[str]:
    """Return what a control's file needs to load in a kernel: one with the hook cong_control, in one before 6.10."""
    return ["-DCC_BEFORE_LINUX_6_4"] if linux < NEW_HOOK and "(cong_control, " in code else []


def objects(folder: Path, compiler: str, linux: tuple[int, int]) -> dict[str, str]:
    """Compile the controls for a kernel, all at once; return a digest of each file."""
    folder.mkdir(parents=True, exist_ok=True)

    def compiled(control: str) -> str:
        code = code_of(control)
        flags = ["-target", "bpf", "-mcpu=v3", "-g", "-O2", "-std=c11", "-nostdinc", "-ffreestanding", "-fwrapv"]
        flags += [f"-I{source.CONGESTION}", f'-DCC_BPF_NAME="our_{control}"', *switches(code, linux)]
        words = [compiler, *flags, "-x", "c", "-c", "-", "-o", str(folder / f"{control}.o")]
        subprocess.run(words, input=code, text=True, check=True)
        return hashlib.sha256(code.encode()).hexdigest()[:16]

    with ThreadPoolExecutor() as pool:
        return dict(zip(CONTROLS, pool.map(compiled, CONTROLS), strict=True))


def line(number: int, run: dict[str, Any]) -> str:
    """Return a pair as the machine's first program reads it."""
    queue = max(round(run["rate_mbps"] * 1e3 * run["rtt_ms"] / (8 * LINE_BYTES)), 4)
    percent = f"{100 * run['loss']:g}"
    words = (number, run["control"], f"our_{run['control']}", run["rate_mbps"], run["rtt_ms"], percent, queue)
    return " ".join(map(str, (*words, SECONDS, SKIPPED_S)))


def measure(pairs: Sequence[dict[str, Any]], seconds: float) -> None:
    """Carry the pairs in the machine for at most so many seconds, and keep what came out."""
    require({"qemu-system-x86_64": "qemu-system-x86", "bpftool": "bpftool", "busybox": "busybox-static"})
    folder = source.FOLDER / "machine"
    digests = objects(folder / "objects", clang(), release())
    traffic = folder / "traffic"
    subprocess.run(["cc", "-O2", "-static", "-o", traffic, HERE / "traffic.c"], check=True)
    runs = folder / "runs"
    runs.write_text("".join(f"{line(number, run)}\n" for number, run in enumerate(pairs)), encoding="utf-8")
    words: list[str | Path] = [SCRIPT, HERE / "guest.sh", runs, folder / "objects", traffic]
    words.append(str(round(seconds)))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, errors="replace") as machine:
        assert machine.stdout is not None
        for said in machine.stdout:
            if not said.startswith(MARK):
                print(said.rstrip(), file=sys.stderr, flush=True)
                continue
            one = json.loads(said.removeprefix(MARK))
            run = pairs[one.pop("number")]
            print(run, one["side"], one["mbps"], one["busy"], file=sys.stderr, flush=True)
            more = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "digest": digests[run["control"]]}
            with MEASURED.open("a", encoding="utf-8") as file:
                file.write(json.dumps(run | one | more, separators=(",", ":")) + "\n")


def main() -> int:
    """Measure what is missing, write; return the exit code."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--minutes", type=float, default=600, help="end the machine after so many minutes")
    parser.add_argument("--page", action="store_true", help="write the page, measure nothing")
    options = parser.parse_args()

    def run() -> None:
        ends_s = time.monotonic() + 60 * options.minutes
        done = {key(one) for one in load() if one["side"] == "ours"}
        pairs = [one for one in wanted() if key(one) not in done]
        if pairs and not options.page:
            measure(pairs, ends_s - time.monotonic())
        page.write(load(), COMMAND, KERNEL)

    return exit_code(COMMAND, run)


if __name__ == "__main__":
    sys.exit(main())
