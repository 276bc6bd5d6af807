"""A gateway as a process of its own, with the ports that it reports."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TIMEOUT_S = 120


class Gateway:
    """`elephan gateway run` with a socket for each node: NAME.gateway, to NAME.node."""

    def __init__(
        self,
        folder: Path,
        name: str,
        nodes: Sequence[str],
        *,
        domain: int = 1,
        more: str = "",
        namespace: str | None = None,
    ) -> None:
        """Start it, in a network namespace if one is named; `more` are further tables of its file."""
        file = folder / f"{name}.toml"
        sockets = "".join(f'[[socket]]\nlocal = "{node}.gateway"\nremote = "{node}.node"\n' for node in nodes)
        fabric = f'[fabric]\nname = "10:00:00:00:00:00:00:{domain:02x}"\ndomain = {domain}\n'
        file.write_text(fabric + sockets + more)
        command = [] if namespace is None else ["ip", "netns", "exec", namespace]
        command += [sys.executable, "-c", "from elephan.cli import main; main()", "gateway", "run", str(file), "--json"]
        with (folder / f"{name}.log").open("a") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.status: dict[str, Any] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ports(self) -> list[tuple[str, str]]:
        """Address and name of each port."""
        return [(port["id"], port["port"]) for port in self.status.get("ports", [])]

    def wait_for(self, number: int) -> list[tuple[str, str]]:
        """Wait until so many ports are there, and return them. Raises TimeoutError."""
        self._until(lambda: len(self.ports()) == number, f"{number} ports")
        return self.ports()

    def wait_for_port(self, name: str) -> None:
        """Wait until a port is there. Raises TimeoutError."""
        self._until(lambda: any(port == name for _, port in self.ports()), name)

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds. Raises TimeoutError."""
        end = time.monotonic() + TIMEOUT_S
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: not within {TIMEOUT_S} s: {self.ports()}")
            time.sleep(0.2)

    def counter(self, name: str) -> int:
        """Return a counter's last value."""
        return int(self.status["counters"][name])

    def end(self) -> int:
        """End it by SIGTERM; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(TIMEOUT_S)
        self._reader.join()
        return code

    def kill(self) -> None:
        """End it as a power cut would; nothing where it has ended."""
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.status = json.loads(line)
