"""A virtual machine whose Ethernet is a UNIX datagram socket, and that takes commands on a serial port."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "target" / "fc"
BOOT_S = 240
"""Longest wait for a machine's first command, s: emulated, on a processor that others use."""
COMMAND_S = 240
"""Longest wait for a command, s."""


class Machine:
    """A running machine. Its Ethernet address is 52:54:00:00:00:NUMBER."""

    def __init__(self, folder: Path, name: str, number: int, memory_mib: int = 512) -> None:
        """Start it; its socket is NAME.node in the folder, and NAME.gateway that of the other side."""
        self.name = name
        self.mac = f"52:54:00:00:00:{number:02x}"
        kernel = next((BUILT / "image" / "boot").glob("vmlinuz-*"))
        network = f"dgram,id=net,local.type=unix,local.path={folder}/{name}.node"
        network += f",remote.type=unix,remote.path={folder}/{name}.gateway"
        command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "1"]
        command += ["-m", f"{memory_mib}M", "-no-reboot", "-display", "none", "-nodefaults"]
        command += ["-serial", f"file:{folder}/{name}.log", "-serial", "stdio"]
        command += ["-netdev", network, "-device", f"virtio-net-pci,netdev=net,mac={self.mac},romfile="]
        command += ["-kernel", str(kernel), "-initrd", str(BUILT / "first.gz")]
        command += ["-append", "console=ttyS0 loglevel=5 panic=1 tsc=unstable"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._got = b""

    @property
    def wwpn(self) -> str:
        """Name that Linux makes of the Ethernet address for the port."""
        return f"20:00:{self.mac}"

    def booted(self) -> Machine:
        """Wait for the first program's loop, and return the machine."""
        self._answer(BOOT_S)
        return self

    def run(self, command: str, timeout_s: float = COMMAND_S) -> str:
        """Run a command of one line in busybox' shell and return its output. Raises RuntimeError where it fails."""
        code, output = self.attempt(command, timeout_s)
        if code:
            raise RuntimeError(f"{self.name}: {command}: exit code {code}: {output}")
        return output

    def attempt(self, command: str, timeout_s: float = COMMAND_S) -> tuple[int, str]:
        """Run a command of one line in busybox' shell and return its exit code and output."""
        assert self.process.stdin is not None and "\n" not in command
        self.process.stdin.write(f"{command}\n".encode())
        return self._answer(timeout_s)

    def until(self, command: str, ready: Callable[[str], bool], timeout_s: float = COMMAND_S) -> str:
        """Run a command until its output is as wanted, and return it. Raises TimeoutError."""
        end = time.monotonic() + timeout_s
        while not ready(output := self.attempt(command)[1]):
            if time.monotonic() > end:
                raise TimeoutError(f"{self.name}: {command}: {output}")
            time.sleep(0.5)
        return output

    def close(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _answer(self, timeout_s: float) -> tuple[int, str]:
        """Read up to the line with an exit code."""
        assert self.process.stdout is not None
        end = time.monotonic() + timeout_s
        while True:
            before, mark, after = self._got.partition(b"== ")
            if mark and b"\n" in after:
                code, _, self._got = after.partition(b"\n")
                return int(code), before.decode(errors="replace").replace("\r", "").strip()
            left_s = end - time.monotonic()
            if left_s <= 0 or not select.select([self.process.stdout], [], [], left_s)[0]:
                raise TimeoutError(f"{self.name}: no answer in {timeout_s} s: {self._got!r}")
            some = os.read(self.process.stdout.fileno(), 65536)
            if not some:
                raise RuntimeError(f"{self.name}: the machine ended: {self._got!r}")
            self._got += some


def log_in(machine: Machine) -> None:
    """Bring the interface up and create the FCoE instance: the login follows."""
    machine.run("ip link set eth0 mtu 2500 up")
    machine.run("echo eth0 >/sys/bus/fcoe/ctlr_create")
    machine.run("echo 1 >$(ls -d /sys/bus/fcoe/devices/ctlr_*)/enabled")


def log_out(machine: Machine) -> None:
    """Destroy the FCoE instance: LOGO to all."""
    machine.run("echo eth0 >/sys/bus/fcoe/ctlr_destroy")


def serve(target: Machine, initiators: Iterable[Machine], mib: int) -> None:
    """Make a file a LUN of the machine's port, for initiators. The port logs in afterwards."""
    config = "/sys/kernel/config/target"
    disk, port = f"{config}/core/fileio_0/d0", f"{config}/fc/{target.wwpn}/tpgt_1"
    target.run(f"truncate -s {mib}M /scratch/disk && mkdir -p {disk}")
    target.run(f"echo fd_dev_name=/scratch/disk,fd_dev_size={mib << 20} >{disk}/control && echo 1 >{disk}/enable")
    target.run(f"mkdir -p {port}/lun/lun_0 && ln -s {disk} {port}/lun/lun_0/d0")
    for initiator in initiators:
        acl = f"{port}/acls/{initiator.wwpn}"
        target.run(f"mkdir -p {acl}/lun_0 && ln -s {port}/lun/lun_0 {acl}/lun_0/d0")
