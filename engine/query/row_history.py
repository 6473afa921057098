"""All that befell one row, from the lake's files: no Spark job has to start to look at a single row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from engine.model.change import COMMAND_ID, OPERATION, SEQVAL, START_LSN, UPDATE_MASK
from engine.query.change_files import ChangeFiles

_ORDER = [(name, "descending") for name in (START_LSN, COMMAND_ID, SEQVAL, OPERATION)]


def row_history(
    files: ChangeFiles, key: Mapping[str, object], count: int, check: Callable[[], None] = lambda: None
) -> pa.Table:
    """The newest ``count`` rows with this key, newest first: an update's 4 comes right before its 3.

    files: of all changes; key: values by captured column, None for NULL. Columns are those of the query
    function, captured ones by their names, and ``__$command_id`` at the end. check: called for each batch
    that is read; what it raises ends the search.
    """
    names = [START_LSN, SEQVAL, OPERATION, UPDATE_MASK, *files.instance.column_names, COMMAND_ID]
    found = pa.Table.from_batches([], files.schema).rename_columns(names)
    for part in reversed(files.parts()):
        # Files overlap where one transaction filled several: only their bounds say which are too old.
        is_full = found.num_rows == count
        if is_full and part.file.most is not None and part.file.most < found[START_LSN][-1].as_py():
            continue
        batches = []
        for batch in part.rows():
            check()
            named = batch.rename_columns(names)
            batches.append(named.filter(reduce(pc.and_, (_is(named[each], key[each]) for each in key))))
        found = pa.concat_tables([found, pa.Table.from_batches(batches, found.schema)])
        found = found.sort_by(_ORDER).slice(0, count)
    return found


def _is(column: pa.Array, value: object) -> pa.Array:
    if value is None:
        return pc.is_null(column)
    return pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False)
