"""Copies between this machine and two hosts: real ssh, real agents, an emulated path between the hosts."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.copy.conftest import Copy, book, events, same, started, tree
from tests.hosts import testbed
from tests.hosts.test_kills import agents

BYTES = 0 + 1 + 4095 + 70_000 + 1_500_000 + 2_000_003
"""Of the files of `tree`: of hard links the first counts, and holes do."""


def test_a_tree_there_and_back_with_receipt_and_signature(
    hosts: testbed.Hosts, copy: Copy, tmp_path: Path, state: Path
) -> None:
    source, there, back = tree(tmp_path / "source"), hosts.left.home() / "there", tmp_path / "back"
    receipt = tmp_path / "receipt.json"
    key = hosts.folder / "key-user"
    done = copy(source, f"near-left:{there}", "--receipt", receipt, "--sign", key)
    assert done.returncode == 0, done.stderr
    same(source, there / "source")
    told = json.loads(receipt.read_text())
    assert told["bytes"] == BYTES
    assert told["path"]["encryption"] == "TLS 1.3" and told["path"]["rtt_s"] > 0
    assert told["hosts"]["destination"]["user"] == 0 and told["versions"]["elephan"]
    assert (state / "receipts").is_dir() and not list((state / "unfinished").glob("*"))

    # Relative paths are those of the home there; the content of a folder, as with rsync.
    done = copy("near-left:there/source/", back, "--json")
    assert done.returncode == 0, done.stderr
    same(source, back)
    names = [event["event"] for event in events(done.stdout)]
    assert names[0] == "attempt" and names[-1] == "done" and {"connected", "scanned"} <= set(names)
    assert events(done.stdout)[-1]["receipt"]["root"] != ""

    signers = tmp_path / "signers"
    signers.write_text(f"me {(hosts.folder / 'key-user.pub').read_text()}")
    for side in ("source", "destination"):
        done = copy("verify", receipt, "--side", side, "--read", "--signers", signers, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["bytes"] == told["bytes"] and found["differences"] == []
        assert "elephan-copy" in found["signature"]
    flipped = there / "source" / "sub" / "file 4"
    content, times = bytearray(flipped.read_bytes()), flipped.stat()
    content[777] ^= 1
    flipped.write_bytes(content)
    os.utime(flipped, ns=(times.st_atime_ns, times.st_mtime_ns))
    done = copy("verify", receipt)
    assert done.returncode == 1, done.stderr
    assert "source/sub/file 4: its content is another one" in done.stdout.splitlines()
    # And a changed receipt is no longer what was signed.
    receipt.write_text(receipt.read_text().replace('"attempts"', '"attempted"'))
    done = copy("verify", receipt, "--signers", signers)
    assert done.returncode == 1 and "its signature is wrong" in done.stderr


def test_a_second_copy_sends_what_has_changed(hosts: testbed.Hosts, copy: Copy, tmp_path: Path) -> None:
    source, there = tree(tmp_path / "source"), hosts.left.home() / "again"
    assert copy(f"{source}/", f"near-left:{there}").returncode == 0
    with (source / "sub" / "file 4").open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"changed")
    os.utime(source / "sub", ns=(1, 1))
    done = copy(f"{source}/", f"near-left:{there}", "--json")
    assert done.returncode == 0, done.stderr
    same(source, there)
    assert 0 < events(done.stdout)[-1]["receipt"]["sent_bytes"] < 1_000_000


def test_data_between_two_hosts_goes_directly(hosts: testbed.Hosts, copy: Copy, tmp_path: Path) -> None:
    source = tree(hosts.left.home() / "from-left")
    done = copy(f"left:{source}", f"right:{hosts.right.home()}", "--json")
    assert done.returncode == 0, done.stderr
    same(source, hosts.right.home() / "from-left")
    (connected,) = [event for event in events(done.stdout) if event["event"] == "connected"]
    # The path has 10 ms, the way to the front has none.
    assert connected["address"] == hosts.right.data and connected["rtt_s"] >= 0.01


@pytest.mark.parametrize("more", [["--over-ssh", "--streams", "3"], ["--listen", "local"], ["--plaintext"]])
def test_other_ways_carry_the_same_file(hosts: testbed.Hosts, copy: Copy, tmp_path: Path, more: list[str]) -> None:
    source = tmp_path / "file"
    source.write_bytes(os.urandom(3_000_000))
    there = hosts.left.home() / f"file{''.join(more)}"
    done = copy(source, f"near-left:{there}", *more, "--json")
    assert done.returncode == 0, done.stderr
    assert there.read_bytes() == source.read_bytes()
    (connected,) = [event for event in events(done.stdout) if event["event"] == "connected"]
    said = {"--over-ssh": "ssh", "--listen": "TLS 1.3", "--plaintext": "none: --plaintext"}[more[0]]
    assert connected["encryption"] == said
    assert (connected["listener"] == "this machine") == (more[0] == "--listen")


def test_the_agent_is_the_user_without_rights(hosts: testbed.Hosts, copy: Copy, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    # sudo would ask this one nothing: the copy does not use it.
    home = hosts.left.home(testbed.SUDOER)
    done = copy(tmp_path / "file", "near-sudo:file", "--json")
    assert done.returncode == 0, done.stderr
    assert (home / "file").stat().st_uid == testbed.USERS[testbed.SUDOER]
    assert events(done.stdout)[-1]["receipt"]["hosts"]["destination"]["user"] == testbed.USERS[testbed.SUDOER]


def test_what_cannot_be_read_is_listed_and_the_rest_is_copied(hosts: testbed.Hosts, copy: Copy, tmp_path: Path) -> None:
    source = hosts.left.home(testbed.USER) / "mixed"
    source.mkdir(mode=0o755)
    (source / "good").write_bytes(b"good")
    (source / "secret").write_bytes(b"secret")
    (source / "secret").chmod(0o600)
    done = copy("near-user:mixed", tmp_path / "copied", "--no-owners")
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "copied" / "mixed" / "good").read_bytes() == b"good"
    assert not (tmp_path / "copied" / "mixed" / "secret").exists()
    assert done.stdout.startswith("not copied: mixed/secret: "), done.stdout


@pytest.mark.parametrize("victim", ["front", "agent", "interrupt"])
def test_the_same_command_goes_on_after_a_kill(
    hosts: testbed.Hosts, copy: Copy, tmp_path: Path, state: Path, victim: str
) -> None:
    source, there = tmp_path / "file", hosts.left.home() / f"killed-{victim}"
    source.write_bytes(os.urandom(4_000_000))
    front = started(hosts, source, f"near-left:{there}", "--rate", "20Mbit/s", "--json")
    assert front.stdout is not None
    durable = 0
    for line in front.stdout:
        durable = json.loads(line).get("durable_bytes", 0)
        if durable > 500_000:
            break
    assert durable > 500_000, front.communicate()
    if victim == "agent":
        # The front goes on by itself.
        for pid in agents(hosts.left):
            testbed.kill(pid)
        text = front.communicate(timeout=60)[0]
        assert front.returncode == 0
        assert [event["event"] for event in events(text)].count("lost") == 1
        sent = events(text)[-1]["receipt"]["attempts"]
        assert len(sent) == 2
    else:
        front.send_signal(signal.SIGKILL if victim == "front" else signal.SIGINT)
        said = front.communicate(timeout=30)[1]
        assert front.returncode == (-signal.SIGKILL if victim == "front" else 130)
        assert victim == "front" or "the same command continues from there" in said
        assert len(list((state / "unfinished").glob("*.json"))) == 1
        # Data that was in the kernel's buffers when the front was killed may still have made it whole.
        assert not there.exists() or there.read_bytes() == source.read_bytes()
        assert "not done" in copy("list").stdout
        done = copy(source, f"near-left:{there}", "--json")
        assert done.returncode == 0, done.stderr
        assert events(done.stdout)[-1]["receipt"]["sent_bytes"] <= 4_000_000 - durable
    assert there.read_bytes() == source.read_bytes()
    assert not list((state / "unfinished").glob("*.json"))


def test_an_unfinished_copy_is_given_up(hosts: testbed.Hosts, copy: Copy, tmp_path: Path) -> None:
    source, there = tmp_path / "file", hosts.left.home() / "given-up"
    # It takes five seconds, so that a busy machine stops it before its end.
    source.write_bytes(os.urandom(12_000_000))
    front = started(hosts, source, f"near-left:{there}/", "--rate", "20Mbit/s", "--json")
    assert front.stdout is not None
    for line in front.stdout:
        if json.loads(line).get("durable_bytes", 0) > 500_000:
            break
    front.send_signal(signal.SIGTERM)
    front.communicate(timeout=30)
    name = copy("list").stdout.split()[0]
    done = copy("forget", name)
    assert done.returncode == 0, done.stderr
    assert copy("list").stdout == "no copies\n"
    assert not [path for path in there.rglob("*") if path.is_file()]


def test_a_dry_run_counts_and_sends_nothing(hosts: testbed.Hosts, copy: Copy, tmp_path: Path) -> None:
    source = tree(hosts.left.home() / "counted")
    done = copy(f"near-left:{source}", tmp_path / "nothing", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["files"] == 6 and found["bytes"] == BYTES
    assert not (tmp_path / "nothing").exists()


def test_a_path_that_no_data_passes_names_the_way_through_ssh(
    hosts: testbed.Hosts, copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    # This machine refuses at once: the host listens elsewhere.
    with book(hosts).open("a") as file:
        file.write('[blocked]\nssh = "root@left"\naddress = "127.0.0.2"\nports = "9-10"\n')
    monkeypatch.setattr("elephan.copy.attempt.CONNECT_S", 0.5)
    done = copy(tmp_path / "file", "blocked:file", "--listen", "remote")
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert "no connection for data" in done.stderr and "--over-ssh" in done.stderr


def test_a_host_that_ssh_does_not_reach_is_named(copy: Copy, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    done = copy(tmp_path / "file", "nowhere.invalid:file")
    assert done.stderr.count("\n") == 1 and "nowhere.invalid" in done.stderr
    # A machine without name servers cannot know.
    if "temporary failure" not in done.stderr:
        assert done.returncode == 2
        assert "nowhere.invalid: neither a host of elephan hosts list, nor one that ssh finds" in done.stderr


def test_a_users_own_control_is_loaded_for_the_copy(hosts: testbed.Hosts, copy: Copy, tmp_path: Path) -> None:
    source = hosts.left.home() / "controlled"
    source.write_bytes(os.urandom(500_000))
    before = testbed.controls()
    done = copy(f"near-left:{source}", tmp_path / "controlled", "--cc", "storage_friendly", "--json")
    assert done.returncode == 0, done.stderr
    receipt = events(done.stdout)[-1]["receipt"]
    assert receipt["used"]["by"] == "bpf" and receipt["used"]["control"] == "storage_friendly"
    testbed.waited(lambda: testbed.controls() == before)
    # Without rights the copy says what it uses instead.
    home = hosts.left.home(testbed.USER)
    (home / "controlled").write_bytes(b"x")
    done = copy("near-user:controlled", tmp_path / "other", "--cc", "storage_friendly", "--json", "--no-owners")
    assert done.returncode == 0, done.stderr
    receipt = events(done.stdout)[-1]["receipt"]
    assert receipt["used"]["by"] == "default" and "cannot be loaded there" in receipt["notes"][0]


def test_a_copy_on_this_machine_needs_no_host(copy_alone: Copy, tmp_path: Path) -> None:
    source = tree(tmp_path / "source")
    done = copy_alone(source, tmp_path / "there", "--verify=read", "--exclude", "hole")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path / "there" / "source")) == ["hard", "link", "sub"]
    same(source / "sub", tmp_path / "there" / "source" / "sub")
