"""Judge the change detection of `elephan monitor` on series whose changes are known."""
