"""The comment that opens an algorithm's C file, as paragraphs: idea, equations, parameters, ranges, source, kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass

COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)

SECTION = re.compile(
    r"^(Idea|Equations|Parameters|Variants|Ranges|Sources?|Kernel|Differences|How|Where|And where|On congestion|Notes?|"
    r"Checked)\b"
)
"""Words that open a section, by the order that every file keeps."""

TAB = 8


@dataclass(frozen=True)
class Paragraph:
    """Lines that belong together."""

    lines: tuple[str, ...]
    """As in the file, without the comment's frame."""
    verbatim: bool
    """Indented: an equation, a table, a list; it must not be folded."""
    section: str
    """Word that it opens a section with; "" within one."""
    apart: bool
    """True if an empty line stands before it."""

    @property
    def text(self) -> str:
        """Return the lines as one, for prose."""
        return " ".join(line.strip() for line in self.lines)


def comment_of(code: str) -> str:
    """Return the opening comment without its frame, tabs as blanks; "" when there is none before the first include."""
    before = code.split("#include", 1)[0]
    found = [text for text in COMMENT.findall(before) if "SPDX-License-Identifier" not in text]
    lines = []
    for line in "\n".join(found).splitlines():
        # In the file's own columns, so that alignment stays.
        bare = re.sub(r"^\s*\* ?", "", line.expandtabs(TAB))
        lines.append(bare.rstrip())
    return "\n".join(lines).strip("\n")


def title_of(code: str) -> str:
    """Return the first paragraph, the title; "" when there is no comment."""
    found = paragraphs(code)
    return found[0].text if found else ""


def paragraphs(code: str) -> list[Paragraph]:
    """Return the comment in paragraphs: prose, and indented text."""
    result: list[Paragraph] = []
    block: list[str] = []
    apart = False

    def close() -> None:
        nonlocal apart
        if block:
            match = SECTION.match(block[0])
            result.append(Paragraph(tuple(block), block[0].startswith(" "), match[1] if match else "", apart))
            block.clear()
            apart = False

    for line in comment_of(code).splitlines():
        if not line:
            close()
            apart = True
            continue
        # A list's items are indented by a tab, and so is what goes on with one.
        if block and (line.startswith(" ") != block[-1].startswith(" ") or SECTION.match(line)):
            close()
        block.append(line)
    close()
    return result


def said_of(code: str, section: str) -> str:
    """Return the text of a section that is one paragraph, without its heading: "Kernel", "Source"; "" if none."""
    for paragraph in paragraphs(code):
        if paragraph.section == section:
            return re.sub(rf"^{section}\s*[:.]\s*", "", paragraph.text)
    return ""
