"""A command loads only the modules that it needs, so that it starts in a fraction of a second. Modules do not depend on
the machine's load.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = """
[run]
duration = "1s"
[path]
bandwidth = "20Mbit/s"
rtt = "20ms"
[[flow]]
name = "copy"
"""

SCRIPT = """
import json, os, sys
before = set(sys.modules)
import elephan.cli.main
code = elephan.cli.main.call(sys.argv[1:])
names = [name for name, module in sys.modules.items() if module is not None and name not in before]
places = {name: getattr(sys.modules[name], "__file__", None) or "" for name in names}
packages = {name.partition(".")[0] for name, place in places.items() if "site-packages" in place}
print(json.dumps({"code": code, "packages": sorted(packages), "own": [n for n in names if n.startswith("elephan.")]}))
"""

ARGUMENTS = {"typer", "annotated_doc", "shellingham"}
"""Modules that read the command line."""
MODELS = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
"""Modules that read a scenario; this typer reads its arguments with them too."""
TABLES = {"rich", "markdown_it", "mdurl", "pygments"}
SERIES = {"numpy", "pyarrow", "cloudpickle"}
"""Arrow loads cloudpickle where it is installed; it comes with dask."""
STORE = {"platformdirs"}
"""Finds the user's own store, in some milliseconds."""

COMMANDS = {
    "--help": ARGUMENTS,
    "run --help": ARGUMENTS | MODELS,
    "check small.toml": ARGUMENTS | MODELS,
    "cc": ARGUMENTS | MODELS | TABLES,
    "results list": ARGUMENTS | MODELS | TABLES | STORE,
    "run small.toml --no-report": ARGUMENTS | MODELS | TABLES | SERIES | STORE,
    "run small.toml --no-report --set run.repetitions=2": ARGUMENTS | MODELS | TABLES | SERIES | STORE,
    "web --help": ARGUMENTS | MODELS,
    "web token list --tokens tokens.json": ARGUMENTS | MODELS,
}

NEVER = {
    "--help": ["scenario", "store", "api", "record", "backends", "report.table", "_native"],
    "run --help": ["scenario", "store", "api", "record", "backends", "report.table", "_native"],
    "check small.toml": [
        "store",
        "report.table",
        "report.metrics",
        "sweep.executor",
        "sweep.progress",
        "cli.compare",
        "cli.iscsi",
        "disks",
    ],
    "cc": ["scenario", "store", "backends", "compare"],
    "web --help": ["web", "store", "record", "report"],
    "run small.toml --no-report": ["store.schema", "store.migrate", "report.html", "report.draw", "compare", "papers"],
}


def loaded(folder: Path, command: str) -> tuple[set[str], set[str]]:
    """Return the packages and elephan's own modules that a command loads."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *command.split()],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(root), "ELEPHAN_STORE": str(folder / "results.sqlite")},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["code"] == 0, done.stderr
    return set(found["packages"]), set(found["own"])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_only_what_it_needs(tmp_path: Path, command: str) -> None:
    (tmp_path / "small.toml").write_text(SCENARIO)
    (tmp_path / "tokens.json").write_text('{"tokens": []}')
    (tmp_path / "tokens.json").chmod(0o600)
    # The store is made by the first command, which takes SQLAlchemy and Alembic.
    loaded(tmp_path, "results list")
    packages, own = loaded(tmp_path, command)
    assert packages <= COMMANDS[command], f"{command} loads {sorted(packages - COMMANDS[command])} as well"
    wrong = {name for part in NEVER.get(command, []) for name in own if f"{name}.".startswith(f"elephan.{part}.")}
    assert not wrong, f"{command} loads {sorted(wrong)}"


def test_a_subcommand_loads_no_other(tmp_path: Path) -> None:
    _, own = loaded(tmp_path, "disk list")
    modules = {name for name in own if name.startswith("elephan.cli.")}
    assert modules <= {f"elephan.cli.{name}" for name in ("main", "console", "disk", "trace", "options")}
