"""The shape of a source table at one place of the log: its columns as they are called and typed there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShapeColumn:
    """A column of a source table, captured or not.

    ``column_id`` is the source's own number, which a column keeps through renaming and which no other
    column of the table ever gets. Types as in CapturedColumn. ``is_logged`` is False for a column that
    the log never holds (generated ones, as the source has it). ``type_id`` is what stays of a type that is
    renamed, empty where it is not known.
    """

    column_id: int
    name: str
    source_type: str
    lake_type: str
    is_logged: bool = True
    type_id: str = ""

    def is_typed_as(self, source_type: str, lake_type: str, type_id: str) -> bool:
        """Whether its type is this one, whatever it is called now."""
        if self.type_id and type_id:
            return (self.type_id, self.lake_type) == (type_id, lake_type)
        return self.source_type == source_type
