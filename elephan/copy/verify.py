"""A side of a finished copy, checked again at its host: signature, manifest, and the hash of each file."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elephan.copy import receipt
from elephan.copy.sides import host_of
from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.hosts.agent import connected, ending

LOOK_S = 0.1
"""Time between two looks for a signal, s."""

Wait = Callable[[float | None], bool]


def verified(
    file: Path, side: str, from_disk: bool, signers: Path | None, identity: str | None, wait: Wait
) -> dict[str, Any]:
    """Return what was found: `receipt`, `side`, `host`, `signature`, `files`, `bytes`, `without_hash`, `differences`,
    `differences_more`, `seconds`.

    Raises `InputError` for what is no receipt, `RunError` for a wrong signature or a host that cannot be asked, and
    `native.Stopped`.
    """
    found = receipt.read(file)
    signature = receipt.signed_by(file, signers, identity)
    host = receipt.host_of(found, side)
    spec: dict[str, Any] = {"manifest": found["manifests"][side], "root": found["root"], "from_disk": from_disk}
    # As the ends had them: a path of this machine is not of the working folder of now.
    paths = found["paths"][side]
    spec |= {"sources": paths} if side == "source" else {"destination": paths[0]}
    began_s = time.monotonic()
    checked = _here(spec, wait) if host is None else _there(host, spec, wait)
    return {
        "receipt": str(file),
        "copy": found["copy"],
        "side": side,
        "host": host,
        "signature": signature,
        **checked,
        "seconds": time.monotonic() - began_s,
    }


def _here(spec: dict[str, Any], wait: Wait) -> dict[str, Any]:
    work = native.CopyVerification(json.dumps(spec))
    done: list[str] = []
    faults: list[native.CopyFault] = []

    def run() -> None:
        try:
            done.append(work.run())
        except native.CopyFault as fault:
            faults.append(fault)

    thread = threading.Thread(target=run, name="elephan-copy-verify", daemon=True)
    thread.start()
    while thread.is_alive():
        if wait(0):
            work.stop()
            thread.join()
            raise native.Stopped("stopped")
        thread.join(LOOK_S)
    if faults:
        raise (InputError if faults[0].kind == "input" else RunError)(f"this machine: {faults[0].text}")
    found: dict[str, Any] = json.loads(done[0])
    return found


def _there(name: str, spec: dict[str, Any], wait: Wait) -> dict[str, Any]:
    with connected(host_of(name), as_user=True) as agent:
        reply = agent.begin("verify", **spec)
        with ending(agent.inbox, [reply]):
            while not agent.inbox.wait(lambda: reply.has_ended, LOOK_S):
                if wait(0):
                    raise native.Stopped("stopped")
            return reply.result()
