"""Programs with a protocol of their own, without encryption: iperf3, and rsync to its daemon."""

from __future__ import annotations

from elephan.backends.programs.ends import Apart, End, File, Place, to_receive, to_send, users
from elephan.backends.programs.ssh import copying
from elephan.run_spec.types import ProgramWorkloadSpec
from elephan.scenario.program import buffer_of, streams_of

_RSYNCD = """\
address = {address}
port = {port}
use chroot = no
{user}log file = /dev/stderr
refuse options = !write-devices
[sink]
path = {sink}
read only = no
hosts allow = {peer}
"""
"""A daemon refuses to write to devices unless it is told not to (rsyncd.conf(5))."""


def iperf3(
    workload: ProgramWorkloadSpec, near: Place, far: Place, port: int, seconds: int, limit_bps: int | None
) -> tuple[End, End]:
    """Return server, at `far`, and client, which sends for so many seconds and at most so many bit/s."""
    buffer, streams = buffer_of(workload), streams_of(workload)
    own = [] if buffer is None else ["-l", str(buffer)]
    own += [] if streams == 1 else ["-P", str(streams)]
    # Of each stream.
    own += [] if limit_bps is None else ["-b", str(max(limit_bps // streams, 1))]
    server = (far.command("iperf3"), "-s", "-1", "-B", far.address, "-p", str(port))
    client = (near.command("iperf3"), "-c", far.reached, "-B", near.address, "-p", str(port), "-i", "0")
    return End(server), End((*client, "-t", str(seconds), *own))


def rsyncd(workload: ProgramWorkloadSpec, near: Place, far: Place, port: int, limit_bps: int | None) -> tuple[End, End]:
    """Return daemon, at `far`, and client, which sends at most so many bit/s."""
    received, sent = to_receive(workload, far), to_send(workload, near)
    user = "uid = root\ngid = root\n" if far.is_root else ""
    config = _RSYNCD.format(address=far.address, port=port, sink=received.folder, user=user, peer=near.reached)
    daemon = [far.command("rsync"), "--daemon", "--no-detach", f"--config={far.folder}/rsyncd.conf"]
    files = (*users(far, f"{far.folder}/far"), File("rsyncd.conf", config))
    words = (near.command("rsync"), *copying(received, limit_bps), f"--address={near.address}", f"{sent.folder}/")
    return (
        End(tuple(daemon), files, received, Apart(received)),
        End((*words, f"rsync://{far.in_url}:{port}/sink/"), (), sent),
    )
