"""Two sites over loopback: a gateway each on UNIX sockets, and `elephan fc` behind them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.processes import free_port

ELEPHAN = [sys.executable, "-c", "from elephan.cli import main; main()"]
PATIENCE_S = 60


def name_of(site: int) -> str:
    """Return the name of the port at a site."""
    return f"20:00:52:54:00:00:00:{site:02x}"


def id_of(site: int) -> str:
    """Return the address of the port at a site: the first of the site's domain."""
    return f"{site:02x}0100"


class Running:
    """A command that runs until it is ended; what it says on stderr is read on."""

    def __init__(self, *arguments: str, before: list[str] | None = None) -> None:
        """Start it; `before` stands before the command, such as one that enters a namespace."""
        self.process = subprocess.Popen(
            [*(before or []), *ELEPHAN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.said: list[str] = []

    def until_said(self, part: str) -> str:
        """Read what it says up to a line with a text, and return the line."""
        assert self.process.stderr is not None
        # Ends a process that does not say it, so that the read ends too.
        bound = threading.Timer(PATIENCE_S, self.process.kill)
        bound.start()
        try:
            for line in self.process.stderr:
                self.said.append(line.strip())
                if part in line:
                    return line.strip()
        finally:
            bound.cancel()
        raise AssertionError(f"it ended, or {PATIENCE_S} s were over: {self.said}")

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """End it by a signal; return its exit code and its output."""
        self.process.send_signal(number)
        return self.result()

    def result(self) -> tuple[int, str]:
        """Wait for its end; return its exit code and its output."""
        try:
            output, rest = self.process.communicate(timeout=PATIENCE_S)
            self.said += rest.splitlines()
        finally:
            self.process.kill()
        return self.process.returncode, output


class Sites:
    """Gateways 1 and 2, whose domains are their numbers, and a port behind each."""

    def __init__(
        self, folder: Path, *, keys: str = "", tables: Callable[[int], str] = lambda site: "", has_peers: bool = True
    ) -> None:
        """Write their files and start them; `keys` join [ip], `tables` of a site's number its file.

        Each has the other as a peer in its file, unless a name server is to list them.
        """
        self.folder = folder
        self.port = port = free_port()
        self.gateways: dict[int, Running] = {}
        for site in (1, 2):
            other = 3 - site
            peer = (
                f'[[peer]]\nname = "site-{other}"\naddress = "127.0.0.{other}:{port}"\n'
                f'[[peer.port]]\nname = "{name_of(other)}"\nid = "{id_of(other)}"\nrole = "target"\n'
            )
            (folder / f"{site}.toml").write_text(
                f'[fabric]\nname = "10:00:00:00:00:00:00:{site:02x}"\ndomain = {site}\n'
                f'[[socket]]\nlocal = "{site}.gateway"\nremote = "{site}.node"\n'
                f'[ip]\nlisten = "127.0.0.{site}:{port}"\n{keys}\n'
                f"{peer if has_peers else ''}{tables(site)}"
            )
            self.start(site)

    def start(self, site: int) -> Running:
        """Start a gateway."""
        self.gateways[site] = Running("gateway", "run", str(self.folder / f"{site}.toml"))
        self.gateways[site].until_said("fabric at ")
        return self.gateways[site]

    def address(self, site: int) -> tuple[str, int]:
        """Return the address at which a gateway takes connections."""
        return f"127.0.0.{site}", self.port

    def way(self, site: int) -> list[str]:
        """Return the options of the port at a site."""
        paths = ":".join(str(self.folder / f"{site}.{end}") for end in ("node", "gateway"))
        return ["--socket", paths, "--name", name_of(site)]

    def fc(self, site: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `elephan fc` at a site."""
        command = [*ELEPHAN, "fc", *arguments, *self.way(site)]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def json(self, site: int, *arguments: str) -> Any:
        """Run `elephan fc --json` at a site; return what it prints."""
        done = self.fc(site, *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def listener(self, site: int) -> Running:
        """Start `elephan fc load` without a load of its own."""
        listener = Running("fc", "load", "--json", *self.way(site))
        listener.until_said("listens at ")
        return listener

    def close(self) -> None:
        """End the gateways that run."""
        for gateway in self.gateways.values():
            gateway.process.kill()
            gateway.process.communicate()
