"""When a query function answers (reference/functions.md, 1.3)."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from engine.errors import RangeOutsideValidity
from engine.model.capture_instance import CaptureInstance
from engine.model.lsn import Lsn


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """A valid question: a range of commit LSNs, closed at both ends, and a row filter option.

    The range may be empty (from above to). Whether that is an error is not documented; here it is an
    empty answer, because the documented patterns come to it rightly: the next batch, increment_lsn of
    the last, when nothing has happened since; an interval of times without a commit.
    """

    from_lsn: Lsn
    to_lsn: Lsn
    row_filter_option: str


def checked_range(
    function: str,
    instance: CaptureInstance,
    from_lsn: Lsn | None,
    to_lsn: Lsn | None,
    high: Lsn | None,
    row_filter_option: str | None,
    options: Container[str],
) -> ChangeRange:
    """The question when it may be asked, decided without Spark.

    function: the beginning of the function's name, for the error text; options: lower case.
    high: fn_cdc_get_max_lsn(), None when nothing has been published.
    Raises RangeOutsideValidity for a NULL, a range that is not within the instance's validity interval,
    or an option that is not one of ``options``.
    """
    option = (row_filter_option or "").strip().lower()
    if from_lsn is None or to_lsn is None or high is None or instance.start_lsn is None:
        raise RangeOutsideValidity(function)
    if from_lsn < instance.start_lsn or to_lsn > high or option not in options:
        raise RangeOutsideValidity(function)
    return ChangeRange(from_lsn, to_lsn, option)
