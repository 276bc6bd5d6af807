"""Real programs between two hosts: each carries its bytes, is measured as between namespaces, and leaves nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from elephan.backends import programs
from elephan.backends.programs.requirements import NEEDS
from elephan.scenario.program import PROGRAMS
from tests.hosts import testbed
from tests.hosts.conftest import Elephan, command, started
from tests.hosts.test_runs import records

pytestmark = pytest.mark.usefixtures("nothing_stays", "installed")

HEAD = """\
[run]
duration = "{duration}"
stop_when_done = true
[path]
bandwidth = "100Mbit/s"
rtt = "32ms"
queue = "1bdp"
"""
FLOW = """
[[flow]]
name = "{name}"
congestion_control = "{cc}"
workload = {{ kind = "program", program = "{program}"{keys} }}
"""
BYTES = 600_000
PGET_BYTES = 4_000_000
DISK = Path("/var/tmp")
ARGUMENTS = ("--on", "hosts", "--hosts", "left,right", "--yes", "--json", "--no-report")


@pytest.fixture
def installed() -> None:
    for program in (name for name in NEEDS if not PROGRAMS[name].over_udp):
        lacking = programs.lacks(program, programs.installed())
        if lacking:
            pytest.skip(lacking)


def scenario(folder: Path, flows: dict[str, str], duration: str = "60s", cc: str = "cubic") -> Path:
    """Write a scenario of programs, each with its keys."""
    file = folder / "programs.toml"
    text = "".join(
        FLOW.format(name=name, cc=cc, program=name, keys=keys and f", {keys}") for name, keys in flows.items()
    )
    file.write_text(HEAD.format(duration=duration) + text)
    return file


def test_each_program_carries_its_bytes_and_is_measured(hosts: testbed.Hosts, elephan: Elephan, tmp_path: Path) -> None:
    keys = f'bytes = "{BYTES}B"'
    several = f'{keys}, files = 3, streams = 3, source = "disk", sink = "disk"'
    flows = {
        "iperf3": 'duration = "1s", streams = 2',
        "scp": keys,
        "sftp": f'{keys}, source = "disk", sink = "disk"',
        "rsync": keys,
        "rsyncd": several,
        "rclone": several,
        "ftp": keys,
        "lftp": several,
        # A smaller file arrives before lftp's other connections stand, for which it then waits for good.
        "pget": f'bytes = "{PGET_BYTES}B", streams = 3, sink = "disk"',
    }
    (record,) = records(elephan("run", scenario(tmp_path, flows), *ARGUMENTS))
    found = {flow["name"]: flow for flow in record["flows"]}
    assert found.keys() == flows.keys()
    for name, flow in found.items():
        if name == "iperf3":
            assert flow["delivered_bytes"] > 100_000 and "completion_s" not in flow
        else:
            # SSH adds a little; rclone fills the last request of each file; a part of pget's goes on for a round trip.
            least, most = (PGET_BYTES, 3 * PGET_BYTES) if name == "pget" else (BYTES, BYTES + 3 * (32 << 10) + 20_000)
            assert least <= flow["delivered_bytes"] < most, flow
            assert 0.032 < flow["completion_s"] < 60
        assert flow["workload"] == name and flow["rtt_min_s"] >= 0.032
        assert flow["sent_segments"] >= flow["delivered_bytes"] / 1448 - 10
    ends = record["host"]["sender_ends"]
    assert [end["flow"] for end in ends] == list(flows)
    # Of connections that come and go between two looks the kernel does not tell it.
    (control,) = {end["congestion_control"] for end in ends} - {""}
    assert control.startswith("elephan_h")
    assert all(end["received_bytes"] > 0 for end in record["host"]["receiver_ends"])
    assert record["host"]["programs"]["right"].keys() == {"iperf3", "ssh", "rsync", "rclone", "vsftpd", "curl", "lftp"}
    assert record["host"]["programs_disk"]["left"].startswith("/var/tmp (")
    notes = "\n".join(record["notes"])
    assert "left: net.ipv4.tcp_congestion_control = the flow's for all connections" in notes, notes
    assert "no connection" not in notes and "had arrived" not in notes, notes


@pytest.fixture
def reno(hosts: testbed.Hosts) -> Iterator[None]:
    """Make reno the default of the host that sends: a user's programs take the host's."""
    name = "net.ipv4.tcp_congestion_control"
    before = hosts.left.sysctls()[name]
    hosts.left.run("sysctl", "-w", f"{name}=reno")
    yield
    hosts.left.run("sysctl", "-w", f"{name}={before}")


@pytest.mark.usefixtures("reno")
def test_a_user_without_rights_runs_what_needs_none(elephan: Elephan, tmp_path: Path) -> None:
    keys = f'bytes = "{BYTES}B"'
    flows = {
        "iperf3": 'duration = "1s"',
        "scp": keys,
        "rsync": f'{keys}, files = 2, sink = "disk"',
        "rsyncd": f"{keys}, files = 2",
        "rclone": keys,
    }
    arguments = ("--on", "hosts", "--hosts", "user-left,user-right", "--yes", "--json", "--no-report")
    (record,) = records(elephan("run", scenario(tmp_path, flows, cc="reno"), *arguments))
    for flow in record["flows"]:
        assert flow["name"] == "iperf3" or flow["delivered_bytes"] >= BYTES and flow["completion_s"] > 0.032
    assert {end["congestion_control"] for end in record["host"]["sender_ends"]} - {""} == {"reno"}
    assert any("the kernel's own reno" in note for note in record["notes"])


@pytest.mark.parametrize(
    ("flows", "cc", "says"),
    [
        ({"ftp": 'bytes = "1MB"'}, "reno", "user-right: flow ftp: vsftpd needs root there: log in as root"),
        ({"scp": 'bytes = "1MB"'}, "fast", "sudo elephan kernel load fast"),
        ({"scp": 'bytes = "900TB", sink = "disk"'}, "reno", 'user-right: "disk": /var/tmp has room for'),
    ],
)
@pytest.mark.usefixtures("reno")
def test_what_a_host_does_not_allow_is_one_line(
    elephan: Elephan, tmp_path: Path, flows: dict[str, str], cc: str, says: str
) -> None:
    file = scenario(tmp_path, flows, cc=cc)
    done = elephan("run", file, "--on", "hosts", "--hosts", "user-left,user-right", "--yes", "--no-report")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and says in done.stderr, done.stderr


def test_a_users_program_takes_the_hosts_default_control(
    hosts: testbed.Hosts, elephan: Elephan, tmp_path: Path
) -> None:
    default = hosts.left.sysctls()["net.ipv4.tcp_congestion_control"]
    file = scenario(tmp_path, {"scp": 'bytes = "1MB"'}, cc="reno")
    done = elephan("check", file, "--on", "hosts", "--hosts", "user-left,user-right")
    if default == "reno":
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert f"which is {default}" in done.stderr
    assert "sudo sysctl -w net.ipv4.tcp_congestion_control=reno" in done.stderr, done.stderr


def test_a_program_that_a_host_lacks_is_named_with_its_package(
    hosts: testbed.Hosts, elephan: Elephan, tmp_path: Path
) -> None:
    # An empty file is no command: there it lies over the program, in the host's own view of its files.
    enter = ("nsenter", "-t", str(hosts.right.sshd.pid), "-m")
    rclone = str(programs.found("sshd"))
    subprocess.run([*enter, "mount", "--bind", "/dev/null", rclone], check=True)
    try:
        done = elephan("check", scenario(tmp_path, {"scp": 'bytes = "1MB"'}), *ARGUMENTS[:4])
    finally:
        subprocess.run([*enter, "umount", rclone], check=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    line = "right: flow scp: scp needs sshd, which is not installed: apt-get install openssh-server"
    assert line in done.stderr, done.stderr


def test_the_goodput_is_that_of_the_kernel_backend(elephan: Elephan, tmp_path: Path) -> None:
    file = scenario(tmp_path, {"iperf3": 'duration = "2s"'}, duration="2s")
    arguments = ("--on", "kernel,hosts", *ARGUMENTS[2:])
    by = {record["backend"]: record for record in records(elephan("run", file, *arguments))}
    goodputs = {backend: record["metrics"]["goodput_bps"] for backend, record in by.items()}
    # Loose, for a busy machine: a quiet one had them within 1 % of each other.
    assert goodputs["hosts"] == pytest.approx(goodputs["kernel"], rel=0.5)
    absent = by["kernel"]["flows"][0].keys() - by["hosts"]["flows"][0].keys()
    # Counters of a namespace of the flow's own, and of a queue that nobody sees on a real path.
    assert absent <= {"fast_retransmits", "tlp_probes", "spurious_recoveries", "dropped_packets"}, absent


def test_a_rate_limit_is_the_programs_own(elephan: Elephan, tmp_path: Path) -> None:
    file = scenario(tmp_path, {"ftp": 'bytes = "500kB"'})
    arguments = ("--on", "hosts", "--hosts", "left,right", "--rate-limit", "4Mbit/s", "--json", "--no-report")
    (record,) = records(elephan("run", file, *arguments))
    # 4 Mbit at 4 Mbit/s.
    assert record["flows"][0]["completion_s"] > 0.8
    assert any("each program bounds its data by its own option" in note for note in record["notes"])


def test_data_keeps_to_the_ports_of_the_server(hosts: testbed.Hosts, elephan: Elephan, tmp_path: Path) -> None:
    book = hosts.folder / "hosts.toml"
    before = book.read_text()
    where = f'ssh = "root@left"\naddress = "{hosts.left.data}"'
    book.write_text(f'{before}[many]\n{where}\nports = "5000-5020"\n[few]\n{where}\nports = "5000-5004"\n')
    # The server of pget is at the source.
    file = scenario(tmp_path, {"pget": f'bytes = "{PGET_BYTES}B", streams = 2'})
    try:
        rest = ("--on", "hosts", "--yes", "--json", "--no-report", "--hosts")
        (record,) = records(elephan("run", file, *rest, "many,right"))
        few = elephan("run", file, *rest, "few,right")
    finally:
        book.write_text(before)
    assert record["flows"][0]["delivered_bytes"] >= PGET_BYTES and "completion_s" in record["flows"][0]
    assert few.returncode == 1 and "few: of the ports from 5000 to 5004 too few are left" in few.stderr, few.stderr


def begun(hosts: testbed.Hosts, file: Path) -> subprocess.Popen[str]:
    """Begin a run; returns when its client has sent data."""
    front = started(hosts, command("run", file, *ARGUMENTS, "--again"))
    testbed.waited(lambda: carries(hosts), lambda: str([end.processes() for end in hosts.ends]))
    return front


def carries(hosts: testbed.Hosts) -> bool:
    """Return True if a program's folder has data, and a connection between the two hosts has sent some."""
    seen = hosts.left.run("ss", "-tinH", "state", "established", "dst", hosts.right.data).stdout
    return any(int(word.partition(":")[2]) > 100_000 for word in seen.split() if word.startswith("bytes_acked:"))


@pytest.mark.parametrize("victim", ["front", "agent", "client", "server"])
def test_nothing_stays_of_programs_that_were_killed(hosts: testbed.Hosts, tmp_path: Path, victim: str) -> None:
    # The server of pget is at the left, the others' is at the right.
    program = "pget" if victim == "agent" else "rsync"
    front = begun(hosts, scenario(tmp_path, {program: 'bytes = "1GB", sink = "disk"'}))
    assert len(testbed.folders()) >= 3
    mark, end = {
        "agent": ("/.cache/elephan/agent-", hosts.left),
        "client": ("rsync -r ", hosts.left),
        "server": ("sshd -D ", hosts.right),
    }.get(victim, ("", hosts.left))
    if victim == "front":
        front.kill()
    # The process that runs it apart from its host, and itself.
    for pid in [pid for pid, line in end.processes().items() if mark and mark in line and "sudo" not in line]:
        testbed.kill(pid)
    said = front.communicate(timeout=60)[1]
    if victim != "front":
        assert front.returncode == 1 and said.splitlines()[-1].startswith("error: "), said
    for end in hosts.ends:
        testbed.waited(lambda end=end: not end.processes(), lambda end=end: str(end.processes()))


def test_a_disk_that_fills_up_ends_the_run_in_one_line(hosts: testbed.Hosts, tmp_path: Path) -> None:
    image = tmp_path / "disk.img"
    with image.open("wb") as made:
        made.truncate(140 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True, capture_output=True)
    enter = ["nsenter", "-t", str(hosts.right.sshd.pid), "-m"]
    subprocess.run([*enter, "mount", "-o", "loop", str(image), str(DISK)], check=True)
    try:
        front = begun(hosts, scenario(tmp_path, {"scp": 'bytes = "40MB", sink = "disk"'}))
        # In the host's own view of its files, and bounded.
        fill = ["dd", "if=/dev/zero", f"of={DISK / 'other'}", "bs=1M", "count=200"]
        subprocess.run([*enter, *fill], capture_output=True, check=False)
        out, said = front.communicate(timeout=120)
        left = subprocess.run([*enter, "ls", "-A", str(DISK)], capture_output=True, text=True, check=True).stdout
    finally:
        subprocess.run([*enter, "umount", "--lazy", str(DISK)], check=True)
    assert front.returncode == 1, out + said
    last = said.splitlines()[-1]
    assert last.startswith("error: left: flow scp: scp: exit status: ") and last.endswith(
        "; right: /var/tmp is full"
    ), said
    assert left.split() == ["lost+found", "other"], left
