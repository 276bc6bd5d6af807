"""Every congestion control on one path: ranked, with what each costs others, and a few words why.

What it does: runs a user's scenario under each congestion control, alone and beside a reno flow, with as many seeds as
chance needs, and judges the numbers. **Invariant: rank and words follow from the records alone, by the rules of `rank`
and `words`, and from nothing that another seed might turn round.**
"""

from elephan.compare.rank import KEYS, Row
from elephan.compare.running import NEIGHBOUR_CC, Comparison, check, compare

__all__ = ["KEYS", "NEIGHBOUR_CC", "Comparison", "Row", "check", "compare"]
