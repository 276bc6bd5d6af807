"""The agents' files of this elephan, one for each machine type."""

from __future__ import annotations

from pathlib import Path

from elephan.errors import RunError
from elephan.hosts import boot

FOLDERS = (Path(__file__).with_name("bin"), Path(__file__).parents[2] / "target" / "agent")
"""Folders of agents: of an installed elephan, and that which scripts/agent.sh fills in a source tree."""


def agent_files() -> dict[str, boot.AgentFile]:
    """Return the agents by machine type. Raises `RunError` when there is none."""
    found = {}
    for machine in boot.SPELLINGS:
        for folder in FOLDERS:
            path = folder / f"elephan-agent-{machine}"
            if not path.exists():
                continue
            try:
                found[machine] = boot.agent_file(machine, path)
            except OSError as error:
                raise RunError(f"{path}: {error.strerror}") from error
            break
    if not found:
        raise RunError(f"no agent in {' or '.join(map(str, FOLDERS))}: make agent builds it")
    return found
