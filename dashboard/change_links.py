"""Addresses of the explorer: a question, a change in its transaction. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from dashboard.changes import Change, place_text
from dashboard.reading import ChangePage, ChangeQuery
from engine.model.change import Operation

LAST, RANGE = "Last rows", "Range"
SELECTED = "c_sel"
"""The parameter that has the place of the selected change."""
OPERATION_FILTERS = {
    "insert": (Operation.INSERT,),
    "update": (Operation.UPDATE_OLD, Operation.UPDATE_NEW),
    "delete": (Operation.DELETE,),
    "merge": (Operation.MERGE,),
}


def of_page(query: ChangeQuery, page: ChangePage) -> dict[str, object]:
    """Parameters that ask for these rows: of the newest so many, from the first of them to the last."""
    chosen, start, end = query.filter, str(page.from_lsn), str(page.to_lsn)
    if query.last is not None and page.changes:
        start, end = page.changes[-1].start_lsn, page.changes[0].start_lsn
    return {
        "db": query.database,
        "c_ci": query.instance.capture_instance,
        "c_mode": "Net" if query.net else "All",
        "c_opt": query.row_filter_option,
        "c_by": RANGE,
        "c_from": start,
        "c_to": end,
        "c_op": [name for name, codes in OPERATION_FILTERS.items() if set(codes) <= set(chosen.operations)],
        "c_col": chosen.column,
        "c_key": chosen.key,
        "c_text": chosen.text,
    }


def of_transaction(capture_instance: str, start_lsn: str) -> dict[str, str]:
    """Parameters that ask for what a transaction changed in one capture instance, old values included."""
    range_ = {"c_by": RANGE, "c_from": start_lsn, "c_to": start_lsn}
    return {"c_ci": capture_instance, "c_mode": "All", "c_opt": "all update old", **range_}


def of_change(change: Change, database: str) -> dict[str, object]:
    """Parameters that show one change, selected, in its transaction."""
    transaction = of_transaction(change.capture_instance, change.start_lsn)
    return {"db": database, **transaction, SELECTED: place_text(change.place) if change.seqval else ""}


def address(base: str, parameters: Mapping[str, object]) -> str:
    """The address with those that are not empty; ``base``: a page's, what it has after ``?`` goes."""
    given = {name: value for name, value in parameters.items() if value}
    return f"{base.split('?')[0].rstrip('/')}?{urlencode(given, doseq=True)}"
