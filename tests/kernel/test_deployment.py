"""The commands and sysctls that put a congestion control into use, as printed."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from elephan.congestion_control import congestion_controls, find
from elephan.kernel import deployment, values_of
from elephan.kernel.socket_buffers import buffer_for
from elephan.scenario import load

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("cc", congestion_controls(), ids=lambda cc: cc.name)
def test_every_value_is_written_so_that_it_is_read_again(cc: deployment.CongestionControl) -> None:
    for item in cc.parameters:
        step = max(1, (item.maximum - item.minimum) // 97)
        for value in {*range(item.minimum, item.maximum + 1, step), item.default, item.maximum}:
            found = deployment.deployment_of(cc, {item.name: value})
            words = shlex.split(found.load)
            if item.is_by_variant and value == item.default:
                assert words == ["elephan", "kernel", "load", cc.name]
                continue
            assert words[:5] == ["elephan", "kernel", "load", cc.name, "--set"]
            assert values_of(cc.name, words[5:]) == {item.name: value}


def test_a_file_is_named_so_that_the_command_can_be_typed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = EXAMPLES / "congestion_controls" / "multcp.c"
    monkeypatch.chdir(EXAMPLES)
    assert deployment.deployment_of(find(str(file))).load == "elephan kernel load ./congestion_controls/multcp.c"
    monkeypatch.chdir(tmp_path)
    found = deployment.deployment_of(find(str(file)), {})
    assert found.load == f"elephan kernel load {file}"
    assert (found.name, found.default) == ("elephan_multcp", "elephan kernel default elephan_multcp --host")


def needs(**changes: str) -> deployment.Needs:
    settings = [f"path.{key}={value}" for key, value in changes.items()]
    return deployment.needs_of(load(EXAMPLES / "bulk.toml", settings).points()[0].to_spec())


def test_buffers_follow_from_the_path() -> None:
    found = needs(bandwidth="10Gbit/s", rtt="100ms", queue="0.5bdp")
    # The line loses packets: four times what the path and its queue hold.
    assert (found.path_bytes, found.window_bytes) == (125_000_000, 750_000_000)
    assert found.sysctls["net.ipv4.tcp_rmem"] == f"4096 131072 {buffer_for(750_000_000, 1500)}"
    assert found.sysctls["net.core.rmem_max"] == str(buffer_for(750_000_000, 1500))
    assert found.sysctls["net.ipv4.tcp_wmem"] == "4096 16384 1500000000"
    assert found.lines()[0].startswith("# 10.0 Gbit/s, 100 ms: the path holds 125 MB; a window of 750 MB.")
    # Without loss: twice the path, and the queue.
    clean = needs(bandwidth="10Gbit/s", rtt="100ms", queue="0.5bdp", loss="0")
    assert clean.window_bytes == 312_500_000
    assert clean.sysctls["net.ipv4.tcp_rmem"] == f"4096 131072 {buffer_for(312_500_000, 1500)}"
    longest = needs(bandwidth="400Gbit/s", rtt="200ms")
    assert (
        longest.sysctls["net.core.wmem_max"] == str(2 * 1_073_725_440) and "several connections" in longest.lines()[2]
    )


def test_a_kernel_takes_the_lines(tmp_path: Path) -> None:
    lines = needs(bandwidth="10Gbit/s", rtt="80ms").lines()
    (tmp_path / "90-elephan.conf").write_text("\n".join(line for line in lines if ".core." not in line) + "\n")
    script = f"sysctl -p {tmp_path}/90-elephan.conf && cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_wmem"
    words = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    read = [" ".join(line.split()) for line in done.stdout.splitlines()[-2:]]
    wanted = {line.partition(" = ")[0]: line.partition(" = ")[2] for line in lines}
    assert read == [wanted["net.ipv4.tcp_rmem"], wanted["net.ipv4.tcp_wmem"]]
    assert all(re.fullmatch(r"[a-z0-9_.]+ = [0-9 ]+", line) for line in lines if not line.startswith("#"))


def test_no_value_is_below_the_running_kernels_or_the_newest_linux(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = needs(bandwidth="10Mbit/s", rtt="5ms").sysctls
    for name, newest in (("tcp_rmem", 33_554_432), ("tcp_wmem", 4_194_304)):
        running = [int(number) for number in Path(f"/proc/sys/net/ipv4/{name}").read_text().split()]
        printed = [int(number) for number in found[f"net.ipv4.{name}"].split()]
        assert all(one >= other for one, other in zip(printed, running, strict=True))
        assert printed[2] >= newest
    # An administrator has given this machine more.
    for name, text in (("ipv4/tcp_rmem", "8192\t262144\t67108864"), ("ipv4/tcp_wmem", "4096 16384 50000000"),
                       ("core/rmem_max", "90000000"), ("core/wmem_max", "212992")):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(deployment, "SYSCTLS", tmp_path)
    found = needs(bandwidth="10Mbit/s", rtt="5ms").sysctls
    assert found["net.ipv4.tcp_rmem"] == "8192 262144 67108864"
    assert found["net.ipv4.tcp_wmem"] == "4096 16384 50000000"
    assert (found["net.core.rmem_max"], found["net.core.wmem_max"]) == ("90000000", "50000000")


def test_a_control_that_the_kernel_has_is_not_loaded_again() -> None:
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if "cubic" not in available:
        pytest.skip("this kernel has no cubic")
    lines = deployment.deployment_of(find("cubic"), {}).lines()
    assert "nothing to load" in lines[0]
    assert lines[1].startswith("sysctl -w net.ipv4.tcp_congestion_control=cubic  ")
    # Other values, or another author's variant, are not the kernel's.
    assert deployment.deployment_of(find("cubic"), {"beta": 900}).lines()[0].startswith("elephan kernel load cubic ")
    assert deployment.deployment_of(find("bic"), {}).linux is None
