"""sys.fn_cdc_is_bit_set over a whole column of masks (reference/functions.md, 3).

`engine.model.mask.is_bit_set` answers for one mask, these for every row of a query, in Spark. Positions
are those of `Engine.get_column_ordinal`.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql.functions import expr

from engine.lake.sql_text import quoted
from engine.model.change import UPDATE_MASK

_BITS = 1024


def is_bit_set(position: int, update_mask: str = UPDATE_MASK) -> Column:
    """Whether each row's mask has that 1-based bit; False for NULL and beyond the mask, never NULL.

    update_mask: the column's name. In a process with a classic and a Connect session, Columns are of the
    classic one: use `bit_set_text` with ``selectExpr`` and ``where`` there. Raises ValueError for a
    position that no mask has.
    """
    return expr(bit_set_text(position, update_mask))


def bit_set_text(position: int, update_mask: str = UPDATE_MASK) -> str:
    """The same as Spark SQL text, for any kind of session. Raises ValueError."""
    if not 1 <= position <= _BITS:
        raise ValueError(f"position {position} is not within 1 … {_BITS}")
    byte, bit = divmod(position - 1, 8)
    # Bytes count from the end. Where the mask is shorter, substring is empty, conv gives NULL.
    octet = f"conv(hex(substring({quoted(update_mask)}, -{byte + 1}, 1)), 16, 10)"
    return f"coalesce((CAST({octet} AS INT) & {1 << bit}) <> 0, false)"
