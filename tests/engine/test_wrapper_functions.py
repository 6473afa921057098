"""sys.sp_cdc_generate_wrapper_function: names, T-SQL and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import (
    ColumnListUnmappable,
    DatabaseNotEnabled,
    NotABit,
    QuotedNameNotTerminated,
    WrapperColumnNotCaptured,
    WrapperFlagNotCaptured,
    WrapperInstanceMissing,
    WrapperListsWithoutInstance,
)
from engine.procedures.wrapper_rules import wrapper_shape
from engine.procedures.wrapper_scripts import wrapper_functions
from tests.lake.change_tables import capture_instance

EXPECTED = Path(__file__).parent / "expected"


def scripts(name, closed=True, columns=None, flags=None, key=("id",)):
    instance = capture_instance({"id": "integer", "it's": "text", "a]b": "numeric(12,2)"}, key, name)
    return wrapper_functions(instance, wrapper_shape(instance, closed, columns, flags))


def test_the_scripts_are_as_they_were():
    """What users have run at their consoles: a change here is a decision."""
    made = scripts("HR_Department", False, "id, a]b", "[a]]b], it's") + scripts("it's")
    text = "".join(f"-- {function.function_name}\n{function.create_script}\n" for function in made)
    assert text == (EXPECTED / "wrapper_functions.sql").read_text()


def test_without_net_changes_there_is_one_function():
    assert [function.function_name for function in scripts("t", key=())] == ["fn_all_changes_t"]


def test_lists_keep_their_order_and_default_to_all_columns():
    instance = capture_instance({"id": "int", "a": "int", "b,c": "int"})
    assert wrapper_shape(instance, 1, ' "b,c" , id', "a,id").columns == ("b,c", "id")
    assert wrapper_shape(instance, 1, " ", "a,id").columns == ("id", "a", "b,c")
    assert wrapper_shape(instance, 1, None, "a,id").flags == ("a", "id")
    assert wrapper_shape(instance, 0, None, "").flags == ()


@pytest.mark.parametrize(
    ("closed", "columns", "flags", "error"),
    [
        (True, "id,A", None, WrapperColumnNotCaptured),
        (True, None, "id,nothing", WrapperFlagNotCaptured),
        (True, "id,,a", None, ColumnListUnmappable),
        (True, "id,id", None, ColumnListUnmappable),
        (True, "[id", None, QuotedNameNotTerminated),
        (2, None, None, NotABit),
    ],
)
def test_what_is_not_captured_or_cannot_be_read_is_refused(closed, columns, flags, error):
    with pytest.raises(error):
        wrapper_shape(capture_instance({"id": "int", "a": "int"}), closed, columns, flags)


def test_all_instances_are_scripted_without_lists(engine, enabled):
    assert engine.generate_wrapper_function(enabled) == []
    engine.enable_table(enabled, "hr", "department", role_name=None)
    engine.enable_table(enabled, "hr", "note", role_name=None)
    names = [function.function_name for function in engine.generate_wrapper_function(enabled)]
    assert names == ["fn_all_changes_hr_department", "fn_net_changes_hr_department", "fn_all_changes_hr_note"]
    assert len(engine.generate_wrapper_function(enabled, column_list="", update_flag_list=" ")) == 3
    for lists in ({"column_list": "id"}, {"update_flag_list": "id"}):
        with pytest.raises(WrapperListsWithoutInstance):
            engine.generate_wrapper_function(enabled, **lists)


def test_one_instance_is_scripted_with_lists(engine, enabled):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    made, _ = engine.generate_wrapper_function(enabled, "hr_department", True, "name", "budget")
    assert "[budget_uflag] bit" in made.create_script
    with pytest.raises(WrapperInstanceMissing, match="'nothing' does not exist in database 'hr'"):
        engine.generate_wrapper_function(enabled, "nothing")


def test_the_database_must_be_enabled(engine, hr):
    with pytest.raises(DatabaseNotEnabled):
        engine.generate_wrapper_function(hr)
