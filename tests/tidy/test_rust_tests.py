"""Tests of Rust run: cargo compiles the files that a crate's `tests/main.rs` names, and says nothing of any other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE = re.compile(r"^(?:#\[path = \"(?P<path>[^\"]+)\"\]\n)?(?:#\[.*\]\n)*(?:pub )?mod (?P<name>\w+);", re.MULTILINE)


def modules(root: Path) -> set[Path]:
    """Return the files that a binary is compiled from, its root among them."""
    found: set[Path] = set()

    def follow(file: Path) -> None:
        found.add(file)
        inside = file.parent if file == root or file.name == "mod.rs" else file.with_suffix("")
        for module in MODULE.finditer(file.read_text()):
            name = module["name"]
            candidates = [file.parent / module["path"]] if module["path"] else []
            candidates += [inside / f"{name}.rs", inside / name / "mod.rs"]
            follow(next(candidate.resolve() for candidate in candidates if candidate.exists()))

    follow(root)
    return found


def faults(crate: Path) -> list[str]:
    """Return what keeps a test of a crate from running, and binaries beyond the one, each linked for itself."""
    folder, manifest = crate / "tests", tomllib.loads((crate / "Cargo.toml").read_text())
    if not folder.is_dir():
        return []
    binaries = {entry["name"]: entry.get("path", f"tests/{entry['name']}.rs") for entry in manifest.get("test", [])}
    found = []
    if manifest["package"].get("autotests", True):
        found.append("autotests = false is missing")
    if binaries.get(f"{crate.name}-tests") != "tests/main.rs":
        found.append(f'[[test]] has no name = "{crate.name}-tests" with path = "tests/main.rs"')
    held = set().union(*(modules(crate / path) for path in binaries.values())) if not found else set()
    found += [
        f"{file.relative_to(crate)}: name it in tests/main.rs"
        for file in sorted(folder.rglob("*.rs"))
        if not found and file.resolve() not in held
    ]
    return [f"crates/{crate.name}: {fault}" for fault in found]


def test_every_file_of_rust_tests_is_in_a_binary() -> None:
    crates = [manifest.parent for manifest in sorted((ROOT / "crates").glob("*/Cargo.toml"))]
    assert not (found := [fault for crate in crates for fault in faults(crate)]), "\n".join(found)


def test_a_file_that_no_binary_names_is_found(tmp_path: Path) -> None:
    crate = tmp_path / "wire"
    (crate / "tests" / "fc").mkdir(parents=True)
    manifest = '[package]\nautotests = false\n[[test]]\nname = "wire-tests"\npath = "tests/main.rs"\n'
    (crate / "Cargo.toml").write_text(manifest)
    (crate / "tests" / "main.rs").write_text("mod fc;\n#[cfg(unix)]\nmod isns;\n// mod lost;\n")
    (crate / "tests" / "fc" / "mod.rs").write_text("mod frames;\n")
    for name in ("isns", "lost", "fc/frames", "fc/ports"):
        (crate / "tests" / f"{name}.rs").write_text("")
    lost = [f"crates/wire: tests/{name}.rs: name it in tests/main.rs" for name in ("fc/ports", "lost")]
    assert faults(crate) == lost
    (crate / "Cargo.toml").write_text(manifest.replace("autotests = false\n", ""))
    assert faults(crate) == ["crates/wire: autotests = false is missing"]


def test_no_test_is_in_a_doc_comment() -> None:
    """Crates say `doctest = false`: rustdoc would compile a binary of no tests for each of them."""
    found = []
    for path in sorted((ROOT / "crates").rglob("*.rs")):
        lines = enumerate(path.read_text().splitlines(), 1)
        fences = [(number, line) for number, line in lines if re.match(r"\s*//[/!]\s*```", line)]
        found += [
            f"{path.relative_to(ROOT)}:{number}: make it a test, or ```text"
            for number, line in fences[::2]
            if not line.endswith("```text")
        ]
    assert not found, "\n".join(found)
