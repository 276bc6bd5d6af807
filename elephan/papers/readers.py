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
    """Return the functions that read a claim's runs on the backend kernel, by claim.

    Raises `InputError` when a claim of that backend has none or two, or a function is marked with another claim.
    """
    claims = [claim.id for claim in paper.claims if claim.kernel is not None]
    found: dict[str, KernelReader] = {}
    for item in dict.fromkeys(item for item in _marked(paper.folder) if isinstance(item, KernelReader)):
        if item.claim not in claims:
            raise InputError(f"{paper.folder}: a kernel_reader of {item.claim}; no claim of that id has [claim.kernel]")
        if item.claim in found:
            raise InputError(f"{paper.folder}: two functions are marked kernel_reader({item.claim!r})")
        found[item.claim] = item
    for claim in claims:
        if claim not in found:
            raise InputError(f"{paper.folder}: {claim} has [claim.kernel], and no function is marked with its id")
    return found


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
    found = []
    for file in sorted(folder.glob("*.py")):
        try:
            found.append(importlib.import_module(f"{name}.{file.stem}"))
        # A module of somebody's paper may fail in any way.
        except Exception as error:
            raise InputError(f"{file}: {type(error).__name__}: {error}") from error
    return tuple(found)
