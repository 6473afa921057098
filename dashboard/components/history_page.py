"""What the page History shows: the range, small charts over it, an earlier period as a ghost, a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import pandas as pd
import pyarrow as pa
import streamlit as st

from dashboard import exports, glossary, history, state, theme
from dashboard import format as fmt
from dashboard.charts.chart import TimeRange
from dashboard.charts.history import heat_map, history_chart
from dashboard.charts.log_held import with_limit
from dashboard.charts.marks import LOOKS
from dashboard.components import explorer
from dashboard.components.chart_card import chart_card
from dashboard.components.operation_box import AT_ONCE, operation_failure, operation_progress
from dashboard.components.problem import escaped
from dashboard.components.range_picker import RangePicker
from dashboard.components.scale_switch import LINEAR, LOG, ScaleSwitch
from dashboard.history import MEASURES, PERIOD, SPANS, Asked
from dashboard.history_marks import counts
from dashboard.history_reading import HELD, HistoryRead, read_history
from dashboard.operations import Operation, OwnOperations
from dashboard.snapshot import DatabaseView
from engine.errors import ExportsOff
from engine.model.collection import BreakKind

RANGE = RangePicker("h_range", SPANS, "24h")
SCALE = ScaleSwitch("h_scale", (LOG, LINEAR))
NOTHING = "nothing"
_CLICKED = "h_clicked"
READING = 60.0
"""Seconds that a download waits for what is being read."""
_COMPARISONS = {
    NOTHING: "",
    "period before": PERIOD,
    "a day before": "day",
    "a week before": "week",
    "4 weeks before": "4 weeks",
}
_COLOURS = {"cmd": theme.CATEGORICAL[5], "errors": theme.FAILING, "empty": theme.NEUTRAL}


def history_page(view: DatabaseView) -> None:
    """The controls, which are in the address, then what was read for them."""
    asked = _controls(view)
    if asked is None:
        return
    operation = _operation(asked)
    shown = _shown(operation)
    if operation.is_active:
        _wait(operation, shown is None)
    elif operation_failure(operation):
        st.button("Try again", icon=":material/refresh:", key="h_again", on_click=_again, args=(asked,))
    if shown is not None:
        _charts(shown)


def range_now() -> object:
    """What the range is at this moment: a relative one moves on, a stretch at a time."""
    view = state.selected()
    return None if view is None else _asked(view, quiet=True)


def _controls(view: DatabaseView) -> Asked | None:
    with st.container(horizontal=True, vertical_alignment="bottom", key="h_controls"):
        RANGE.draw("Range")
        st.selectbox("Compare with", list(_COMPARISONS), key="h_cmp", bind="query-params", width=170)
        st.space("stretch")
        export = st.container(width="content")
    asked = _asked(view)
    if asked is not None:
        with export:
            _export_button(asked)
    return asked


def _asked(view: DatabaseView, quiet: bool = False) -> Asked | None:
    try:
        start, end = RANGE.range(state.now(), state.viewer().axis_zone)
        compared = _COMPARISONS.get(str(st.session_state.get("h_cmp") or NOTHING), "")
        return history.asked_range(view.name, start, end, compared)
    except ValueError as error:
        if not quiet:
            st.error(escaped(f"{error}."), icon=":material/error:")
        return None


def _key(asked: Asked) -> str:
    return f"history:{hash(asked)}"


def _operation(asked: Asked) -> Operation:
    return state.operations().get(_key(asked)) or _submit(asked)


def _again(asked: Asked) -> None:
    _submit(asked)


def _submit(asked: Asked) -> Operation:
    engine = state.engine()
    return state.operations().submit(
        _key(asked), "Reading history", lambda work: read_history(engine, asked, work)
    )


def _shown(operation: Operation) -> HistoryRead | None:
    """What was read; while that is under way, what was shown before of the same database."""
    operation.wait(AT_ONCE)
    if isinstance(operation.result, HistoryRead):
        st.session_state["h_shown"] = operation.result
        return operation.result
    before: HistoryRead | None = st.session_state.get("h_shown")
    view = state.selected()
    if not operation.is_active or before is None or view is None:
        return None
    return before if before.period.asked.database == view.name else None


def _wait(operation: Operation, is_first: bool) -> None:
    operation_progress(operation, "h_wait")
    if is_first:
        for _row in range(3):
            for column in st.columns(2):
                column.skeleton(height=200)


def _charts(read: HistoryRead) -> None:
    period, earlier = read.period, read.earlier
    asked = period.asked
    span = TimeRange(asked.start, asked.end, state.viewer().axis_zone)
    st.markdown(_sentence(read))
    grid, choose = st.columns(2), partial(_choose, span)
    cards = [(each.name, each.title, each.unit) for each in MEASURES]
    cards.insert(4, (HELD, "Log held, most", "bytes"))
    for number, (name, title, unit) in enumerate(cards):
        values = period.values[name]
        before = None if earlier is None else earlier.values[name]
        if name == HELD:
            values, before, unit = _in_mib(values), _in_mib(before) if before is not None else None, "MiB"
        with grid[number % 2]:
            colour = _COLOURS.get(name, theme.ACCENT) if any(values) else theme.NEUTRAL
            chart = history_chart(
                title,
                unit,
                asked.starts,
                values,
                before,
                period.breaks,
                span,
                colour,
                name == HELD,
                read.marks,
            )
            if name == HELD:
                chart = with_limit(chart, asked.starts, period.limits, period.unlimited, span)
            heading = title if title.lower() == unit else f"{title} ({unit})"
            chart_card(heading, chart, f"h_{name}", glossary.HISTORY[name], choose)
    gaps = [each for each in period.breaks if each.kind is BreakKind.GAP]
    chart = heat_map(read.tables, asked.starts, asked.step, gaps, span, SCALE.chosen == LOG)
    clicked = partial(_click, span, asked.step)
    few = "" if len(read.tables) >= read.captured else _few(read)
    title = "Rows captured by table and time"
    chart_card(title, chart, "h_heat", glossary.HEAT_MAP, choose, clicked, few, SCALE)
    _happenings(read)
    _open_clicked()


def _few(read: HistoryRead) -> str:
    return f"The {len(read.tables)} change tables with the most rows in this range, of {read.captured}."


def _happenings(read: HistoryRead) -> None:
    """The marks as a list: all of them, in words."""
    if read.unread:
        st.caption(f":material/warning: Not all that happened is marked: {escaped(read.unread)}")
    if not read.marks:
        return
    title = f"What happened meanwhile: {', '.join(counts(read.marks).values())}"
    with st.expander(
        title, type="compact", icon=":material/flag:", key="h_marks", on_change="rerun"
    ) as list_:
        if not list_.open:
            return
        zone = state.viewer().axis_zone
        frame = pd.DataFrame(
            {
                "time": [fmt.moment(each.at, zone) for each in read.marks],
                "what": [f"{LOOKS[each.kind].glyph} {each.kind}" for each in read.marks],
                "details": [each.text for each in read.marks],
            }
        )
        st.dataframe(frame, hide_index=True, height=theme.table_height(len(frame), 12), key="h_marks_list")


def _choose(span: TimeRange, shown: tuple[str, str] | None) -> None:
    """What was dragged in a chart becomes the range; a double click brings back the default one."""
    RANGE.choose(None if shown is None else span.read_both(shown))


def _click(span: TimeRange, step: int, moment: str, capture_instance: str) -> None:
    """A cell of the heat map: its changes are opened once the page runs."""
    middle, half = span.read(moment), timedelta(seconds=step / 2)
    st.session_state[_CLICKED] = (capture_instance, middle - half, middle + half)


def _open_clicked() -> None:
    """Goes to the changes of the cell that was clicked, as far as they are kept."""
    name, start, end = st.session_state.pop(_CLICKED, (None, None, None))
    view = state.selected()
    if name is None or view is None:
        return
    parameters = explorer.changes_between(view, name, start, end)
    if parameters is None:
        st.toast(f"{escaped(name)} is not captured any more.", icon=":material/info:")
    else:
        state.go_to("changes", parameters)


def _in_mib(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else value / 2**20 for value in values]


def _sentence(read: HistoryRead) -> str:
    """The range in words, with what breaks it and what is marked in it."""
    period, zone = read.period, state.viewer().axis_zone
    asked = period.asked
    gaps = [each for each in period.breaks if each.kind is BreakKind.GAP]
    restarts = len(history.restarts(period.breaks))
    text = (
        f"{fmt.moment(asked.start, zone)} to {fmt.moment(asked.end, zone)}, in stretches of "
        f"{fmt.duration(asked.step)}"
    )
    marked = "".join(f" · {LOOKS[kind].glyph} {words}" for kind, words in counts(read.marks).items())
    if not any(value is not None for values in period.values.values() for value in values):
        return f":gray[:material/help: **Nothing was collected**] in this range: {text}{marked}"
    if gaps:
        why = f": {escaped(gaps[-1].reason)}" if gaps[-1].reason else ""
        text += f" · :orange[:material/warning: {fmt.plural(len(gaps), 'gap')}], shown grey{why}"
    else:
        text += " · :green[:material/check_circle: no gap]"
    text += f" · {fmt.plural(restarts, 'restart')}, dashed" if restarts else ""
    return text + marked


def _export_button(asked: Asked) -> None:
    if not state.snapshot().settings.exports:
        st.button("CSV", icon=":material/download:", key="h_csv_off", disabled=True, help=str(ExportsOff()))
        return
    st.download_button(
        "CSV",
        data=partial(_csv, state.operations(), _key(asked)),
        file_name=f"history-{asked.database}-{asked.start:%Y%m%dT%H%M}-{asked.end:%Y%m%dT%H%M}.csv",
        mime=exports.CSV.mime,
        on_click="ignore",
        icon=":material/download:",
        key="h_csv",
    )


def _csv(operations: OwnOperations, key: str) -> bytes:
    """A line for each stretch and period; what is not known is empty. Waits for what is still being read."""
    operation = operations.get(key)
    if operation is not None:
        operation.wait(READING)
    read = None if operation is None else operation.result
    columns: dict[str, list[object]] = {name: [] for name in ("period", "from", *_NAMES)}
    for period in (read.period, read.earlier) if isinstance(read, HistoryRead) else ():
        if period is None:
            continue
        which = "this" if isinstance(read, HistoryRead) and period is read.period else "earlier"
        columns["period"] += [which] * len(period.asked.starts)
        columns["from"] += [start.isoformat() for start in period.asked.starts]
        for name, key in _NAMES.items():
            columns[name] += list(period.limits if key == _LIMIT else period.values[key])
    return exports.export(pa.table(columns), exports.CSV)


_LIMIT = "limit"
_NAMES = {
    "latency_max_seconds": "latency",
    "transactions_per_second": "tran",
    "commands_per_second": "cmd",
    "empty_scan_count_max": "empty",
    "error_count": "errors",
    "log_held_bytes": HELD,
    "log_limit_bytes": _LIMIT,
}
