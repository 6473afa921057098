"""Scripts as batches: GO on a line of its own ends one (it is the client's word, not T-SQL). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_GO = re.compile(
    r"[ \t]*GO(?:[ \t]+(?P<count>\d{1,6}))?[ \t]*;?[ \t]*(?:--[^\n]*)?\r?(?:\n|\Z)", re.IGNORECASE
)
_SKIPPED = re.compile(
    r"'(?:[^']|'')*(?:'|\Z)" r'|"(?:[^"]|"")*(?:"|\Z)' r"|\[(?:[^\]]|\]\])*(?:\]|\Z)" r"|--[^\n]*",
)
_COMMENT = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Batch:
    """Text up to a GO. ``line``: where it begins in the script, from 1; ``count``: how often it runs."""

    text: str
    line: int = 1
    count: int = 1


def batches(script: str) -> Iterator[Batch]:
    """The script's batches in order, empty ones left out. GO inside strings, names and comments is none."""
    begin = position = 0
    line = 1
    at_line_start = True
    while position < len(script):
        if at_line_start and (go := _GO.match(script, position)):
            if text := _worth(script[begin:position]):
                yield Batch(text, line, int(go["count"] or 1))
            line += script.count("\n", begin, go.end())
            begin = position = go.end()
            continue
        at_line_start = script[position] == "\n"
        position = _next(script, position)
    if text := _worth(script[begin:]):
        yield Batch(text, line)


def is_complete(text: str) -> bool:
    """Whether the last line of ``text`` ends a batch."""
    last = None
    position, at_line_start = 0, True
    while position < len(text):
        if at_line_start and (go := _GO.match(text, position)):
            last = position = go.end()
            continue
        at_line_start = text[position] == "\n"
        position = _next(text, position)
    return last is not None and not text[last:].strip()


def unclosed(text: str) -> int:
    """Where the string, quoted name or comment begins that does not end; the last character without one."""
    position = 0
    while position < len(text):
        end = _next(text, position)
        if end >= len(text) and (end > position + 1 or text[position] in "'\"["):
            return position
        position = end
    return max(0, len(text) - 1)


def _worth(text: str) -> str:
    return text if text.strip() else ""


def _next(script: str, position: int) -> int:
    """The position after one character, or after a whole string, quoted name or comment."""
    if script.startswith("/*", position):
        return _after_comment(script, position)
    skipped = _SKIPPED.match(script, position)
    return position + 1 if skipped is None else skipped.end()


def _after_comment(script: str, position: int) -> int:
    """Comments nest."""
    depth, end = 0, position
    for mark in _COMMENT.finditer(script, position):
        depth += 1 if mark[0] == "/*" else -1
        end = mark.end()
        if depth == 0:
            return end
    return len(script)
