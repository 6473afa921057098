"""The key of the validity timeline: it names what is drawn, nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import plotly.graph_objects as go

from dashboard import theme

RANGE = "range in the header"
NOW = "now"
NO_SCAN = "no scan"
NOT_KNOWN = "scans not known"

_BARS = (
    ("■", theme.ACCENT, "valid"),
    ("■", theme.ACCENT + "73", "captured, no changes"),
    ("▨", theme.NEUTRAL, "not captured yet"),
)
_MARKS = (
    ("┇", theme.CLEANUP, "retention horizon"),
    ("⁞", theme.CLEANUP, "low after cleanup"),
    ("¦", theme.CLEANUP, "next cleanup"),
    ("◆", "", "client"),
    ("✖", theme.FAILING, "client left behind"),
    ("▒", theme.NEUTRAL, NO_SCAN),
    ("░", theme.NEUTRAL, NOT_KNOWN),
    ("┊", theme.NEUTRAL, NOW),
    ("▯", theme.ACCENT, RANGE),
)
"""Of each thing its sign, its colour (empty: that of text) and its name."""
LINE = 68
"""Characters that fit on a telephone, of which each entry takes five beside its name."""


def key_lines(drawn: Collection[str], remark: str = "") -> list[str]:
    """The key of what has these names, as lines of HTML; ``remark`` is the last."""
    lines = [line for group in (_BARS, _MARKS) for line in _wrapped([e for e in group if e[2] in drawn])]
    return [*lines, *([remark] if remark else [])]


def _wrapped(entries: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    line: list[str] = []
    taken = 0
    for sign, colour, name in entries:
        if line and taken + len(name) + 5 > LINE:
            yield _GAP.join(line)
            line, taken = [], 0
        line.append(f'<span style="color:{colour}">{sign}</span> {name}' if colour else f"{sign} {name}")
        taken += len(name) + 5
    if line:
        yield _GAP.join(line)


_GAP = "&nbsp;&nbsp;&nbsp;"


def add_key(figure: go.Figure, lines: Sequence[str], left: int) -> None:
    """Above the names, ``left`` pixels off the lanes: a legend of Plotly's would take its width from them."""
    figure.add_annotation(
        text="<br>".join(lines),
        align="left",
        x=0,
        y=1,
        xref="paper",
        yref="paper",
        xanchor="left",
        yanchor="bottom",
        xshift=8 - left,
        yshift=6,
        showarrow=False,
        font={"size": 12},
        name="key",
    )
