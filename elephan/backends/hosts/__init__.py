"""The backend `hosts`: the same scenario between two real hosts that SSH reaches (docs/howto/real-hosts.md)."""

from elephan.backends.hosts.backend import BACKEND, HostBackend, opened
from elephan.backends.hosts.options import HostOptions

__all__ = ["BACKEND", "HostBackend", "HostOptions", "opened"]
