"""The agents' files of this elephan, one for each machine type."""

from __future__ import annotations

from pathlib import Path

from elephan.errors import RunError
from elephan.hosts import boot

FOLDER = Path(__file__).with_name("bin")
"""The folder that scripts/agent.sh fills."""


def agent_files() -> dict[str, boot.AgentFile]:
    """Return the agents by machine type. Raises `RunError` when there is none."""
    found = {}
    for machine in boot.SPELLINGS:
        path = FOLDER / f"elephan-agent-{machine}"
        try:
            found[machine] = boot.agent_file(machine, path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RunError(f"{path}: {error.strerror}") from error
    if not found:
        raise RunError(f"no agent in {FOLDER}: scripts/agent.sh builds it")
    return found
