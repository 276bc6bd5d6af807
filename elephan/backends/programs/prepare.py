"""From a flow of a program to its server and its client."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from elephan.backends.programs import ftp, plain, ssh, udp
from elephan.backends.programs.ends import Data, End, Place
from elephan.backends.programs.requirements import found
from elephan.errors import RunError
from elephan.run_spec.types import FlowSpec
from elephan.scenario.program import PROGRAMS, streams_of

MARGIN_NS = 60_000_000_000
"""Time for iperf3 beyond the end of the run, with which it is ended: for its own beginning, ns."""


@dataclass(frozen=True)
class Ends:
    """Server and client of a flow's program."""

    program: str
    server: End
    client: End
    fetches: bool
    """The client is at the destination, and the server at the source."""
    streams: int
    """Connections with data at once."""
    over_udp: bool
    """No connection of TCP carries its data."""

    @property
    def confirmed(self) -> bool:
        """Return True if the client ends well only after the other end has confirmed all data.

        iperf3 ends at the end of its time; its server then discards data in flight.
        """
        return self.program != "iperf3"

    @property
    def sent(self) -> Data | None:
        """Files at the source."""
        return (self.server if self.fetches else self.client).data

    @property
    def received(self) -> Data | None:
        """Files at the destination."""
        return (self.client if self.fetches else self.server).data


def ends_of(
    flow: FlowSpec,
    near: Place,
    far: Place,
    port: int,
    duration_ns: int,
    within: Path,
    limit_bps: int | None = None,
) -> Ends:
    """Return the ends of a flow's program.

    `near` is the source's place, `far` the destination's, `port` the server's, `duration_ns` the run's. Keys are made
    on this machine, in the folder `within`. The client limits itself to `limit_bps` where there is one. Raises
    `RunError`.
    """
    workload = flow["workload"]
    assert workload["kind"] == "program", "a flow of a program"
    program = workload["program"]
    try:
        match program:
            case "iperf3":
                # Without a time it is ended with the run.
                until_ns = duration_ns + MARGIN_NS if flow["stop_ns"] is None else flow["stop_ns"]
                seconds = (until_ns - flow["start_ns"]) // 1_000_000_000
                server, client = plain.iperf3(workload, near, far, port, seconds, limit_bps)
            case "rsyncd":
                server, client = plain.rsyncd(workload, near, far, port, limit_bps)
            case "ftp" | "lftp":
                server, client = ftp.pushed(workload, near, far, port, limit_bps)
            case "pget":
                server, client = ftp.fetched(workload, near, far, port, limit_bps)
            case "udt":
                server, client = udp.udt(flow, workload, near, far, port)
            case "srt":
                server, client = udp.srt(flow, workload, near, far, port)
            case _:
                keys = ssh.Keys.made(found("ssh-keygen"), within)
                server, client = ssh.ends(workload, near, far, port, keys, limit_bps)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RunError(f"flow {flow['name']}: {program} cannot be set up: {error}") from error
    traits = PROGRAMS[program]
    return Ends(program, server, client, traits.fetches, streams_of(workload), traits.over_udp)
