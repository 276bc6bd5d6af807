"""Ask the monitors that run with a store."""

from __future__ import annotations

from typing import Any

from elephan.command_socket import ask
from elephan.errors import InputError
from elephan.monitor.tables import monitor_folder
from elephan.store.place import Place, default_location


def ask_running(
    store: str | None, asked: dict[str, Any], name: str | None = None, several: bool = False
) -> list[dict[str, Any]]:
    """Return the answers of the monitors that run with a store; with a `name`, of that one alone.

    Raises `InputError` where more than one could be meant and `several` is not, `RunError` with what a monitor says.
    """
    folder = monitor_folder(Place.of(store or default_location()))
    sockets = sorted(folder.glob(f"monitor-{name or '*'}.socket"))
    running = [path for path in sockets if ask(path, {"do": "status"}) is not None]
    if len(running) > 1 and not several:
        names = ", ".join(path.stem.removeprefix("monitor-") for path in running)
        raise InputError(f"several monitors run with this store: {names}; name one: --monitor NAME")
    return [answer for path in running if (answer := ask(path, asked)) is not None]
