"""Reflectors at hosts of the book: an agent at each, by SSH, in a process of its own as long as the monitor runs.

A process that ends (the host is down, the line is cut) is started again after 5 s, 10 s, ... 5 min.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field

from elephan.python_process import python_command

RETRY_LEAST_S, RETRY_MOST_S = 5.0, 300.0
LOOK_S = 1.0
"""Time between two looks of a child for its monitor's end, s."""


@dataclass
class _Reflector:
    process: subprocess.Popen[bytes] | None = None
    read: bytes = b""
    towards: str | None = None
    key: bytes | None = None
    fault: str | None = None
    retry_s: float = RETRY_LEAST_S
    due_s: float = 0.0


@dataclass
class Reflectors:
    """The reflectors by the name of their host."""

    hosts: dict[str, _Reflector] = field(default_factory=dict)

    def want(self, host: str) -> None:
        """Have a reflector at a host."""
        self.hosts.setdefault(host, _Reflector())

    def fault(self, host: str) -> str | None:
        """Return why there is none; None: there is one, or it is on its way."""
        found = self.hosts.get(host)
        return None if found is None else found.fault

    def poll(self) -> list[tuple[str, str, bytes]]:
        """Start what is due; return host, address and key of reflectors that are there anew."""
        fresh = []
        for host, one in self.hosts.items():
            if one.process is None:
                if time.monotonic() >= one.due_s:
                    one.process = subprocess.Popen(
                        python_command("-m", "elephan.monitor.reflectors", host),
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                    )
                    assert one.process.stdout is not None and one.process.stderr is not None
                    os.set_blocking(one.process.stdout.fileno(), False)
                    os.set_blocking(one.process.stderr.fileno(), False)
                    one.read, one.towards = b"", None
                continue
            assert one.process.stdout is not None
            one.read += one.process.stdout.read() or b""
            if one.towards is None and b"\n" in one.read:
                told = json.loads(one.read)
                one.towards, one.key = str(told["towards"]), bytes.fromhex(told["key"])
                one.fault, one.retry_s = None, RETRY_LEAST_S
                fresh.append((host, one.towards, one.key))
            if one.process.poll() is not None:
                assert one.process.stderr is not None
                lines = (one.process.stderr.read() or b"").decode("utf-8", "replace").strip().splitlines()
                one.fault = lines[-1] if lines else f"{host}: its reflector has ended"
                self._end(one)
                one.due_s = time.monotonic() + one.retry_s
                one.retry_s = min(RETRY_MOST_S, 2 * one.retry_s)
        return fresh

    def of(self, host: str) -> tuple[str, bytes | None] | None:
        """Return address and key of a host's reflector; None: there is none now."""
        found = self.hosts.get(host)
        return None if found is None or found.towards is None else (found.towards, found.key)

    def keep(self, hosts: set[str]) -> None:
        """End the reflectors at all other hosts."""
        for host in self.hosts.keys() - hosts:
            self._end(self.hosts.pop(host))

    def _end(self, one: _Reflector) -> None:
        process, one.process, one.towards = one.process, None, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        try:
            # The end of its input ends it, and the agent with it.
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> int:
    """Reflect at a host of the book until the input ends."""
    import select

    from elephan.errors import ElephanError
    from elephan.measure.target import agent_reflector
    from elephan.signals import termination_requested

    try:
        with termination_requested() as wait, agent_reflector(sys.argv[1]) as target:
            assert target.key is not None
            print(json.dumps({"towards": target.towards, "key": target.key.hex()}), flush=True)
            while not wait(0):
                if select.select([sys.stdin], [], [], LOOK_S)[0] and not os.read(0, 1):
                    break
    except ElephanError as error:
        print(str(error), file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
