"""What may be asked of capture instances (reference/procedures.md, 5; functions.md, 2 and 3).

Every question knows its principal: a role of the source whose rights decide (`read_rule`), or None for the
owner, who sees everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.control import ControlDatabase
from engine.errors import (
    InvalidObjectName,
    ObjectDenied,
    ParameterEmpty,
    WrapperInstanceMissing,
    WrapperListsWithoutInstance,
)
from engine.model.capture_instance import CaptureInstance
from engine.model.column_description import ColumnDescription, column_descriptions
from engine.model.ddl_history import DdlHistoryRow, SchemaChange
from engine.model.lsn import Lsn
from engine.model.mask import is_bit_set
from engine.model.wrapper import WrapperFunction
from engine.procedures.databases import Databases
from engine.procedures.read_rule import ReadRule
from engine.procedures.wrapper_rules import is_given, wrapper_shape
from engine.procedures.wrapper_scripts import wrapper_functions


class Metadata:
    """Questions about the capture instances of a home's databases."""

    def __init__(self, control: ControlDatabase, databases: Databases) -> None:
        self._control = control
        self._databases = databases
        self._rule = ReadRule(databases)

    def readable(
        self, database: str, instances: Sequence[CaptureInstance], principal: str | None
    ) -> list[CaptureInstance]:
        """Those of ``instances`` that the principal may read."""
        return self._rule.readable(database, instances, principal)

    def queried(
        self, database: str, capture_instance: str, kind: str, principal: str | None
    ) -> tuple[CaptureInstance, Lsn | None]:
        """The instance whose query function (kind ``all`` or ``net``) is called, and how far it may look.

        The watermark is read after the instance: it is never older than the instance's start.
        Raises InvalidObjectName (208), SelectDenied (229).
        """
        self._databases.enabled(database)
        function = f"fn_cdc_get_{kind}_changes_{capture_instance}"
        instance = self._control.instances.get(database, capture_instance)
        if instance is None or (kind == "net" and not instance.supports_net_changes):
            raise InvalidObjectName(f"cdc.{function}")
        self._rule.check(instance, principal, function)
        return instance, self._control.watermarks.get(database).high

    def as_now(self, instance: CaptureInstance) -> CaptureInstance:
        """The instance with the low endpoint that it has now. Raises InvalidObjectName when it is gone."""
        now = self._control.instances.get(instance.database, instance.capture_instance)
        if now is None or now.object_id != instance.object_id:
            raise InvalidObjectName(f"cdc.{instance.capture_instance}_CT")
        return replace(instance, start_lsn=now.start_lsn)

    def min_lsn(self, database: str, capture_instance: str, principal: str | None) -> Lsn:
        """The instance's low endpoint; zero where it is unknown, not yet met in the log, or not readable."""
        instance = self._visible(database, capture_instance, principal)
        return Lsn.ZERO if instance is None or instance.start_lsn is None else instance.start_lsn

    def captured_columns(
        self, database: str, capture_instance: str, principal: str | None
    ) -> list[ColumnDescription]:
        """sys.sp_cdc_get_captured_columns. Raises ParameterEmpty, ObjectDenied (22981)."""
        return column_descriptions(self._described(database, capture_instance, principal))

    def ddl_history(self, database: str, capture_instance: str, principal: str | None) -> list[DdlHistoryRow]:
        """sys.sp_cdc_get_ddl_history. Raises ParameterEmpty, ObjectDenied (22981)."""
        instance = self._described(database, capture_instance, principal)
        return self._control.ddl.list(database, instance.capture_instance)

    def schema_changes(self, database: str, principal: str | None) -> list[SchemaChange]:
        """DDL history of all instances that the principal may read, with shapes."""
        self._databases.enabled(database)
        changes = self._control.ddl.shapes(database)
        if principal is None:
            return list(changes)
        instances = self._control.instances.list(database)
        names = {each.capture_instance for each in self._rule.readable(database, instances, principal)}
        return [change for change in changes if change.history.capture_instance in names]

    def _described(self, database: str, capture_instance: str, principal: str | None) -> CaptureInstance:
        self._databases.enabled(database)
        if not capture_instance:
            raise ParameterEmpty("@capture_instance")
        instance = self._visible(database, capture_instance, principal)
        if instance is None:
            raise ObjectDenied
        return instance

    def column_ordinal(
        self, database: str, capture_instance: str, column: str, principal: str | None
    ) -> int | None:
        """The column's 1-based place among the captured ones; None where there is none to be seen."""
        instance = self._visible(database, capture_instance, principal)
        if instance is None or column not in instance.column_names:
            return None
        return instance.column_names.index(column) + 1

    def has_column_changed(
        self,
        database: str,
        capture_instance: str,
        column: str,
        update_mask: bytes | None,
        principal: str | None,
    ) -> bool | None:
        """Whether the mask has the column's bit; None where there is no such column to be seen."""
        ordinal = self.column_ordinal(database, capture_instance, column, principal)
        return None if ordinal is None else is_bit_set(ordinal, update_mask)

    def wrapper_functions(
        self,
        database: str,
        capture_instance: str | None,
        closed_high_end_point: bool | int,
        column_list: str | None,
        update_flag_list: str | None,
        principal: str | None,
    ) -> list[WrapperFunction]:
        """sys.sp_cdc_generate_wrapper_function, by instance.

        Raises WrapperInstanceMissing (22920), WrapperListsWithoutInstance (22921), and what
        `wrapper_rules.wrapper_shape` raises.
        """
        self._databases.enabled(database)
        if capture_instance is None:
            if is_given(column_list) or is_given(update_flag_list):
                raise WrapperListsWithoutInstance
            instances = self.readable(database, self._control.instances.list(database), principal)
        else:
            instances = [self._scripted(database, capture_instance, principal)]
        return [
            function
            for instance in instances
            for function in wrapper_functions(
                instance, wrapper_shape(instance, closed_high_end_point, column_list, update_flag_list)
            )
        ]

    def _scripted(self, database: str, capture_instance: str, principal: str | None) -> CaptureInstance:
        instance = self._visible(database, capture_instance, principal)
        if instance is None:
            raise WrapperInstanceMissing(capture_instance, database)
        return instance

    def _visible(self, database: str, capture_instance: str, principal: str | None) -> CaptureInstance | None:
        """An instance that is there and that the principal may read."""
        instance = self._control.instances.get(database, capture_instance)
        if instance is None or not self._rule.allows(instance, principal):
            return None
        return instance
