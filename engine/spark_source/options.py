"""Options of the Spark data source. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Self

from engine.errors import CdcError
from engine.model.lsn import Lsn


class OptionInvalid(CdcError):  # noqa: N818 - named like the errors of engine.errors
    """An option of the data source is missing, unknown or has no such value."""

    number = 50028
    shape = "Option '{0}' of the highwater data source: {1}"


_MODES = ("all", "net")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """``database`` and ``capture_instance`` must be given.

    mode: ``all`` (every change) or ``net``. row_filter: the query function's row filter option. from, to:
    the range; a commit LSN (``0x`` and 20 hex digits), included, or a time in ISO 8601 (UTC without an
    offset): changes committed after ``from`` and up to ``to``. Without: from the low watermark, to the high.
    principal: the role of the source on whose behalf is read. home: the folder with all state;
    HIGHWATER_HOME, else ``var``.
    """

    database: str
    capture_instance: str
    mode: str = "all"
    row_filter: str = "all"
    from_: Lsn | datetime | None = None
    to: Lsn | datetime | None = None
    principal: str | None = None
    home: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """From what Spark hands over: names without regard to case. Raises OptionInvalid."""
        given = {name.lower(): value for name, value in options.items()}
        known = [field.name.rstrip("_") for field in fields(cls)]
        for name in given:
            if name not in known:
                raise OptionInvalid(name, f"there is none of that name. There are {', '.join(known)}.")
        for name in ("database", "capture_instance"):
            if not given.get(name):
                raise OptionInvalid(name, "it must be given.")
        mode = given.get("mode", "all").lower()
        if mode not in _MODES:
            raise OptionInvalid("mode", f"'{mode}' is neither all nor net.")
        return cls(
            database=given["database"],
            capture_instance=given["capture_instance"],
            mode=mode,
            row_filter=given.get("row_filter", "all"),
            from_=_bound("from", given.get("from")),
            to=_bound("to", given.get("to")),
            principal=given.get("principal"),
            home=given.get("home"),
        )

    @property
    def net(self) -> bool:
        """Whether net changes are asked for."""
        return self.mode == "net"


def _bound(name: str, text: str | None) -> Lsn | datetime | None:
    if text is None:
        return None
    try:
        if text.strip().lower().startswith("0x"):
            return Lsn.parse(text.strip())
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise OptionInvalid(
            name, f"'{text}' is neither an LSN (0x and 20 hex digits) nor a time in ISO 8601."
        ) from error
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
