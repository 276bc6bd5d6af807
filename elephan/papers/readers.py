"""The readers of a paper: functions in its folder that take the claimed quantities off records, found by their marks.

Every module of the folder is imported, as a module of one package, so that it imports its neighbours relatively. A
function marked with `part` reads runs of the simulator, one marked with `kernel_reader` runs of a claim on the backend
kernel. **Invariant: parts come in the order in which claims.toml names their scenario files.**
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

from elephan.errors import InputError
from elephan.papers.claims import Paper
from elephan.papers.evaluation import Evaluation, KernelReader, PaperResults, Part


def evaluate(paper: Paper, results: PaperResults) -> Evaluation:
    """Measure every claim of a paper whose scenarios were run; raises what the readers raise."""
    total = Evaluation()
    for part in parts_of(paper):
        if all(results.has(file) for file in part.files):
            total.add(part.evaluate(results))
    return total


def parts_of(paper: Paper) -> list[Part]:
    """Return the marked functions of a paper, in the order in which claims.toml names their scenario files.

    Those that share their first file are in the order of their modules' names, and in that of their lines. Raises
    `InputError` for a function that is marked with a file of no claim, or with none.
    """
    files = [runs.file for claim in paper.claims for runs in claim.runs]
    found = dict.fromkeys(item for item in _marked(paper.folder) if isinstance(item, Part))
    for part in found:
        for file in part.files or ("no file",):
            if file not in files:
                raise InputError(
                    f"{paper.folder}: {part.evaluate.__name__} reads {file}; no claim names it in its runs"
                )

    def first_file(part: Part) -> int:
        return min(files.index(file) for file in part.files)

    return sorted(found, key=first_file)


def kernel_readers_of(paper: Paper) -> Mapping[str, KernelReader]:
    """Return the functions that read a claim's runs on the backend kernel, by claim."""
    return {item.claim: item for item in _marked(paper.folder) if isinstance(item, KernelReader)}


def _marked(folder: Path) -> Iterator[object]:
    for module in _modules(folder.resolve()):
        yield from vars(module).values()


@cache
def _modules(folder: Path) -> tuple[ModuleType, ...]:
    """Import the modules of a folder by name and return them."""
    # Two folders of one name are two packages.
    name = f"elephan_paper_{folder.name}_{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    sys.modules[name] = module_from_spec(spec)
    return tuple(importlib.import_module(f"{name}.{file.stem}") for file in sorted(folder.glob("*.py")))
