"""iSCSI on real sockets: a target that serves files, a load on any target. The protocol is the core's."""

from elephan.iscsi.load import INTERRUPTED, Load, Result, discover
from elephan.iscsi.serve import serve
from elephan.iscsi.sweep import Measured, Sweep, sweep
from elephan.iscsi.url import Url, secret

__all__ = ["INTERRUPTED", "Load", "Measured", "Result", "Sweep", "Url", "discover", "secret", "serve", "sweep"]
