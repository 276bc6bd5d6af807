"""Real programs as the traffic of a flow: command lines and files for the machines of both ends.

A server gets a configuration, keys and a list of users of its own; none of the machine's is read. It runs in a mount
namespace of its own, where these lie over /etc and where what it receives goes to devices like /dev/null, unless it is
to go to a disk.
"""

from elephan.backends.programs.ends import End, Place, started
from elephan.backends.programs.prepare import Ends, ends_of
from elephan.backends.programs.requirements import found, installed, lacks, versions

__all__ = ["End", "Ends", "Place", "ends_of", "found", "installed", "lacks", "started", "versions"]
