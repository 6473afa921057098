"""Options of the Spark data source."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engine.model.lsn import Lsn
from engine.spark_source.options import OptionInvalid, SourceOptions

NEEDED = {"database": "demo", "capture_instance": "dbo_t"}


def test_what_is_not_given_has_its_default():
    options = SourceOptions.of(NEEDED)
    assert (options.mode, options.net, options.row_filter) == ("all", False, "all")
    assert (options.from_, options.to, options.principal, options.home) == (None, None, None, None)


def test_names_and_modes_know_no_case_and_bounds_are_lsns_or_times():
    options = SourceOptions.of(
        {"DataBase": "demo", "CAPTURE_INSTANCE": "dbo_t", "Mode": "NET", "FROM": "0x" + "0" * 19 + "A"}
    )
    assert (options.net, options.from_) == (True, Lsn.parse("0x0000000000000000000A"))
    with_times = SourceOptions.of({**NEEDED, "from": "2026-01-05 08:00", "to": "2026-01-05T10:00+01:00"})
    assert with_times.from_ == datetime(2026, 1, 5, 8, tzinfo=UTC)
    assert with_times.to == datetime(2026, 1, 5, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"database": "demo"}, "Option 'capture_instance' .*: it must be given"),
        ({"capture_instance": "dbo_t", "database": ""}, "Option 'database' .*: it must be given"),
        ({**NEEDED, "mode": "some"}, "Option 'mode' .*: 'some' is neither all nor net"),
        ({**NEEDED, "from": "yesterday"}, "Option 'from' .*: 'yesterday' is neither an LSN"),
        ({**NEEDED, "to": "0x12"}, "Option 'to' .*: '0x12' is neither an LSN"),
        (
            {**NEEDED, "from_lsn": "0x"},
            "Option 'from_lsn' .*: there is none of that name",
        ),
    ],
)
def test_what_is_wrong_is_named(options, words):
    with pytest.raises(OptionInvalid, match=words):
        SourceOptions.of(options)
