"""Packages of elephan/ in their order, and no circle of files: whoever reads from the front meets nothing unknown."""

from __future__ import annotations

from functools import cache

import grimp

from tests.tidy.test_circles import Module, circle_through
from tests.tidy.test_tidy import ROOT

PACKAGES = (
    "errors printable renamed units user_files writability core signals python_process control_process "
    "network_namespace run_lock process_lock command_socket admission metrics_endpoint run_spec blocktrace disks "
    "record_upgrade record "
    "congestion_control scenario store report kernel path hosts backends sweep api loss_response parity iscsi gateway "
    "fc line measure diagnose advise copy backup monitor web compare papers cli"
).split()
"""In order: a package, or a module beside the packages, imports only from those before it (ARCHITECTURE.md)."""


@cache
def imports() -> dict[str, dict[str, list[str]]]:
    """Return the modules that each module of elephan/ imports, with the places where it does.

    Imports inside functions and those for type checkers count. The front, `elephan` itself, is left out: its names lead
    everywhere and are loaded when they are first asked for.
    """
    graph = grimp.build_graph("elephan", cache_dir=None)
    # grimp takes `from elephan import _native`, which is no Python file, for an import of the front.
    graph.remove_import(importer="elephan.core", imported="elephan")
    return {
        module: {
            target: [
                f"{module.replace('.', '/')}.py:{detail['line_number']}: {detail['line_contents'].strip()}"
                for detail in graph.get_import_details(importer=module, imported=target)
            ]
            for target in sorted(graph.find_modules_directly_imported_by(module))
        }
        for module in sorted(graph.modules - {"elephan"})
    }


def package_of(module: str) -> str:
    """Return the package of elephan/ that a module belongs to, or the module's own name where it stands beside them."""
    return module.split(".")[1]


def test_every_package_has_its_place() -> None:
    found = {package_of(module) for module in imports()}
    assert found == set(PACKAGES), "name its place in the order (ARCHITECTURE.md and this test)"


def test_a_package_imports_only_from_packages_before_it() -> None:
    found = [
        f"{place}: {target} comes after {package_of(module)}"
        for module, targets in imports().items()
        for target, places in targets.items()
        for place in places
        if target == "elephan" or PACKAGES.index(package_of(target)) > PACKAGES.index(package_of(module))
    ]
    assert not found, "\n".join(found)


def test_every_folder_is_a_package() -> None:
    """A folder without `__init__.py` can be imported, and is nothing that grimp looks into."""
    folders = {path.parent for path in (ROOT / "elephan").rglob("*.py")}
    missing = sorted(str(path.relative_to(ROOT)) for path in folders if not (path / "__init__.py").exists())
    assert not missing, "say in its __init__.py what it holds"


def test_no_file_needs_itself() -> None:
    needs: dict[Module, set[Module]] = {
        tuple(module.split(".")): {tuple(target.split(".")) for target in targets}
        for module, targets in imports().items()
    }
    circles = {
        frozenset(circle): " -> ".join(".".join(module) for module in circle)
        for module in needs
        if (circle := circle_through(module, needs)) is not None
    }
    assert not circles, "move what both need into a file of its own:\n" + "\n".join(circles.values())


def test_the_drawing_has_the_same_order() -> None:
    page = " ".join((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split())
    assert f"`{', '.join(PACKAGES)}`" in page
