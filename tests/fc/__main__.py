"""Linux's own Fibre Channel stack through gateways: libfc as initiator, tcm_fc as target, each a virtual machine.

    make fc                       # builds what the machines boot from, and does this

Each step prints a line with its time. The first one that fails ends the run with exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.fc.gateway import Gateway
from tests.fc.machine import Machine, log_in, log_out, serve

DISK_MIB = 64
FILE_MIB = 16


@contextmanager
def step(text: str) -> Iterator[None]:
    """Print a step's name, and its time when it is done."""
    print(f"{text} ...", end=" ", flush=True)
    begin_s = time.monotonic()
    yield
    print(f"{time.monotonic() - begin_s:.1f} s", flush=True)


def find_disk(initiator: Machine) -> None:
    """Wait for the disk: login, name server, SCSI."""
    initiator.until("ls /dev/sda 2>&1", lambda output: output == "/dev/sda")


def write_and_read(initiator: Machine) -> None:
    """Partition, make a file system, write, drop caches, and read back. Raises RuntimeError where bytes differ."""
    initiator.run("printf 'n\\np\\n1\\n\\n\\nw\\n' | fdisk /dev/sda >/dev/null 2>&1")
    initiator.until("ls /dev/sda1 2>&1", lambda output: output == "/dev/sda1")
    initiator.run("mke2fs -F /dev/sda1 >/dev/null 2>&1 && mount -t ext4 /dev/sda1 /mnt")
    initiator.run(f"dd if=/dev/urandom of=/tmp/random bs=1M count={FILE_MIB} 2>/dev/null")
    initiator.run("cp /tmp/random /mnt/random && sync && umount /mnt && echo 3 >/proc/sys/vm/drop_caches")
    initiator.run("mount -t ext4 -o ro /dev/sda1 /mnt && cmp /tmp/random /mnt/random && umount /mnt")


def one_gateway(folder: Path) -> None:
    """Both machines at one gateway: a local fabric."""
    with ExitStack() as stack:
        machines = [Machine(folder, "a", 1), Machine(folder, "b", 2)]
        for machine in machines:
            stack.callback(machine.close)
        gateway = Gateway(folder, "gateway", ["a", "b"])
        stack.callback(gateway.kill)
        initiator, target = machines
        with step("two machines boot"):
            initiator.booted()
            target.booted()
        with step("both log in, and the initiator finds the disk"):
            serve(target, initiator, DISK_MIB)
            log_in(target)
            log_in(initiator)
            find_disk(initiator)
        with step(f"{FILE_MIB} MiB written through a file system are read back equal"):
            write_and_read(initiator)
        with step("the gateway is killed and started again: the disk is back, with the same addresses"):
            before = gateway.ports()
            gateway.kill()
            gateway = Gateway(folder, "gateway", ["a", "b"])
            stack.callback(gateway.kill)
            initiator.until(
                "dd if=/dev/sda of=/dev/null bs=4k count=1 iflag=direct 2>&1 && echo read",
                lambda output: output.endswith("read"),
            )
            after = gateway.wait_for(2)
            if before != after:
                raise RuntimeError(f"before {before}, after {after}")
        with step("logout"):
            log_out(initiator)
            gateway.wait_for(1)
        with step("the gateway ends, and the target is told"):
            gateway.end()
            target.until("cat /sys/class/fc_host/host*/port_state", lambda output: output != "Online")


def main() -> int:
    """Run all, or what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.fc", description=__doc__)
    parser.parse_args()
    # A socket's path has room for 107 characters.
    with tempfile.TemporaryDirectory(prefix="elephan-fc-") as name:
        folder = Path(name)
        try:
            one_gateway(folder)
        except (RuntimeError, TimeoutError) as error:
            print(f"failed: {error}", flush=True)
            for log in sorted(folder.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}", flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
