"""The kernel's verifier in plain words: the line of the C file, its fault, and the remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

TOO_MUCH = r"program is too large|sequence of \d+ jumps|too complex"

REASONS: tuple[tuple[str, str, str], ...] = (
    (
        r"infinite loop detected|back-edge from insn",
        "a loop whose end the kernel cannot see",
        "Give it a constant bound, such as for (int i = 0; i < 32; i++).",
    ),
    (
        TOO_MUCH,
        "too many ways through the program: the kernel has given up",
        "It follows every way, up to 1,000,000 steps. A loop of n steps that branches on data has 2^n ways; one whose "
        "number of steps depends on data has as many as that may become. A small constant bound, and no branch inside.",
    ),
    (
        r"no write support to",
        "writes what the kernel lets no algorithm write",
        "cc.h lists what can be set (cc_set_...). An algorithm's own is cc_state(sk), and of that its struct alone.",
    ),
    (
        r"invalid variable offset|variable .*access|unbounded memory access",
        "an address that depends on data",
        "The kernel wants to know every address. The state is no array for it: use fields, or compare the index with "
        "each constant.",
    ),
    (
        r"call stack of \d+ frames|recursi",
        "functions that call each other too deeply, or themselves",
        "There is no recursion, and at most 8 functions may stand in each other.",
    ),
    (
        r"stack size|stack depth|stack limit|invalid (read|write|size).* stack|stack off",
        "too much on the stack, or a place beside it",
        "All variables of functions that call each other have 512 bytes together.",
    ),
    (
        r"!read_ok|invalid read from stack",
        "reads a variable before it is set",
        "Set it where it is declared.",
    ),
    (
        r"invalid mem access|cannot access ptr member|access beyond|dereference",
        "follows a pointer to where the kernel lets no algorithm look",
        "Use the functions that cc.h lists (cc_snd_cwnd(sk), ...), and cc_state(sk) for the algorithm's own.",
    ),
    (
        r"unknown func|cannot use helper|program of this type",
        "calls what this kernel does not have for a congestion control",
        "What cc.h lists is there from Linux 5.6 on; cong_control in this form from 6.10 on.",
    ),
    (
        r"BTF for extern '(\w+)'",
        "calls a function that is not there",
        "An algorithm is linked with nothing: no library functions. cc.h lists what there is.",
    ),
    (
        r"corrupted program .* size 0",
        "code that has no meaning in C, so that the compiler left it out",
        "Look for an address or a shift that is out of range in a hook of this file.",
    ),
    (
        r"struct_ops|init_kern",
        "a hook that this kernel does not have in this form",
        "struct_ops of tcp_congestion_ops came with Linux 5.6; cong_control took its arguments with 6.10.",
    ),
)
"""Pattern in the verifier's (or libbpf's) words, its meaning, its remedy. The first that fits counts."""

PLACE = re.compile(r"^; (?P<code>.*?)(?: @ (?P<file>[^\s@]+):(?P<line>\d+))?$")
"""A line of the source in the verifier's log; file and line from Linux 6.10 on."""


def explained(answer: dict[str, Any], file: str, code: str) -> dict[str, Any]:
    """Return the faults. `answer` is that of `elephan.congestion_control.load`."""
    log = str(answer.get("log", ""))
    said = last_words(log) or first_words(answer.get("messages", ())) or str(answer.get("error", ""))
    line = line_of(log, file, code)
    what, hint = said, None
    for pattern, meaning, advice in REASONS:
        if re.search(pattern, said):
            what, hint = meaning, advice
            break
    hook = str(answer.get("program", "")).removeprefix("hook_")
    if line is None and re.search(TOO_MUCH, said):
        # The log names a line where it is entered, and of a long log the kernel keeps the end.
        loops = loops_of(code)
        line = loops[0] if len(loops) == 1 else None
        what += f"; loops are in lines {', '.join(map(str, loops))}" if len(loops) > 1 else ""
    lines = code.splitlines()
    shown = lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else ""
    what = f"{what} (in the hook {hook})" if hook else what
    return {"line": line, "what": what, "code": shown, "hint": hint, "said": said}


def last_words(log: str) -> str:
    """Return the line of a log that gives the reason: the last one before the statistics."""
    ignored = re.compile(r"^(processed \d+ insns|(cur|old) state:|verification time|stack depth \d+$|$)")
    kept = [line for line in log.splitlines() if not ignored.match(line)]
    return kept[-1].strip() if kept else ""


def first_words(messages: Sequence[str]) -> str:
    """Return libbpf's first complaint, without its name in front."""
    return messages[0].removeprefix("libbpf: ").strip() if messages else ""


def line_of(log: str, file: str, code: str) -> int | None:
    """Return the last line of `file` that the log was at, other than that of CC_ALGORITHM, where the hooks begin."""
    texts = [line.strip() for line in code.splitlines()]
    frame = next((number for number, text in enumerate(texts, 1) if text.startswith("CC_ALGORITHM")), None)
    found = None
    for line in log.splitlines():
        match = PLACE.match(line) or PLACE.match(line.partition(" ; ")[2] and f"; {line.partition(' ; ')[2]}")
        if match is None:
            continue
        if match["file"]:
            number = int(match["line"]) if match["file"] == file else None
        else:
            number = texts.index(match["code"].strip()) + 1 if match["code"].strip() in texts else None
        if number is not None and number != frame:
            found = number
    return found


def loops_of(code: str) -> list[int]:
    """Return the lines where loops begin."""
    bare = re.sub(r"/\*.*?\*/", lambda match: "\n" * match[0].count("\n"), code, flags=re.DOTALL)
    return [number for number, text in enumerate(bare.splitlines(), 1) if re.search(r"\b(for|while)\s*\(", text)]
