"""Metrics of the workload `copy`, as the catalogue of `elephan.report.metrics` takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from elephan import units

Item = tuple[str, str, str, Callable[[float | None], str], Literal["higher", "lower", "neither"], str]
"""Name, title, unit, form, which is better, meaning."""

COPIES: tuple[Item, ...] = (
    ("files", "files", "files", units.count, "higher", "Workload `copy`: files that are whole at the far side."),
    (
        "file_bytes",
        "data of files",
        "B",
        units.size,
        "higher",
        "Workload `copy`: data of those files, what the destination had already included.",
    ),
    (
        "file_goodput_bps",
        "goodput of files",
        "bit/s",
        units.rate,
        "higher",
        "Workload `copy`: data of the files over the time from opening the first connection to the end, messages "
        "included; of several jobs over the sum of their times.",
    ),
    (
        "file_time_mean_s",
        "file mean",
        "s",
        units.duration,
        "lower",
        "Workload `copy`: from a file's first chunk taken from the queue to its last byte written.",
    ),
    ("file_time_p50_s", "file p50", "s", units.duration, "lower", "As `file_time_mean_s`."),
    ("file_time_p99_s", "file p99", "s", units.duration, "lower", "As `file_time_mean_s`."),
    ("file_time_max_s", "file max", "s", units.duration, "lower", "As `file_time_mean_s`."),
    ("jobs", "jobs", "jobs", units.count, "higher", "Workload `copy` with several jobs: those that ended."),
    (
        "late_jobs",
        "late jobs",
        "jobs",
        units.count,
        "lower",
        "Workload `copy`: jobs that had not ended when the next one began.",
    ),
    (
        "job_mean_s",
        "job mean",
        "s",
        units.duration,
        "lower",
        "Workload `copy` with several jobs: from opening a job's first connection to its end.",
    ),
    ("job_p50_s", "job p50", "s", units.duration, "lower", "As `job_mean_s`."),
    ("job_p99_s", "job p99", "s", units.duration, "lower", "As `job_mean_s`."),
    ("job_max_s", "job max", "s", units.duration, "lower", "As `job_mean_s`."),
)
"""In the order of the page."""

COPY_COLUMNS = ("job_p50_s", "job_max_s", "file_goodput_bps", "file_time_p50_s", "file_time_p99_s")
"""Those that tables show, in order."""
