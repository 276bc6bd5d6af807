"""Files that a user names are read by `elephan.user_files` alone, which refuses a device, a FIFO, a file too large."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.tidy.test_tidy import text_files

OWN = {
    "files of the system": {
        "elephan/backends/host.py",
        "elephan/congestion_control/verify.py",
        "elephan/kernel/boot.py",
        "elephan/kernel/namespaces.py",
        "elephan/kernel/systemd.py",
    },
    "files that elephan writes to a folder of its own": {
        "elephan/backends/programs/ssh.py",
        "elephan/hosts/boot.py",
        "elephan/kernel/saved_default.py",
        "elephan/monitor/daemon.py",
        "elephan/monitor/journal.py",
        "elephan/monitor/raw.py",
        "elephan/monitor/reading.py",
        "elephan/monitor/watch.py",
        "elephan/parity/paths.py",
        "elephan/path/daemon.py",
        "elephan/sweep/remote.py",
    },
    "parts of the package": {"elephan/cli/monitor.py", "elephan/core.py", "elephan/scenario/schema.py"},
    "the reader": {"elephan/user_files.py"},
}
"""Files that read others than a user's, by their reason."""

EXEMPT = frozenset(name for names in OWN.values() for name in names)

CONSTANT = re.compile(r"\(?_?[A-Z][A-Z_]+\b")
"""A path that begins with a constant: the system's, or the package's."""

SYSTEM = re.compile(r"['\"]/(proc|sys|dev)/|os\.devnull")


def reads(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each call that reads a file whose path is a variable."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        text, function = ast.unparse(node), node.func
        if isinstance(function, ast.Attribute):
            name, of = function.attr, ast.unparse(function.value)
        else:
            name, of = ast.unparse(function), ""
        is_read = name in ("read_text", "read_bytes") and of != "user_files"
        if name == "open" and of not in ("os", "tarfile"):
            modes = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            # Another thing's own open(), such as an Ethernet port's, has neither a path nor a mode.
            is_file = bool(modes) or (not of and bool(node.args))
            is_read = is_file and not any(set(mode) & set("wxa") for mode in modes[-1:])
        if is_read and not (CONSTANT.match(of) or SYSTEM.search(text) or "user_files." in text):
            yield node.lineno, text


def test_a_users_file_is_read_by_one_module() -> None:
    found = [
        f"{name}:{number}: {text[:80]}: read it by elephan.user_files"
        for name, lines in text_files()
        if name.startswith("elephan/") and name.endswith(".py") and name not in EXEMPT
        for number, text in reads(ast.parse("\n".join(lines)))
    ]
    assert not found, "\n".join(found)


def test_each_exemption_is_needed() -> None:
    texts = dict(text_files())
    needed = {name for name in EXEMPT if name in texts and any(reads(ast.parse("\n".join(texts[name]))))}
    assert needed == EXEMPT, f"these read no file: {', '.join(sorted(EXEMPT - needed))}"


def test_a_read_of_a_path_is_seen_and_others_are_not() -> None:
    for text in ("path.read_text()", "(folder / name).read_bytes()", "open(file)", "file.open('rb')", "open(x, 'r+b')"):
        assert list(reads(ast.parse(text))), text
    for text in (
        "user_files.read_text(path, user_files.TOML)",
        "open(user_files.open_regular(path), 'rb')",
        "open(file, 'w')",
        "STATIC.read_text()",
        "(STATIC / name).read_text()",
        "open('/proc/self/statm')",
        "os.open(path, 0)",
        "port.open(stop)",
    ):
        assert not list(reads(ast.parse(text))), text
