"""A side of a finished copy, checked again at its host: signature, manifest, and the hash of each file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from elephan.copy import receipt
from elephan.copy.asked import Wait, here, there
from elephan.core import native


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
    if host is None:
        work = native.CopyVerification(json.dumps(spec))
        checked = here(work.run, work.stop, wait)
    else:
        checked = there(host, "verify", spec, wait)
    return {
        "receipt": str(file),
        "copy": found["copy"],
        "side": side,
        "host": host,
        "signature": signature,
        **checked,
        "seconds": time.monotonic() - began_s,
    }
