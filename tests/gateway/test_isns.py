"""`elephan gateway run` with `[isns]`: two gateways that know of each other by open-isns alone."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.sites import PATIENCE_S, Running, Sites, name_of
from tests.processes import free_port

pytestmark = pytest.mark.looks_at_kernel

# Debian installs it where only root's PATH looks.
ISNSD = shutil.which("isnsd") or shutil.which("/usr/sbin/isnsd")


@contextmanager
def name_server(folder: Path) -> Iterator[int]:
    """Run open-isns on a port of 127.0.0.1, and yield the port."""
    if ISNSD is None:
        pytest.skip("isnsd is not installed (Debian package open-isns-server)")
    folder.mkdir()
    port = free_port()
    file = folder / "isnsd.conf"
    file.write_text(
        f"HostName = localhost\nSourceName = iqn.2026-11.example:server\nDatabase = {folder}/database\n"
        f"PIDFile = {folder}/pid\nControlSocket = {folder}/control\n"
        f"BindAddress = 127.0.0.1:{port}\nSecurity = 0\nSLPRegister = 0\n"
    )
    (folder / "database").mkdir()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([ISNSD, "-f", "-4", "-c", str(file)], stdout=log, stderr=log)
    try:
        end = time.monotonic() + PATIENCE_S
        while not _answers(port):
            assert time.monotonic() < end and process.poll() is None, (folder / "log").read_text()
            time.sleep(0.02)
        yield port
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def until(look: Callable[[], Any]) -> Any:
    """Return the first value that counts as true."""
    end = time.monotonic() + PATIENCE_S
    while not (value := look()):
        assert time.monotonic() < end, value
        time.sleep(0.1)
    return value


def test_gateways_find_each_other_and_say_how_the_server_is(tmp_path: Path) -> None:
    metrics = {site: free_port() for site in (1, 2)}

    def tables(site: int) -> str:
        return (
            f'[isns]\nserver = "127.0.0.1:{port}"\nrefresh = "1s"\n'
            f'[statistics]\nprometheus = "127.0.0.1:{metrics[site]}"\n'
        )

    def measured(site: int) -> dict[str, float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics[site]}/metrics", timeout=PATIENCE_S) as page:
            lines = [line.split() for line in page.read().decode().splitlines() if not line.startswith("#")]
        return {name.removeprefix("elephan_gateway_"): float(value) for name, value in lines}

    with name_server(tmp_path / "isns") as port:
        sites = Sites(tmp_path, tables=tables, has_peers=False)
        try:
            listener = sites.listener(2)
            until(lambda: measured(1)["isns_remote_ports"] == 1)
            done = sites.json(1, "ping", name_of(2), "-c", "1")
            assert len(done["answers"]) == 1
            # Addresses are transparent: site 2's are as its own gateway gave them.
            assert done["id"] == "020100"
            values = measured(1)
            assert values["isns_registered"] == 1 and values["isns_failures_total"] == 0
            assert values['peer_up{peer="10:00:00:00:00:00:00:02"}'] == 1
            assert 0 <= values["isns_answer_age_seconds"] < PATIENCE_S
            listener.end()
            until(lambda: measured(1)["isns_remote_ports"] == 0)
            until(lambda: measured(1)["ports"] == 0)
        finally:
            sites.close()


def test_the_line_of_statistics_has_the_server(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(
        '[fabric]\nname = "10:00:00:00:00:00:00:01"\n[[socket]]\nlocal = "1.gateway"\nremote = "1.node"\n'
        f'[ip]\nlisten = "127.0.0.1:{free_port()}"\n[isns]\nserver = "127.0.0.1:{free_port()}"\nentity = "here"\n'
    )
    gateway = Running("gateway", "run", str(file), "--json")
    line = gateway.until_said("iSNS server 127.0.0.1:")
    assert "Connection refused" in line and "it is tried again" in line
    assert gateway.process.stdout is not None
    statuses = (json.loads(line)["isns"] for line in gateway.process.stdout)
    isns = next(one for one in statuses if one["failures"])
    assert (isns["entity"], isns["registered"], isns["remote_ports"], isns["answer_age_ns"]) == ("here", False, 0, None)
    code, _ = gateway.end()
    assert code == 0, gateway.said
