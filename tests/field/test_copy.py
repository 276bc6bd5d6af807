"""docs/howto/copy.md between two sites: copied, killed, cut off, changed under way, verified."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

from tests.field.conftest import WHOLE, whole
from tests.field.judging import carried_bytes, differences, tree
from tests.field.network import Field
from tests.processes import until

LARGE_BYTES = 40_000_000 if WHOLE else 4_000_000
SLOW_S = 20.0 if WHOLE else 4.0
"""Time that these bytes take on a path that is slowed for it, s."""
SLOW = f"path.bandwidth={int(LARGE_BYTES * 8 / SLOW_S)}bit/s"
OUTAGE_S = 30.0 if WHOLE else 3.0


def test_a_tree_is_copied_again_nothing_is_sent_and_a_changed_byte_is_found(field: Field, folder: Path) -> None:
    source, receipt = tree(folder / "source", 1), folder / "receipt.json"
    done = field.elephan("copy", f"{source}/", f"b:{folder}/copy", "--receipt", receipt)
    assert done.returncode == 0, done.stderr
    assert differences(source, folder / "copy") == ""
    before = carried_bytes(field)
    again = field.elephan("copy", f"{source}/", f"b:{folder}/copy")
    assert again.returncode == 0, again.stderr
    # Two files alone have 1.5 MB; ssh and the messages of a copy have the rest.
    assert carried_bytes(field) - before < 300_000
    assert field.elephan("copy", "verify", receipt).returncode == 0
    with (folder / "copy" / "large").open("r+b") as file:
        file.seek(700_000)
        old = file.read(1)
        file.seek(700_000)
        file.write(bytes([old[0] ^ 1]))
    wrong = field.elephan("copy", "verify", receipt)
    assert wrong.returncode == 1 and "large" in wrong.stdout + wrong.stderr


def started(field: Field, source: Path, folder: Path, *options: str):  # type: ignore[no-untyped-def]  # a context
    return field.started("copy", f"{source}/", f"b:{folder}/copy", "--json", *options)


def wait_for(field: Field, before: int, sent_bytes: int) -> None:
    until(lambda: carried_bytes(field) - before > sent_bytes, 60)


def test_a_copy_that_was_killed_goes_on_where_it_was(field: Field, folder: Path) -> None:
    source = tree(folder / "source", 2, LARGE_BYTES)
    # Received data becomes durable, and is confirmed, once a second.
    field.set(SLOW)
    before = carried_bytes(field)
    with started(field, source, folder) as process:
        wait_for(field, before, LARGE_BYTES * 2 // 3)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not (folder / "copy" / "large").exists(), "a part has no name yet"
    before = carried_bytes(field)
    done = field.elephan("copy", f"{source}/", f"b:{folder}/copy")
    assert done.returncode == 0, done.stderr
    assert differences(source, folder / "copy") == ""
    # A third is left; the last second before the kill is sent once more.
    assert carried_bytes(field) - before < LARGE_BYTES * (0.75 if WHOLE else 0.9)


def test_an_outage_in_the_middle_and_another_path_after_it_change_no_byte(field: Field, folder: Path) -> None:
    source = tree(folder / "source", 3, LARGE_BYTES)
    field.set(SLOW)
    before = carried_bytes(field)
    with started(field, source, folder) as process:
        wait_for(field, before, LARGE_BYTES // 5)
        field.set("link_down=path")
        middle, cut_s = carried_bytes(field), time.monotonic()
        time.sleep(OUTAGE_S)
        field.set("link_up=path", "path.rtt=80ms", "path.mtu=1400B", "path.loss=1e-3", "path.bandwidth=40Mbit/s")
        out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err + out
    assert time.monotonic() - cut_s >= OUTAGE_S and middle - before < LARGE_BYTES
    assert differences(source, folder / "copy") == ""
    assert json.loads(out.splitlines()[-1])["event"] == "done"


@whole
def test_a_mirror_removes_what_the_source_has_not_and_lists_it_before(field: Field, folder: Path) -> None:
    source, copy = tree(folder / "source", 5), folder / "copy"
    tree(copy, 5)
    (copy / "stray").write_text("not at the source")
    listed = field.elephan("copy", f"{source}/", f"b:{copy}", "--mirror", "--dry-run")
    assert listed.returncode == 0 and "stray" in listed.stdout + listed.stderr and (copy / "stray").exists()
    done = field.elephan("copy", f"{source}/", f"b:{copy}", "--mirror")
    assert done.returncode == 0, done.stderr
    assert differences(source, copy) == ""


@whole
def test_over_ssh_and_by_quic_and_back(field: Field, folder: Path) -> None:
    source = tree(folder / "source", 6)
    for name, options in (("ssh", ["--over-ssh"]), ("quic", ["--transport", "quic"])):
        done = field.elephan("copy", f"{source}/", f"b:{folder}/{name}", *options)
        assert done.returncode == 0, done.stderr
        assert differences(source, folder / name) == ""
    done = field.elephan("copy", f"b:{folder}/ssh/", folder / "back")
    assert done.returncode == 0 and differences(source, folder / "back") == "", done.stderr


def test_by_ipv6(field: Field, folder: Path) -> None:
    source = tree(folder / "source", 7, 200_000)
    done = field.elephan("copy", f"{source}/", f"b6:{folder}/copy", "--receipt", folder / "receipt.json")
    assert done.returncode == 0, done.stderr
    assert differences(source, folder / "copy") == ""
