"""Programs with a protocol of their own, without encryption: iperf3, and rsync to its daemon."""

from __future__ import annotations

from elephan.backends.programs.ends import End, File, Place, apart, to_receive, to_send, users
from elephan.backends.programs.ssh import copying
from elephan.run_spec.types import ProgramWorkloadSpec
from elephan.scenario.program import buffer_of, streams_of

_RSYNCD = """\
address = {address}
port = {port}
use chroot = no
uid = root
gid = root
log file = /dev/stderr
refuse options = !write-devices
[sink]
path = {sink}
read only = no
"""
"""A daemon refuses to write to devices unless it is told not to (rsyncd.conf(5))."""


def iperf3(workload: ProgramWorkloadSpec, near: Place, far: Place, port: int, seconds: int) -> tuple[End, End]:
    """Return server, at `far`, and client, which sends for so many seconds."""
    buffer, streams = buffer_of(workload), streams_of(workload)
    own = [] if buffer is None else ["-l", str(buffer)]
    own += [] if streams == 1 else ["-P", str(streams)]
    server = (far.command("iperf3"), "-s", "-1", "-B", far.address, "-p", str(port))
    client = (near.command("iperf3"), "-c", far.address, "-B", near.address, "-p", str(port), "-i", "0")
    return End(server), End((*client, "-t", str(seconds), *own))


def rsyncd(workload: ProgramWorkloadSpec, near: Place, far: Place, port: int) -> tuple[End, End]:
    """Return daemon, at `far`, and client."""
    received, sent = to_receive(workload, far), to_send(workload, near)
    config = _RSYNCD.format(address=far.address, port=port, sink=received.folder)
    daemon = [far.command("rsync"), "--daemon", "--no-detach", f"--config={far.folder}/rsyncd.conf"]
    files = (*users(f"{far.folder}/far"), File("rsyncd.conf", config))
    words = (near.command("rsync"), *copying(received), f"--address={near.address}", f"{sent.folder}/")
    return (
        End(apart(far, daemon, received), files, received),
        End((*words, f"rsync://{far.address}:{port}/sink/"), (), sent),
    )
