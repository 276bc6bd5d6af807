"""A Fibre Channel port of a program's own: ports of a fabric, round trips, a load. The protocols are the core's."""

from elephan.fc.end import End, opened
from elephan.fc.load import Load, Measured, put
from elephan.fc.ping import Pinged, ping
from elephan.fc.ports import Port, ports

__all__ = ["End", "Load", "Measured", "Pinged", "Port", "opened", "ping", "ports", "put"]
