"""Receipt of a finished copy: what was copied, between whom, how, and everything that is needed to check it again."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elephan import user_files
from elephan.copy import state
from elephan.copy.request import CopyRequest, Place
from elephan.copy.sides import end_paths
from elephan.core import build_digest, version
from elephan.errors import InputError, RunError
from elephan.printable import one_line

FORM = 1
"""Version of the receipt's keys."""

NAMESPACE = "elephan-copy"
"""Of signatures (ssh-keygen(1), -n): one that was made for something else is none of a receipt."""

SIGN_S = 60
"""Time for ssh-keygen to sign: a key may ask for a touch or a passphrase, s."""


def settings_of(request: CopyRequest) -> dict[str, Any]:
    """Return what was asked for, as JSON."""
    left_out = ("sources", "destination", "receipt", "sign")
    found = {key: value for key, value in dataclasses.asdict(request).items() if key not in left_out}
    return {key: dict(value) if isinstance(value, Mapping) else value for key, value in found.items()}


def now() -> str:
    """Return the time of day, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def made(
    request: CopyRequest,
    copy: str,
    reports: Mapping[str, Mapping[str, Any]],
    attempts: list[dict[str, Any]],
    *,
    path: Mapping[str, Any],
    used: Mapping[str, Any],
    decisions: list[dict[str, Any]],
    advice: Mapping[str, Any] | None,
    hosts: Mapping[str, Mapping[str, Any]],
    seconds: float,
    waited_s: float,
    notes: list[str],
) -> dict[str, Any]:
    """Return the receipt of a copy that is done."""
    receive, send = reports["receive"], reports["send"]
    faults = {(fault["path"], fault["kind"]): fault for report in (send, receive) for fault in report["faults"]}
    # Both ends list the first ones of the same entries, each in its own order.
    total = max(len(report["faults"]) + int(report["faults_more"]) for report in (send, receive))
    sent = sum(attempt["sent_bytes"] for attempt in attempts)
    data_s = sum(attempt["data_s"] for attempt in attempts)
    return {
        "receipt": FORM,
        "copy": copy,
        "root": receive["root"],
        "entries": receive["entries"],
        "files": receive["files"],
        "bytes": receive["bytes"],
        "sent_bytes": sent,
        "reused_bytes": max(0, receive["bytes"] - sent),
        # Judged by size and time alone. An agent of before this key has none.
        "unread_files": receive.get("unread_files", 0),
        "removed": receive["removed"],
        "removals": receive["removals"],
        "mounts": send.get("mounts", []),
        "began": attempts[0]["began"],
        "ended": now(),
        "seconds": seconds,
        "waited_s": waited_s,
        "data_s": data_s,
        # Of what was sent, while the ends were connected: what was there already took none of it.
        "goodput_bps": sent * 8 / data_s if data_s > 0 else 0.0,
        "cpu_s": {"source": send["cpu_s"], "destination": receive["cpu_s"]},
        "sources": [str(place) for place in request.sources],
        "destination": str(request.destination),
        "paths": end_paths(request),
        "hosts": {name: dict(about) for name, about in hosts.items()},
        "path": dict(path),
        "settings": settings_of(request),
        "used": dict(used),
        "advice": None if advice is None else dict(advice),
        "attempts": attempts,
        "retries": send["retries"] + receive["retries"],
        "decisions": decisions,
        "faults": list(faults.values()),
        "faults_more": max(0, total - len(faults)),
        "manifests": {"source": send["manifest"], "destination": receive["manifest"]},
        "versions": {"elephan": version(), "core": build_digest()},
        "notes": notes,
    }


def keep(receipt: Mapping[str, Any], file: str | None) -> Path:
    """Write a receipt to the folder of receipts, and to `file`; return the path of the one that was asked for.

    Raises `RunError`.
    """
    stamp = "".join(character for character in str(receipt["ended"]) if character.isdigit())[:14]
    # The time of an earlier receipt comes again when the clock is set back.
    default = state.write_new(state.receipts() / f"{receipt['copy'][:12]}-{stamp}.json", receipt)
    state.remove_stale_parts(state.receipts())
    if file is None:
        return default
    state.write(Path(file), receipt)
    return Path(file)


def read(file: Path) -> dict[str, Any]:
    """Return a receipt. Raises `InputError`."""
    found = state.read(file)
    if found.get("receipt") != FORM:
        raise InputError(f"{file}: is no receipt of elephan copy, or one of another version ({found.get('receipt')!r})")
    return found


def host_of(receipt: Mapping[str, Any], side: str) -> str | None:
    """Return the host of a side; None for this machine. Raises `InputError`."""
    return Place.parse(receipt["sources"][0] if side == "source" else receipt["destination"]).host


def check_key(key: str) -> None:
    """Raise `InputError` for what is no key, before a copy that may take hours."""
    if not Path(key).is_file() or _run(["ssh-keygen", "-l", "-f", key]).returncode != 0:
        raise InputError(f"--sign {key}: the file of an SSH key, private or of one in ssh-agent, is needed")


def sign(file: Path, key: str) -> Path:
    """Sign a receipt with the user's SSH key; return the signature's file. Raises `InputError` and `RunError`."""
    check_key(key)
    signature = file.with_name(f"{file.name}.sig")
    signature.unlink(missing_ok=True)
    words = ["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", NAMESPACE, str(file)]
    done = _run(words)
    if done.returncode != 0 or not signature.exists():
        raise RunError(f"--sign {key}: ssh-keygen: {_said(done)}")
    return signature


def signed_by(file: Path, signers: Path | None, identity: str | None) -> str | None:
    """Return who signed a receipt, in ssh-keygen's words; None where there is no signature.

    With `signers`, a file of allowed signers (ssh-keygen(1)), the key must be there under `identity`. Without, the
    signature alone is checked, and the words name the key. Raises `RunError` for a signature that is wrong.
    """
    signature = file.with_name(f"{file.name}.sig")
    if not signature.exists():
        if signers is not None:
            raise RunError(f"{file}: has no signature ({signature.name})")
        return None
    words = ["ssh-keygen", "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature)]
    if signers is not None:
        principal = identity or _principal(signature, signers)
        words = ["ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", principal]
        words += ["-n", NAMESPACE, "-s", str(signature)]
    with open(user_files.open_regular(file), "rb") as content:
        done = _run(words, content.fileno())
    if done.returncode != 0:
        raise RunError(f"{file}: its signature is wrong: {_said(done)}")
    return one_line(done.stdout.strip())


def _principal(signature: Path, signers: Path) -> str:
    done = _run(["ssh-keygen", "-Y", "find-principals", "-f", str(signers), "-s", str(signature)])
    found = done.stdout.split()
    if done.returncode != 0 or not found:
        raise RunError(f"{signature}: its key is not in {signers}")
    return found[0]


def _run(words: list[str], stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, stdin=stdin, capture_output=True, text=True, timeout=SIGN_S, check=False)
    except FileNotFoundError:
        raise InputError("signatures need ssh-keygen (Debian package openssh-client)") from None
    except subprocess.TimeoutExpired:
        raise RunError(f"ssh-keygen has not ended within {SIGN_S} s") from None


def _said(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else f"exit code {done.returncode}"
