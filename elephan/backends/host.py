"""Facts about the machine that a run was made on."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

from elephan.core import build_digest


@cache
def _facts() -> dict[str, Any]:
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "build": build_digest(),
    }


def host_facts() -> dict[str, Any]:
    """Return kernel, machine, processor, cores this process may use, memory, Python and the core's build."""
    return dict(_facts())


def cpu_model(source: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name as the kernel gives it, else the architecture."""
    try:
        for line in source.read_text().splitlines():
            key, _, value = line.partition(":")
            # "model name" on x86, "Model" or "uarch" on some arm64 and riscv64 kernels.
            if key.strip().lower() in ("model name", "model", "uarch") and not value.strip().isdigit():
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
