"""Compare a congestion control in the kernel with the same one in the simulator, call by call.

Two sources of calls, one comparison (crates/congestion/src/parity). *Recorded*: connections of this machine's own TCP
over an emulated path, under a build of the congestion control that tells what each hook was given and what it left.
*Synthetic*: sequences that reach the ends of every range, put to the congestion control's BPF programs one call at a
time. Each call is then made by the native build from the same state, and every value that it may write is compared.
**Invariant: nothing is registered but by a link that ends with this process, and nothing is pinned.**
"""

from elephan.parity.check import Outcome, Run, check
from elephan.parity.recording import Recording, record
from elephan.parity.stepping import answered

__all__ = ["Outcome", "Recording", "Run", "answered", "check", "record"]
