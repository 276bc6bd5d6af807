"""Linux's own Fibre Channel stack through gateways: libfc as initiator, tcm_fc as target, each a virtual machine.

    make fc                       # builds what the machines boot from, and does this

Each step prints a line with its time. The first one that fails ends the run with exit code 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from elephan.path import daemon
from tests.fc.gateway import Gateway
from tests.fc.machine import Machine, log_in, log_out, serve

DISK_MIB = 64
FILE_MIB = 16
NEAR, FAR = "198.18.0.1", "198.18.0.2"
"""Ends of an emulated path."""
NO_LOSS = ("kernel_drops", "held_too_long_frames", "ifcp_queue_full_frames")
"""Counters of frames that were lost for want of room."""


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
    initiator.run("mke2fs -F /dev/sda1 >/dev/null 2>&1 && mount -t ext4 /dev/sda1 /volume")
    initiator.run(f"dd if=/dev/urandom of=/scratch/random bs=1M count={FILE_MIB} 2>/dev/null")
    initiator.run("cp /scratch/random /volume/random && sync && umount /volume && echo 3 >/proc/sys/vm/drop_caches")
    check_file(initiator)


def check_file(initiator: Machine) -> None:
    """Compare the written file with its source. Raises RuntimeError where bytes differ."""
    initiator.run("echo 3 >/proc/sys/vm/drop_caches")
    initiator.run("mount -t ext4 -o ro /dev/sda1 /volume && cmp /scratch/random /volume/random && umount /volume")


def check_same(initiator: Machine, second: Machine) -> None:
    """Compare the written file's source with what another machine reads. Raises RuntimeError where bytes differ."""
    written = initiator.run("sha256sum </scratch/random")
    # The partitions are known a few round trips after the disk.
    second.until("ls /dev/sda1 2>&1", lambda output: output == "/dev/sda1")
    second.run("echo 3 >/proc/sys/vm/drop_caches && mount -t ext4 -o ro /dev/sda1 /volume")
    read = second.run("sha256sum </volume/random && umount /volume")
    if written != read:
        raise RuntimeError(f"written {written}, read {read}")


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
            serve(target, [initiator], DISK_MIB)
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
            can_read(initiator)
            after = gateway.wait_for(2)
            if before != after:
                raise RuntimeError(f"before {before}, after {after}")
        with step("logout"):
            log_out(initiator)
            gateway.wait_for(1)
        with step("the gateway ends, and the target is told"):
            gateway.end()
            target.until("cat /sys/class/fc_host/host*/port_state", lambda output: output != "Online")


def peer(mode: str, name: str, address: str, machines: Sequence[Machine], domain: int, own: str) -> str:
    """Tables of a gateway at `own` for its only peer, with the ports behind it in the order of their logins."""
    ports = ""
    for number, machine in enumerate(machines, start=0x100):
        # Addresses of a domain from the first on.
        place = f'id = "{domain:02x}{number:04x}"\n' if mode == "transparent" else ""
        ports += f'[[peer.port]]\nname = "{machine.wwpn}"\n{place}'
    return (
        f'[ip]\nlisten = "{own}:3420"\nmode = "{mode}"\nplaintext = true\n'
        f'[[peer]]\nname = "{name}"\naddress = "{address}:3420"\n{ports}'
    )


@contextmanager
def emulated_path(folder: Path, rtt: str, loss: str) -> Iterator[tuple[str, str]]:
    """Bring a path up; yield the namespaces of its ends."""
    file = folder / "path.toml"
    file.write_text(
        f'[run]\nduration = "1h"\n[path]\nbandwidth = "1Gbit/s"\nrtt = "{rtt}"\nloss = "{loss}"\n'
        '[[flow]]\ncongestion_control = "cubic"\n'
    )
    shown = daemon.up(file, [])
    try:
        (near, *_), (far, *_) = shown.hosts
        yield near, far
    finally:
        daemon.down(shown.id)


@contextmanager
def path_down(near: str, far: str) -> Iterator[None]:
    """Lose all packets of both directions: a route that ends in the loopback device, which drops what is not local."""
    routes = [["ip", "-n", near, "route", "{}", f"{FAR}/32", "dev", "lo"]]
    routes += [["ip", "-n", far, "route", "{}", f"{NEAR}/32", "dev", "lo"]]
    for route in routes:
        subprocess.run([word.format("add") for word in route], check=True)
    try:
        yield
    finally:
        for route in routes:
            subprocess.run([word.format("del") for word in route], check=True)


def can_read(initiator: Machine) -> None:
    """Wait until the disk gives data from its medium."""
    initiator.until(
        "dd if=/dev/sda of=/dev/null bs=4k count=1 iflag=direct 2>&1 && echo read",
        lambda output: output.endswith("read"),
    )


def write_during_outage(initiator: Machine, near: str, far: str) -> None:
    """Write a file while the path is away for 20 s. Raises RuntimeError where the write fails or bytes differ."""
    initiator.run("mount -t ext4 /dev/sda1 /volume && rm /volume/random && sync")
    initiator.run("(cp /scratch/random /volume/random && sync; echo $? >/scratch/copied) >/dev/null 2>&1 &")
    with path_down(near, far):
        time.sleep(20)
    code = initiator.until("cat /scratch/copied 2>/dev/null", lambda output: output != "")
    if code != "0":
        raise RuntimeError(f"the copy ended with {code}")
    initiator.run("umount /volume")
    check_file(initiator)


def two_gateways(folder: Path, mode: str, rtt: str, loss: str) -> None:
    """Two initiators at a gateway, a target at another, and a path between the gateways."""
    with ExitStack() as stack:
        machines = [Machine(folder, "a", 1), Machine(folder, "b", 2), Machine(folder, "c", 3)]
        for machine in machines:
            stack.callback(machine.close)
        initiator, target, second = machines
        near, far = stack.enter_context(emulated_path(folder, rtt, loss))
        more = peer(mode, "far", FAR, [target], 2, NEAR)
        here = Gateway(folder, "here", ["a", "c"], domain=1, more=more, namespace=near)
        stack.callback(here.kill)

        def far_gateway() -> Gateway:
            more = peer(mode, "near", NEAR, [initiator, second], 1, FAR)
            gateway = Gateway(folder, "there", ["b"], domain=2, more=more, namespace=far)
            stack.callback(gateway.kill)
            return gateway

        there = far_gateway()
        with step(f"three machines boot; two gateways, {mode}, over {rtt} with a loss of {loss}"):
            for machine in machines:
                machine.booted()
        with step("each logs in to its own gateway, and the initiator finds the disk behind the other"):
            serve(target, [initiator, second], DISK_MIB)
            log_in(target)
            there.wait_for_port(target.wwpn)
            log_in(initiator)
            find_disk(initiator)
        with step(f"{FILE_MIB} MiB written through a file system are read back equal"):
            write_and_read(initiator)
        with step("a second initiator finds the disk and reads the same file"):
            log_in(second)
            find_disk(second)
            check_same(initiator, second)
        with step("a file that is written while the path is away for 20 s is read back equal"):
            write_during_outage(initiator, near, far)
        with step("the far gateway is killed and started again: the file is still equal"):
            there.kill()
            there = far_gateway()
            can_read(initiator)
            check_file(initiator)
            can_read(second)
            check_same(initiator, second)
        with step("both end by a signal"):
            codes = (here.end(), there.end())
            if codes != (0, 0):
                raise RuntimeError(f"exit codes {codes}")
        lost = {name: (here.counter(name), there.counter(name)) for name in NO_LOSS}
        if any(sum(both) for both in lost.values()):
            raise RuntimeError(f"frames were lost: {lost}")


def main() -> int:
    """Run all, or what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.fc", description=__doc__)
    parser.add_argument("--rtt", nargs=2, default=["20ms", "100ms"], help="round-trip times between two gateways")
    parser.add_argument("--loss", default="1e-4", help="share of packets lost between them")
    options = parser.parse_args()
    runs = [
        one_gateway,
        partial(two_gateways, mode="transparent", rtt=options.rtt[0], loss=options.loss),
        partial(two_gateways, mode="translation", rtt=options.rtt[1], loss=options.loss),
    ]
    for run in runs:
        # A socket's path has room for 107 characters.
        with tempfile.TemporaryDirectory(prefix="elephan-fc-") as name:
            folder = Path(name)
            try:
                run(folder)
            except (RuntimeError, TimeoutError) as error:
                print(f"failed: {error}", flush=True)
                for log in sorted(folder.glob("*.log")):
                    print(f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}", flush=True)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
