"""No file of a crate needs itself by way of others: each can be read after those it names, and taken out with them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.tidy.test_tidy import ROOT, code_of, without_tests

CRATES = sorted(path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml"))

USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
PATH = re.compile(r"(?<![\w:.])((?:crate|super|self|[a-z_]\w*)(?:::\w+)+)")

INLINE = re.compile(r"^(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{", re.MULTILINE)

Module = tuple[str, ...]


def modules_of(crate: Path) -> dict[Module, Path]:
    """Return the file of each module of a crate, the crate's own under ()."""
    found: dict[Module, Path] = {}
    for path in sorted((crate / "src").rglob("*.rs")):
        parts = path.relative_to(crate / "src").with_suffix("").parts
        if any(part == "tests" or part.endswith(("_tests", "_test")) for part in parts):
            continue
        found[parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts] = path
    return found


def as_one_file(code: str) -> str:
    """Return `code` with the paths of modules written in the file seen from the file: their `super` is its `self`."""
    parts, at = [], 0
    for found in INLINE.finditer(code):
        if found.start() < at:
            continue
        depth, end = 1, found.end()
        while depth and end < len(code):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        parts += [code[at : found.end()], re.sub(r"\bsuper::", "self::", code[found.end() : end])]
        at = end
    return "".join([*parts, code[at:]])


def leaves(tree: str) -> Iterator[str]:
    """Yield the paths of a use declaration's tree."""
    head, brace, rest = tree.partition("{")
    if not brace:
        yield re.sub(r"\s+as\s+\w+", "", tree).strip()
        return
    depth, part = 0, ""
    for letter in rest[: rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if part.strip():
                yield from (head.strip() + leaf for leaf in leaves(part.strip()))
            part = ""
        else:
            part += letter


def paths_of(code: str) -> Iterator[str]:
    """Yield every path that code names: those of its use declarations, and those in the text."""
    for tree in USE.findall(code):
        yield from leaves(tree)
    yield from PATH.findall(USE.sub("", code))


def resolve(path: str, module: Module, modules: Iterable[Module]) -> Module | None:
    """Return the module in whose file `path` ends, as seen from `module`; None: it leads out of the crate."""
    first, *rest = path.split("::")
    if first == "crate":
        at: Module = ()
    elif first == "self":
        at = module
    elif first == "super":
        at = module[:-1]
        while rest and rest[0] == "super":
            at, rest = at[:-1], rest[1:]
    elif (*module, first) in modules:
        at = (*module, first)
    else:
        return None
    for name in rest:
        if (*at, name) not in modules:
            break
        at = (*at, name)
    return at


def needs_of(modules: dict[Module, Path]) -> dict[Module, set[Module]]:
    """Return the modules that each module names."""
    needs: dict[Module, set[Module]] = {module: set() for module in modules}
    for module, path in modules.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        code = "\n".join(code_of(line) for _, line in without_tests(lines))
        targets = (resolve(named, module, modules) for named in paths_of(as_one_file(code)))
        needs[module] |= {target for target in targets if target is not None}
    return {module: targets - {module} for module, targets in needs.items()}


def circle_through(start: Module, needs: dict[Module, set[Module]]) -> list[Module] | None:
    """Return the shortest path from a module back to it; None: there is none."""
    came_from: dict[Module, Module] = {}
    waiting = deque([start])
    while waiting:
        module = waiting.popleft()
        for target in sorted(needs[module]):
            if target == start:
                way = [start, module]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1] if len(way) > 2 else [start, start]
            if target not in came_from:
                came_from[target] = module
                waiting.append(target)
    return None


def circles(crate: str) -> list[str]:
    """Return a circle for each file of `crate` that is in one, the same circle once."""
    modules = modules_of(ROOT / "crates" / crate)
    needs = needs_of(modules)
    found: dict[frozenset[Module], str] = {}
    for module in needs:
        circle = circle_through(module, needs)
        if circle is not None:
            found.setdefault(frozenset(circle), " -> ".join("::".join(("crate", *name)) for name in circle))
    return list(found.values())


@pytest.mark.parametrize("crate", CRATES)
def test_no_file_needs_itself(crate: str) -> None:
    found = circles(crate)
    assert not found, f"{crate}: move what both need into a file of its own:\n" + "\n".join(found)


def test_paths_are_found_in_every_form() -> None:
    code = """
use crate::a::{b::{C, D}, e as f};
pub use super::g;
fn h(x: crate::i::J) -> k::L { super::super::m() }
"""
    assert list(paths_of(code)) == [
        "crate::a::b::C",
        "crate::a::b::D",
        "crate::a::e",
        "super::g",
        "crate::i::J",
        "k::L",
        "super::super::m",
    ]


def test_a_module_written_in_a_file_is_seen_from_that_file() -> None:
    code = "use super::a;\nmod b {\n    fn c() { if d { super::e::f() } }\n}\nfn g() { super::h::i() }\n"
    assert list(paths_of(as_one_file(code))) == ["super::a", "self::e::f", "super::h::i"]


def test_a_path_ends_in_the_deepest_module_that_it_names() -> None:
    modules: list[Module] = [(), ("a",), ("a", "b"), ("c",)]
    assert resolve("crate::a::b::T", ("c",), modules) == ("a", "b")
    assert resolve("super::T", ("a", "b"), modules) == ("a",)
    assert resolve("b::T", ("a",), modules) == ("a", "b")
    assert resolve("crate::T", ("c",), modules) == ()
    assert resolve("std::fs::File", ("c",), modules) is None


def test_a_circle_is_shown_from_its_beginning_to_its_end() -> None:
    needs: dict[Module, set[Module]] = {("a",): {("b",)}, ("b",): {("c",)}, ("c",): {("a",)}, ("d",): {("a",)}}
    assert circle_through(("a",), needs) == [("a",), ("b",), ("c",), ("a",)]
    assert circle_through(("d",), needs) is None


def test_a_specification_is_found_wrong_in_one_place() -> None:
    """Construction takes a `ValidRun`: other faults than those of files are those of `validate`."""
    sources = ROOT / "crates" / "experiment" / "src"
    outside = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(sources.rglob("*.rs"))
        if path.relative_to(sources).parts[0] != "validate"
        and any("RunError::Spec(" in code_of(line) for line in path.read_text(encoding="utf-8").splitlines())
    ]
    assert not outside, f"check it in crates/experiment/src/validate: {outside}"
