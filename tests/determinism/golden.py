"""Compare the digests of golden records with golden/digests.txt, on this processor and on an emulated aarch64.

    make golden                                  # natively, optimised and with debug assertions; then under qemu-user
    python -m tests.determinism.golden --write   # after a change that is meant to change records
    python -m tests.determinism.golden --module  # this Python's native module alone: of a wheel (tests/wheel)

The records are those of golden/records.toml, see `digest.py` for the digest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from elephan.api import jobs_of, load
from elephan.record import canonical_json
from tests.determinism.digest import digest_of

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"
DIGESTS = GOLDEN / "digests.txt"

AARCH64 = "aarch64-unknown-linux-gnu"
CROSS = {
    "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER": "aarch64-linux-gnu-gcc",
    "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER": "qemu-aarch64-static -L /usr/aarch64-linux-gnu",
    "CC_aarch64_unknown_linux_gnu": "aarch64-linux-gnu-gcc",
}


def specs() -> dict[str, dict[str, Any]]:
    """Return each golden record's specification by its name."""
    found = {}
    for name, wanted in tomllib.loads((GOLDEN / "records.toml").read_text()).items():
        jobs = jobs_of(load(ROOT / wanted["scenario"], wanted.get("set", [])))
        found[name] = jobs[wanted.get("point", 0)].spec
    return found


def digests() -> dict[str, str]:
    """Return the digest that each golden record has to have."""
    return {name: digest for digest, name in (line.split() for line in DIGESTS.read_text().splitlines())}


def by_cargo(target: str | None = None) -> dict[str, str]:
    """Return the digests by the core alone, built by cargo with debug assertions, natively or for `target`.

    Raises CalledProcessError when it cannot be built or run.
    """
    command = ["cargo", "run", "--quiet", "--package", "experiment", "--example", "digest"]
    if target is not None:
        command += ["--target", target]
    with tempfile.TemporaryDirectory(prefix="elephan-") as folder:
        for name, spec in specs().items():
            (Path(folder) / name).write_text(canonical_json(spec))
        files = sorted(Path(folder).iterdir())
        done = subprocess.run(
            [*command, "--", *files], cwd=ROOT, env=os.environ | CROSS, stdout=subprocess.PIPE, text=True, check=True
        )
    return {Path(file).name: digest for digest, file in (line.split() for line in done.stdout.splitlines())}


def differing(found: dict[str, str], where: str) -> int:
    """Print what differs from the golden digests; return how many records do."""
    wrong = 0
    for name, digest in digests().items():
        if found.get(name) != digest:
            wrong += 1
            print(f"{name}: {digest[:16]} is golden, {found.get(name, 'none')[:16]} {where}", file=sys.stderr)
    print(f"{where}: {len(digests()) - wrong} of {len(digests())} golden records the same")
    return wrong


def main() -> int:
    """Compare, or write again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="take this build's digests as golden")
    parser.add_argument("--module", action="store_true", help="compare this Python's native module alone")
    arguments = parser.parse_args()
    native = {name: digest_of(spec) for name, spec in specs().items()}
    if arguments.write:
        DIGESTS.write_text("".join(f"{digest}  {name}\n" for name, digest in native.items()))
    wrong = differing(native, "optimised, in Python")
    if not arguments.module:
        wrong += differing(by_cargo(), "with debug assertions")
        wrong += differing(by_cargo(AARCH64), "on aarch64 under qemu-user")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
