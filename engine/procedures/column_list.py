"""@captured_column_list: names between commas, plain, in ``""`` or in ``[]``."""

from __future__ import annotations

from collections.abc import Iterator

from engine.errors import ColumnListUnmappable, QuotedNameNotTerminated

_CLOSING = {'"': '"', "[": "]"}


def parse_column_list(text: str, source_schema: str, source_name: str) -> tuple[str, ...]:
    """The names in a captured column list, in its order (reference/procedures.md, sp_cdc_enable_table).

    Blanks around names do not count. A quoted name may hold commas and blanks, and its own closing
    quote doubled. Raises QuotedNameNotTerminated; ColumnListUnmappable for an empty name, text
    after a closing quote, or a name given twice.
    """
    names = tuple(_names(text, source_schema, source_name))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ColumnListUnmappable(source_schema, source_name, f"'{twice}' is listed twice")
    return names


def _names(text: str, source_schema: str, source_name: str) -> Iterator[str]:
    rest = text
    while True:
        item = rest.lstrip()
        if item[:1] in _CLOSING:
            name, after = _quoted(item)
        else:
            name, after = _plain(item)
        if not name:
            raise ColumnListUnmappable(source_schema, source_name, "it has an empty name")
        yield name
        after = after.lstrip()
        if not after:
            return
        if after[0] != ",":
            raise ColumnListUnmappable(source_schema, source_name, f"a comma is missing before '{after}'")
        rest = after[1:]


def _plain(text: str) -> tuple[str, str]:
    """A name up to the next comma, and what follows it."""
    name, comma, rest = text.partition(",")
    return name.rstrip(), comma + rest


def _quoted(text: str) -> tuple[str, str]:
    """A name between quotes, and what follows the closing one. Raises QuotedNameNotTerminated."""
    closing = _CLOSING[text[0]]
    name, at = "", 1
    while (end := text.find(closing, at)) >= 0:
        name += text[at:end]
        if text[end + 1 : end + 2] != closing:
            return name, text[end + 1 :]
        name += closing
        at = end + 2
    raise QuotedNameNotTerminated(text)
