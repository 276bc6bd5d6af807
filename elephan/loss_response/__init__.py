"""Response of a congestion control to loss: simulated over a path of its own (`curves`), as published (`published`, by
the window's cycle between two losses, `cycles`), and both as a page (`page`).

**Invariant: a curve comes from runs like any other; a formula names its source.**
"""
