"""Rules over the source tree that no compiler checks. Each failure names the file, the line and what to do instead."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CRATES = (
    "units admission congestion bpf link tcp udt wire line-test path-test diagnosis change-detection copy storage sim "
    "te spec experiment kernel storage-net line-net path-net quic copy-net agent python"
).split()
"""In order: a crate depends only on crates before it (ARCHITECTURE.md)."""

CORES = (
    "units admission congestion link tcp udt wire line-test path-test diagnosis change-detection copy storage sim te "
    "spec"
).split()
"""Crates without I/O: time is an argument, inputs are handle_*, outputs are poll_*."""

IO_ALLOWED = {
    # A user's own algorithm is a file that the system's compiler turns into a library.
    "crates/congestion/src/compile.rs": {"std::fs", "std::process", "std::env"},
    "crates/congestion/src/bpf.rs": {"std::fs"},
    "crates/congestion/src/clang.rs": {"std::process", "std::env"},
    # Traces by their path; reading and replaying take any reader.
    "crates/storage/src/trace/file.rs": {"std::fs"},
    # Drives by the files that describe them.
    "crates/storage/src/disk/file.rs": {"std::fs"},
}
"""Documented exceptions: the file and the modules that it may use."""

IO = re.compile(r"\bstd::(time|net|fs|process|env|thread)\b|\b(rand|getrandom)::")

MACHINES_LIBM = re.compile(r"\.(exp2?|exp_m1|ln|ln_1p|log2|log10|pow[fi]|cbrt|sin|cos|tan)\(")
"""Functions of std whose last digits are the machine's: golden records would differ (tests/determinism/golden.py)."""

COLUMNS_MAX = 120
"""Of a line of prose or code; a tab is one character."""

FILE_LINES_MAX = 700
"""A longer file holds more than one subject."""

ELSEWHERE = re.compile(r"/(work|home|root|opt|mnt|workspace)/|/tmp/(?!$)[a-z-]+[a-z]", re.IGNORECASE)
"""Paths of one machine. Tests use tmp_path, set-up finds its tools on the PATH."""

TEXT = {".rs", ".py", ".c", ".h", ".toml", ".md", ".sh", ".tcl", ".cc", ".html", ".css", ".js", ".yml", ""}


def tracked() -> list[Path]:
    """Return what git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git clone: the list of files is git's")
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def text_files() -> Iterator[tuple[str, list[str]]]:
    """Yield the path and lines of each text file."""
    for path in tracked():
        if path.suffix in TEXT:
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except UnicodeDecodeError:
                continue
            yield path.relative_to(ROOT).as_posix(), lines


def code_of(line: str) -> str:
    """Return a Rust line without its comment."""
    return line.split("//", 1)[0]


def without_tests(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield number and text of the Rust lines that a build without tests has, by rustfmt's indentation."""
    numbered = iter(enumerate(lines, 1))
    for number, line in numbered:
        if line.strip() != "#[cfg(test)]":
            yield number, line
            continue
        indent = line[: len(line) - len(line.lstrip())]
        _, item = next(numbered)
        while item.lstrip().startswith("#["):
            _, item = next(numbered)
        # An item that goes on over lines ends with the first line that is not indented, unless that opens its body.
        while not item.endswith((";", ",", "}")):
            item = next(line for _, line in numbered if line.strip() and not line.startswith(f"{indent} "))


def test_lines_after_a_module_of_tests_are_looked_at() -> None:
    lines = """
#[cfg(test)]
mod tests;
mod one;
#[cfg(test)]
#[path = "x.rs"]
mod more {
    fn inner() {
    }
}

fn two() {
    #[cfg(test)]
    trace(
        1,
    );
    three();
}
""".strip().splitlines()
    assert [line.strip() for _, line in without_tests(lines) if line.strip() not in ("", "}")] == [
        "mod one;",
        "fn two() {",
        "three();",
    ]


def test_no_file_holds_more_than_one_subject() -> None:
    generated = {"elephan/run_spec/types.py"}
    long = [
        f"{name}: {len(lines)} lines, at most {FILE_LINES_MAX}: split it by subject"
        for name, lines in text_files()
        if name not in generated and name.startswith(("crates/", "elephan/", "congestion/", "evaluation/", "scripts/"))
        if Path(name).suffix in {".rs", ".py", ".c", ".h", ".cc"} and len(lines) > FILE_LINES_MAX
    ]
    assert not long, "\n".join(long)


def lines_of(crates: list[str]) -> Iterator[tuple[str, int, str]]:
    """Yield file, number and code of the lines of these crates that a build without tests has."""
    for name, lines in text_files():
        parts = name.split("/")
        of_crates = parts[0] == "crates" and parts[1] in crates and parts[2] == "src" and name.endswith(".rs")
        if of_crates and "tests" not in parts and not name.endswith(("tests.rs", "test.rs")):
            for number, line in without_tests(lines):
                yield name, number, code_of(line)


def test_protocol_cores_do_no_io() -> None:
    found = [
        f"{name}:{number}: {match.group(0)} in a core: take it as an argument"
        for name, number, line in lines_of(CORES)
        for match in IO.finditer(line)
        if match.group(0) not in IO_ALLOWED.get(name, set())
    ]
    assert not found, "\n".join(found)


def test_what_is_simulated_needs_no_function_of_the_machines_libm() -> None:
    found = [
        f"{name}:{number}: {match.group(0)}: use integers, or a libm that is compiled in"
        for name, number, line in lines_of([*CORES, "experiment"])
        for match in MACHINES_LIBM.finditer(line)
    ]
    assert not found, "\n".join(found)


def test_a_crate_depends_only_on_crates_before_it() -> None:
    found = []
    for manifest in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        crate = manifest.parent.name
        assert crate in CRATES, f"{crate}: name its place in the order (ARCHITECTURE.md and this test)"
        allowed = CRATES[: CRATES.index(crate)]
        for name in tomllib.loads(manifest.read_text(encoding="utf-8")).get("dependencies", {}):
            if name in CRATES and name not in allowed:
                found.append(f"crates/{crate}: depends on {name}, which comes after it")
    assert not found, "\n".join(found)


def test_every_crate_states_its_invariant() -> None:
    missing = []
    for source in sorted((ROOT / "crates").glob("*/src/lib.rs")):
        lines = source.read_text(encoding="utf-8").splitlines()
        doc = [line for line in lines if line.startswith("//!")]
        if not lines or not lines[0].startswith("//!") or not any("nvariant" in line for line in doc):
            missing.append(f"{source.relative_to(ROOT)}: open with //! what it does and its **Invariant**")
    assert not missing, "\n".join(missing)


def algorithms() -> list[Path]:
    """Return the C sources of the algorithms."""
    return sorted((ROOT / "congestion").glob("*.c"))


@pytest.mark.parametrize("path", algorithms(), ids=lambda path: path.stem)
def test_an_algorithm_includes_one_header_and_no_floats(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^\s*#\s*include\s+(\S+)", text, re.MULTILINE) == ['"cc.h"']
    code = re.sub(r'/\*.*?\*/|//[^\n]*|"(\\.|[^"\\])*"', " ", text, flags=re.DOTALL)
    assert not re.search(r"\b(float|double)\b", code), "the kernel has no floating point: scale an integer"
    assert not re.search(r"\b\d+\.\d|\b\d+[eE]-?\d+\b", code), "a literal with a fraction: scale an integer"


def test_algorithms_are_there() -> None:
    assert {"reno", "cubic", "storage_friendly"} <= {path.stem for path in algorithms()}


def test_links_in_documents_resolve() -> None:
    broken = []
    for name, lines in text_files():
        if not name.endswith(".md"):
            continue
        for number, line in enumerate(lines, 1):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"[a-z]+:", target) or target.startswith("#"):
                    continue
                if not ((ROOT / name).parent / target.split("#", 1)[0]).exists():
                    broken.append(f"{name}:{number}: {target} does not exist")
    assert not broken, "\n".join(broken)


def test_documents_that_are_named_exist() -> None:
    """In comments, messages and pages, which no link checks: "docs/results/fidelity.md"."""
    named = re.compile(r"(?<![\w/.-])(?:\.\./)*(docs/[\w/.-]+\.(?:md|json|png))\b")
    found = [
        f"{name}:{number}: {match.group(1)} does not exist"
        for name, lines in text_files()
        for number, line in enumerate(lines, 1)
        for match in named.finditer(line)
        if not (ROOT / match.group(1)).exists()
    ]
    assert not found, "\n".join(found)


def prose(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines of a Markdown page that a reader reads as text: no code, no table."""
    fenced = code = False
    before = ""
    for number, line in enumerate(lines, 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        # Indented by four after an empty line, up to the next line that is not.
        code = line.startswith("    ") and (code or not before.strip())
        if not (fence or fenced or code or line.lstrip().startswith("|")):
            yield number, line
        before = line


def test_code_and_tables_are_no_prose() -> None:
    page = "text\n\n    code\n    more\n\n| a | b |\n```sh\nfenced\n```\n- item\n    of a list".splitlines()
    assert [line for _, line in prose(page) if line] == ["text", "- item", "    of a list"]


def test_a_line_has_at_most_120_characters() -> None:
    """Prose of documents, where an address may be longer, and code. Python's lines are also ruff's (E501).

    rustfmt breaks Rust's code, but for long texts and macros.
    """
    address = re.compile(r"https?://\S+")
    found = [
        f"{name}:{number}: {len(line)} characters, at most {COLUMNS_MAX}: break the line"
        for name, lines in text_files()
        if Path(name).suffix in {".md", ".py", ".c", ".h", ".rs", ".sh"} or Path(name).name == "Makefile"
        for number, line in (prose(lines) if name.endswith(".md") else enumerate(lines, 1))
        if len(address.sub("", line)) > COLUMNS_MAX
    ]
    assert not found, "\n".join(found)


def test_nothing_names_one_machine() -> None:
    found = [
        f"{name}:{number}: {match.group(0)}"
        for name, lines in text_files()
        if not name.startswith("tests/tidy/")
        for number, line in enumerate(lines, 1)
        if (match := ELSEWHERE.search(line))
    ]
    assert not found, "\n".join(found)


def test_nothing_is_left_to_do_in_the_code() -> None:
    mark = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|\b(todo|unimplemented)!\(")
    found = [
        f"{name}:{number}: {match.group(0)}: do it, or write an issue"
        for name, lines in text_files()
        if Path(name).suffix in {".rs", ".py", ".c", ".h", ".sh", ".tcl", ".cc"}
        for number, line in enumerate(lines, 1)
        if (match := mark.search(line))
    ]
    assert not found, "\n".join(found)


def test_the_generated_pages_name_their_generator() -> None:
    pages = {
        "docs/results/performance.md": "make bench",
        "docs/results/fidelity.md": "make fidelity",
        "docs/results/congestion-control.md": "make cc",
        "docs/results/detection.md": "make detection",
        "docs/results/mitigation.md": "make mitigation",
        "docs/results/gateways.md": "make gateways",
    }
    for page, command in pages.items():
        assert command in (ROOT / page).read_text(encoding="utf-8"), f"{page}: write it with `{command}`"
