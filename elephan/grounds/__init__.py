"""Grounds: where a point runs. Each takes a `Job` and gives a record with its series, all of one form."""

from elephan.grounds.job import Job, Progress, Stopped

__all__ = ["Job", "Progress", "Stopped"]
