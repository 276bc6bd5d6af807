"""Linux's own congestion control modules as the oracle of congestion/*.c: call by call, and side by side over netem.

**Invariant: nothing of Linux's source is kept in this project; Debian's package is fetched when it is needed.**
"""
