"""Every command that reads a file of the user's, put before files that are none: one line, exit code 2, at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.user_files.command_server import LIMIT_S

ROOT = Path(__file__).parents[2]

RESIDENT_MIB_MAX = 600
"""Memory of a command with all that the server has imported."""

SCENARIO = """
[run]
duration = "1s"
[path]
bandwidth = "10Mbit/s"
rtt = "10ms"
"""


@dataclass(frozen=True)
class Said:
    """The end of a command."""

    code: int
    out: str
    err: str
    s: float
    resident_bytes: int


Elephan = Callable[..., Said]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that another user may enter, which pytest's is not."""
    with tempfile.TemporaryDirectory(prefix="elephan-files-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def elephan(folder: Path) -> Iterator[Elephan]:
    """Return a function that runs the command in a process with limits of time and memory."""
    words = [sys.executable, "-m", "tests.user_files.command_server"]
    server = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None and server.stdout is not None
    requests, replies = server.stdin, server.stdout
    homes = {
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "ELEPHAN_STORE": str(folder / "results.sqlite"),
    }

    def run(*arguments: str, environment: dict[str, str] | None = None, is_limited: bool = False) -> Said:
        asked = {"arguments": arguments, "folder": str(folder), "is_limited": is_limited}
        requests.write(json.dumps({**asked, "environment": homes | (environment or {})}) + "\n")
        requests.flush()
        return Said(**json.loads(replies.readline()))

    yield run
    requests.close()
    server.wait(30)


Make = Callable[[Path], None]


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


def _unreadable(path: Path) -> None:
    path.write_text("x = 1\n")
    path.chmod(0)


FILES: dict[str, tuple[Make, tuple[str, ...]]] = {
    "device": (lambda path: path.symlink_to("/dev/zero"), ("it is a device; a regular file is needed",)),
    "sparse": (_sparse, ("it has 10 GiB",)),
    "fifo": (os.mkfifo, ("it is a FIFO or pipe; a regular file is needed",)),
    "directory": (Path.mkdir, ("irectory", "folder")),
    "unreadable": (_unreadable, ("ermission denied", "is not readable")),
    "bytes": (lambda path: path.write_bytes(b"\xff\xfe\x00 = 1\n" * 3), ()),
    "empty": (Path.touch, ()),
}
"""Ways to make such a path, and parts of the reason, of which a message has one; none where any reason is right."""

COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("run", "{}"),
    "check": ("check", "{}"),
    "compare": ("compare", "{}"),
    "advise": ("advise", "{}"),
    "backup": ("backup", "{}", "check"),
    "monitor": ("monitor", "check", "{}"),
    "gateway": ("gateway", "check", "{}"),
    "copy verify": ("copy", "verify", "{}"),
    "cc": ("cc", "./{}"),
    "cc check": ("cc", "check", "./{}"),
    "own control in a scenario": ("run", "own.toml", "--set", "flow.congestion_control=./{}"),
    "trace": ("trace", "{}"),
    "trace in a scenario": ("run", "traced.toml", "--set", "flow.workload.trace=./{}"),
    "disk": ("disk", "show", "{}"),
    "disk replay": ("disk", "replay", "{}", "--disk", "nvme"),
    "hosts": ("hosts", "list"),
    "iscsi": ("iscsi", "target", "--lun", "disk", "--chap", "user={}"),
    "measure": ("measure", "stamp", "127.0.0.1:862", "--key-file", "{}"),
    "web tokens": ("web", "--tokens", "{}"),
    "web certificate": ("web", "--tls-cert", "{}", "--tls-key", "{}"),
}

ENDINGS = {"cc": ".c", "cc check": ".c", "own control in a scenario": ".c", "disk": ".parv"}

VALID = {
    # A book without hosts.
    ("hosts", "empty"),
}
"""Commands for which such a file is right."""

STREAMED = {"trace", "trace in a scenario", "disk replay"}
"""Commands that read files of any size, a part at a time: zeros are refused as what they are."""


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_cannot_be_one_is_refused_in_one_line(
    elephan: Elephan, folder: Path, command: str, kind: str
) -> None:
    path = folder / f"input{ENDINGS.get(command, '.toml')}"
    (folder / "own.toml").write_text(SCENARIO + "[[flow]]\n")
    (folder / "traced.toml").write_text(SCENARIO + '[[flow]]\nworkload = { kind = "replicate" }\n')
    (folder / "disk").write_bytes(bytes(1 << 20))
    make, reasons = FILES[kind]
    make(path)
    try:
        arguments = [word.format(path.name) for word in COMMANDS[command]]
        done = elephan(*arguments, environment={"ELEPHAN_HOSTS": str(path)}, is_limited=kind == "unreadable")
    finally:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if (command, kind) in VALID:
        assert (done.code, done.err) == (0, "")
        return
    assert done.code == 2, done
    assert done.err.startswith("error: ") and done.err.count("\n") == 1, done.err
    assert path.name in done.err
    if not (kind == "sparse" and command in STREAMED) and reasons:
        assert any(reason in done.err for reason in reasons), done.err
    assert done.s < LIMIT_S / 4
    assert done.resident_bytes < RESIDENT_MIB_MAX << 20


def test_a_link_to_a_regular_file_is_read(elephan: Elephan, folder: Path) -> None:
    (folder / "there.toml").write_text(SCENARIO + "[[flow]]\n")
    (folder / "link.toml").symlink_to("there.toml")
    assert elephan("check", "link.toml").code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a" + ".a" * 50_000 + " = 1\n", "a key has too many parts; at most 32"),
        ("[" + "a." * 50_000 + "a]\n", "a key has too many parts; at most 32"),
        ("x = {" + '"a" . ' * 50_000 + "a = 1}\n", "a key has too many parts; at most 32"),
        ("".join(f"a.b.c{number} = 1\n" for number in range(50_000)), "unknown key"),
        ("".join(f"k{number}.b = 1\n" for number in range(50_000)), "unknown key"),
        ("x = " + "[" * 50_000 + "]" * 50_000 + "\n", "nested too deeply"),
    ],
    ids=["key", "header", "inline", "tables", "keys", "arrays"],
)
def test_fifty_thousand_parts_or_keys_take_little_time(elephan: Elephan, folder: Path, text: str, said: str) -> None:
    (folder / "many.toml").write_text(text)
    done = elephan("check", "many.toml")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert said in done.err[-400:] or said in done.err[:400]
    # About 1 s on an idle machine, where it took 17; a factor for one that is not.
    assert done.s < 8


def receipt_of(folder: Path, manifest: Path) -> dict[str, Any]:
    """A receipt of a copy within this host, as far as verifying reads it."""
    from elephan.copy.receipt import FORM

    end = {"source": [str(folder / "source")], "destination": str(folder / "destination")}
    return {
        "receipt": FORM,
        "copy": "0" * 64,
        "root": "0" * 64,
        "destination": str(folder / "destination"),
        "sources": [str(folder / "source")],
        "paths": end,
        "manifests": {"source": str(manifest), "destination": str(manifest)},
        "settings": {},
    }


@pytest.mark.parametrize("kind", ["device", "fifo", "directory"])
def test_a_manifest_that_is_no_file_is_refused_by_copy_verify(elephan: Elephan, folder: Path, kind: str) -> None:
    for side in ("source", "destination"):
        (folder / side).mkdir(exist_ok=True)
    manifest = folder / "manifest"
    FILES[kind][0](manifest)
    (folder / "receipt.json").write_text(json.dumps(receipt_of(folder, manifest)))
    try:
        done = elephan("copy", "verify", "receipt.json")
    finally:
        manifest.rmdir() if kind == "directory" else manifest.unlink()
    assert (done.code, done.err.count("\n")) == (2, 1), done
    assert str(manifest) in done.err and any(reason in done.err for reason in FILES[kind][1]), done.err
    assert done.s < LIMIT_S / 4
