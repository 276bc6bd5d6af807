"""iSCSI on real sockets: a target that serves files, a load on any target. The protocol is the core's."""

from elephan.iscsi.load import TOLD, Load, Result, bench, discover
from elephan.iscsi.serve import serve
from elephan.iscsi.url import Url, secret

__all__ = ["TOLD", "Load", "Result", "Url", "bench", "discover", "secret", "serve"]
