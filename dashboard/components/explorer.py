"""The explorer of changes: a question in the URL, a warning before it is asked, pages of changes.

Every parameter is a bound widget, so the address is the question and a copied link asks it again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, tzinfo
from functools import partial

import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, ranges, reading, state
from dashboard.change_links import LAST, OPERATION_FILTERS, RANGE, SELECTED, of_transaction
from dashboard.changes import Change, place_of, place_text
from dashboard.charts.mask_matrix import MOST as MATRIX_ROWS
from dashboard.charts.mask_matrix import mask_matrix
from dashboard.charts.range_bar import Endpoint, range_bar
from dashboard.components.change_drawer import change_drawer
from dashboard.components.change_output import copy_as, download_box
from dashboard.components.change_run import Run
from dashboard.components.change_table import change_table
from dashboard.components.chart_card import chart_card
from dashboard.components.live_plot import live_plot
from dashboard.components.operation_box import AT_ONCE, operation_failure, operation_progress
from dashboard.components.problem import escaped
from dashboard.going import UNFILTERED
from dashboard.operations import Operation as Work
from dashboard.ranges import Validity
from dashboard.reading import ChangeFilter, ChangePage, ChangeQuery
from dashboard.snapshot import DatabaseView
from engine.model.capture_instance import CaptureInstance

ALL_OPTIONS = ("all update old", "all")
NET_OPTIONS = ("all with mask", "all", "all with merge")
ROWS, MATRIX = "Rows", "Mask matrix"
_VIEW = "c_view"
_JUMP = "c_jump"
COUNTS = (50, 200, 1000, 10000)


def explorer(view: DatabaseView) -> None:
    """Question, validity bar, result and drawer."""
    with st.container(border=True, gap="small", key="question"):
        instance = _instance(view)
        query = _question(view, instance)
    if query is None:
        return
    _result(view, query)


def _instance(view: DatabaseView) -> CaptureInstance:
    names = sorted(i.capture_instance for i in view.instances)
    if st.session_state.get("c_ci") not in names:
        st.session_state.pop("c_ci", None)
    row = st.container(horizontal=True, vertical_alignment="top", key="question_row")
    with row:
        name = st.selectbox("Capture instance", names, key="c_ci", bind="query-params", width=240)
    found = view.instance(name)
    assert found is not None
    with row:
        _mode(found)
    return found


def _mode(instance: CaptureInstance) -> None:
    modes = ["All", "Net"] if instance.supports_net_changes else ["All"]
    if st.session_state.get("c_mode") not in modes:
        st.session_state.pop("c_mode", None)
    st.segmented_control(
        "Changes",
        modes,
        default="All",
        required=True,
        key="c_mode",
        bind="query-params",
        help="**All**: every change. **Net**: one row for each key with its final values.",
    )
    options = NET_OPTIONS if st.session_state.get("c_mode") == "Net" else ALL_OPTIONS
    if st.session_state.get("c_opt") not in options:
        st.session_state.pop("c_opt", None)
    st.selectbox(
        "Row filter option", options, key="c_opt", bind="query-params", width=148, help=_option_help(options)
    )
    st.segmented_control("Of", [LAST, RANGE], default=LAST, required=True, key="c_by", bind="query-params")
    if st.session_state.get("c_by") == RANGE:
        placeholder = "low watermark"
        st.text_input(
            "From", key="c_from", bind="query-params", placeholder=placeholder, width=180, help=_RANGE_HELP
        )
        st.text_input(
            "To", key="c_to", bind="query-params", placeholder="high watermark", width=180, help=_RANGE_HELP
        )
    else:
        st.selectbox("Newest", COUNTS, index=1, key="c_n", bind="query-params", width=110)


_RANGE_HELP = (
    "An LSN (`0x` and 20 hex digits, or 8:8:4), a commit time (`2026-11-21 09:14:03.120`), or `now-15m`. "
    "Empty: the end of the validity interval. Both ends belong to the range."
)


def _option_help(options: tuple[str, ...]) -> str:
    texts = glossary.ROW_FILTERS | ({"all": glossary.NET_ALL} if "all with mask" in options else {})
    return "\n\n".join(f"`{option}`: {texts[option]}" for option in options)


def _question(view: DatabaseView, instance: CaptureInstance) -> ChangeQuery | None:
    """The query as asked; None when it can't run, after saying why."""
    chosen = _filter(instance)
    high = view.watermarks.high
    if instance.start_lsn is None or high is None:
        st.info(
            "Nothing can be asked yet: capture has not reached this instance in the log.",
            icon=":material/info:",
        )
        return None
    query = ChangeQuery(
        instance=instance,
        net=st.session_state.get("c_mode") == "Net",
        row_filter_option=str(st.session_state.get("c_opt")),
        start=None,
        end=None,
        last=int(st.session_state.get("c_n") or COUNTS[1]),
        filter=chosen,
    )
    if st.session_state.get("c_by") != RANGE:
        return query
    return _ranged(
        view, replace(query, last=None), Validity(instance.start_lsn, high, *_times(view, instance))
    )


def _times(view: DatabaseView, instance: CaptureInstance) -> tuple[datetime, datetime | None]:
    return view.low_time(instance) or instance.create_date, view.watermarks.last_commit_time


def _ranged(view: DatabaseView, query: ChangeQuery, validity: Validity) -> ChangeQuery | None:
    zone = state.viewer().axis_zone
    try:
        start = ranges.parse_end(st.session_state.get("c_from") or "", state.now(), zone)
        end = ranges.parse_end(st.session_state.get("c_to") or "", state.now(), zone)
    except ValueError as error:
        st.error(str(error), icon=":material/error:")
        return None
    checked = ranges.check(start, end, validity)
    _bar(start, end, validity)
    if checked.is_valid:
        return replace(query, start=start, end=end)
    with st.container(horizontal=True, vertical_alignment="center"):
        fate = "This range would fail with **Msg 313**" if checked.would_fail else "This range is empty"
        st.error(f"{fate}: {checked.problem}.", icon=":material/error:", width="stretch")
        st.button(
            "Clamp",
            icon=":material/compress:",
            type="primary",
            key="c_clamp",
            on_click=_clamp,
            args=(checked.start, checked.end, zone),
        )
    return None


def _clamp(start: ranges.End, end: ranges.End, zone: tzinfo) -> None:
    st.session_state["c_from"], st.session_state["c_to"] = ranges.text_of(start), ranges.text_of(end)


def _bar(start: ranges.End, end: ranges.End, validity: Validity) -> None:
    low_at = ranges.position(validity.low, validity, 0)
    high_at = ranges.position(validity.high, validity, 0)
    chart = range_bar(
        Endpoint(low_at, fmt.moment(validity.low_time)),
        Endpoint(high_at, fmt.moment(validity.high_time)),
        Endpoint(ranges.position(start, validity, low_at), ranges.text_of(start) or "the low watermark"),
        Endpoint(ranges.position(end, validity, high_at), ranges.text_of(end) or "the high watermark"),
    )
    live_plot(chart, "c_bar")


def _filter(instance: CaptureInstance) -> ChangeFilter:
    with st.expander(_filter_label(), icon=":material/filter_alt:", type="compact", key="c_filter"):
        grid = st.grid(4, min_column_width=180)
        names = [name for name in OPERATION_FILTERS if (name == "merge") == _is_merge() or name == "delete"]
        with grid.cell():
            chosen = st.pills("Operation", names, selection_mode="multi", key="c_op", bind="query-params")
        columns = ["", *instance.column_names]
        if st.session_state.get("c_col") not in columns:
            st.session_state.pop("c_col", None)
        with grid.cell():
            column = st.selectbox(
                "Changed column",
                columns,
                key="c_col",
                bind="query-params",
                format_func=lambda name: name or "any",
                help="Updates whose mask has this column's bit.",
            )
        with grid.cell():
            key = st.text_input("Key", key="c_key", bind="query-params", placeholder="42 or column=42")
        with grid.cell():
            text = st.text_input("Text in any column", key="c_text", bind="query-params")
    operations = tuple(code for name in chosen for code in OPERATION_FILTERS[name])
    return ChangeFilter(operations, column or "", (key or "").strip(), (text or "").strip())


def _filter_label() -> str:
    """What is filtered for, which a closed filter would hide."""
    chosen = {
        "operation": " or ".join(_list_of("c_op")),
        "changed column": st.session_state.get("c_col"),
        "key": st.session_state.get("c_key"),
        "text": st.session_state.get("c_text"),
    }
    parts = [f"{name} **{escaped(str(value))}**" for name, value in chosen.items() if value]
    return "Filter" + (f": {', '.join(parts)}" if parts else "")


def _list_of(key: str) -> list[str]:
    value = st.session_state.get(key) or []
    return [str(each) for each in value]


def _is_merge() -> bool:
    return st.session_state.get("c_opt") == "all with merge"


def _run() -> Run:
    run: Run | None = st.session_state.get("c_run")
    if run is None:
        run = st.session_state["c_run"] = Run()
        if wanted := place_of(st.query_params.get(SELECTED, "")):
            st.session_state[_JUMP] = wanted
    return run


def _settled(run: Run, query: ChangeQuery) -> ChangeQuery:
    """The query to run: ``now-15m`` means the moment it was typed, not that of every redraw."""
    typed = (
        st.session_state.get("c_from"),
        st.session_state.get("c_to"),
        replace(query, start=None, end=None),
    )
    if run.query is None or run.asked != typed:
        run.asked, run.query = typed, query
        run.ask_again()
    if (wanted := st.session_state.pop(_JUMP, None)) is not None:
        run.look_for(wanted)
    return run.query


def _result(view: DatabaseView, asked: ChangeQuery) -> None:
    run = _run()
    query, page, wanted, engine = _settled(run, asked), run.page, run.wanted, state.engine()
    operation = state.operations().get(run.key) or state.operations().submit(
        run.key, "Reading changes", lambda work: reading.read_page(engine, query, page, work, wanted)
    )
    if not operation.wait(AT_ONCE):
        operation_progress(operation, "c_wait")
        st.skeleton(height=360)
    elif not operation_failure(operation):
        _show(view, query, operation, run)
    else:
        st.button("Try again", icon=":material/refresh:", key="c_again", on_click=run.ask_again)


def _show(view: DatabaseView, query: ChangeQuery, operation: Work, run: Run) -> None:
    page: ChangePage = operation.result
    _toolbar(view, query, page, operation, run)
    if not page.changes:
        _keep_in_address(None)
        _nothing(query)
        return
    _select_wanted(page, run)
    table, drawer = st.columns([11, 6]) if run.selected is not None else (st.container(), None)
    with table:
        if st.session_state.get(_VIEW) == MATRIX:
            index = _matrix(page, query, run)
        else:
            index = change_table(page.changes, query.instance, f"c_rows_{run.key}", run.selected)
        _pages(page, run)
    if index != run.clicked:
        run.clicked = run.selected = index
        st.rerun()
    if drawer is None or run.selected is None:
        _keep_in_address(None)
        return
    with drawer:
        change = page.changes[min(run.selected, len(page.changes) - 1)]
        _keep_in_address(change)
        change_drawer(view, query.instance, change, partial(_move, len(page.changes)))


def _keep_in_address(change: Change | None) -> None:
    """The selected change; a net change has no place of its own in the log."""
    if change is not None and change.seqval:
        st.query_params[SELECTED] = place_text(change.place)
    else:
        st.query_params.pop(SELECTED, None)


def _matrix(page: ChangePage, query: ChangeQuery, run: Run) -> int | None:
    """The masks of the page's changes; a point that is clicked opens its change."""

    def open_change(_column: str, place: str) -> None:
        run.selected = min(len(page.changes) - 1, int(float(place)))

    chart = mask_matrix(page.changes, query.instance.column_names, state.viewer().axis_zone)
    chart_card(
        "Mask matrix",
        chart,
        f"c_matrix_{run.key}",
        "A row for each change, a column for each bit of `__$update_mask`: filled where an update set it, "
        "hollow for inserts and deletes, where all bits are set by rule.",
        on_point=open_change,
    )
    if len(page.changes) > MATRIX_ROWS:
        st.caption(f"The newest {MATRIX_ROWS} of {len(page.changes)} changes; the shares are of all of them.")
    return run.clicked


def jump_to(change: Change) -> dict[str, str]:
    """URL parameters that show one change: its transaction as the range, its row selected."""
    st.session_state[_JUMP] = change.place
    st.session_state.update(UNFILTERED)
    return of_transaction(change.capture_instance, change.start_lsn)


def changes_between(
    view: DatabaseView, capture_instance: str, start: datetime, end: datetime
) -> dict[str, str] | None:
    """URL parameters that show an instance's changes of a time, as far as they are kept; None: it is gone."""
    instance, high = view.instance(capture_instance), view.watermarks.high
    if instance is None or instance.start_lsn is None or high is None:
        return None
    validity = Validity(instance.start_lsn, high, *_times(view, instance))
    kept = ranges.check(start, end, validity)
    ends = {"c_from": ranges.text_of(kept.start), "c_to": ranges.text_of(kept.end)}
    return {"c_ci": capture_instance, "c_by": RANGE} | {k: v for k, v in ends.items() if v}


def _select_wanted(page: ChangePage, run: Run) -> None:
    """Once: from then on any row of its page can be selected, or none."""
    if run.is_sought:
        run.is_sought = False
        found = [index for index, change in enumerate(page.changes) if change.place == run.wanted]
        run.selected = found[0] if found else None


def _move(count: int, by: int) -> None:
    run = _run()
    run.selected = max(0, min(count - 1, (run.selected or 0) + by))


def _nothing(query: ChangeQuery) -> None:
    why = "that match the filter" if query.filter else "in this range"
    st.info(f"No changes {why}.", icon=":material/search_off:")
    st.button("Show the newest changes instead", key="c_nearest", on_click=_newest, icon=":material/history:")


def _newest() -> None:
    for name in ("c_from", "c_to", "c_key", "c_text", "c_col"):
        st.session_state[name] = ""
    st.session_state["c_op"] = []
    st.session_state["c_by"] = LAST


def _toolbar(view: DatabaseView, query: ChangeQuery, page: ChangePage, operation: Work, run: Run) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="c_toolbar"):
        st.markdown(_summary(page, operation), width="content")
        _behind(view, page, run)
        st.space("stretch")
        st.segmented_control(
            "View",
            [ROWS, MATRIX],
            default=ROWS,
            required=True,
            key=_VIEW,
            bind="query-params",
            label_visibility="collapsed",
        )
        with st.popover("Copy as", icon=":material/content_copy:"):
            copy_as(query, page)
        with st.popover("Download", icon=":material/download:"):
            download_box(query, page, run)


def _summary(page: ChangePage, operation: Work) -> str:
    count = fmt.plural(len(page.changes), "change") + (
        " on this page" if page.has_more or page.number else ""
    )
    return (
        f"**{count}**, newest first · {fmt.lsn_short(page.from_lsn)} to {fmt.lsn_short(page.to_lsn)} "
        f"· {fmt.duration(round(operation.seconds, 2))}"
    )


def _behind(view: DatabaseView, page: ChangePage, run: Run) -> None:
    """Offers to ask again once readers could see more than this answer has."""
    is_open = st.session_state.get("c_by") != RANGE or not st.session_state.get("c_to")
    drawn = run.key

    def body() -> None:
        if run.key != drawn:
            st.rerun(scope="app")  # asked again, by a click that this tick or another request brought
        high = (state.selected() or view).watermarks.high
        if is_open and high is not None and high > page.to_lsn:
            st.button(
                "Newer changes",
                icon=":material/refresh:",
                key="c_newer",
                type="tertiary",
                on_click=run.ask_again,
            )

    state.live(body)


def _pages(page: ChangePage, run: Run) -> None:
    if not page.has_more and not page.number:
        return
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="center"):
        newer, older = page.number == 0, not page.has_more
        _turn("Newer page", page.number - 1, run, "c_prev", ":material/chevron_left:", newer)
        st.caption(f"page {page.number + 1}", width="content")
        _turn("Older page", page.number + 1, run, "c_next", ":material/chevron_right:", older)


def _turn(label: str, to: int, run: Run, key: str, icon: str, disabled: bool) -> None:
    st.button(label, key=key, icon=icon, disabled=disabled, on_click=run.turn_to, args=(to,))
