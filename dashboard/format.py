"""Values as people read them: LSNs, times, durations, sizes, NULL. Pure; every text carries its unit."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from engine.model.lsn import Lsn

NULL = "NULL"
NOT_ESTABLISHED = "not established yet"
DASH = "—"


class Zone(StrEnum):
    """How times are shown: in UTC, in the browser's zone, or as an age."""

    UTC = "UTC"
    LOCAL = "Local"
    RELATIVE = "Relative"


def zone_info(name: str | None) -> tzinfo:
    """The time zone of that IANA name; UTC when the browser names none that we know."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def lsn_short(lsn: Lsn | str | None) -> str:
    """``..01C0:0003``, for dense tables; always shown beside its commit time."""
    if lsn is None:
        return NOT_ESTABLISHED
    groups = (lsn if isinstance(lsn, Lsn) else Lsn.parse(lsn)).groups.upper()
    return f"..{groups[13:17]}:{groups[18:]}"


def lsn_long(lsn: Lsn | str | None) -> str:
    """``0x`` and 20 upper-case digits, whatever form it came in."""
    if lsn is None:
        return NOT_ESTABLISHED
    return str(lsn if isinstance(lsn, Lsn) else Lsn.parse(lsn))


def duration(seconds: float) -> str:
    """``850 ms``, ``12.4 s``, ``3 m 05 s``, ``2 h 10 m``, ``3 d 4 h``."""
    sign = "-" if seconds < 0 else ""
    seconds = abs(seconds)
    if seconds < 0.9995:
        return f"{sign}{round(seconds * 1000)} ms"
    if seconds < 59.95:
        return f"{sign}{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{sign}{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{sign}{hours} h {minutes:02d} m"
    days, hours = divmod(hours, 24)
    return f"{sign}{days} d {hours} h"


def ago(moment: datetime | None, now: datetime) -> str:
    """``12 s ago``; ``just now`` below a second; ``never`` for None."""
    if moment is None:
        return "never"
    seconds = (now - moment).total_seconds()
    if seconds < -1:
        return f"in {duration(-round(seconds))}"
    if seconds < 1:
        return "just now"
    return f"{duration(float(int(seconds)))} ago"


def moment(value: datetime | None, zone: tzinfo = UTC) -> str:
    """``2026-11-21 09:14:03.120 UTC``; the offset where the zone has no short name."""
    if value is None:
        return NULL
    local = value.astimezone(zone)
    return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03d} {zone_name(local)}"


def moment_and_age(value: datetime | None, now: datetime, zone: tzinfo = UTC) -> str:
    """``2026-11-21 09:14:03.120 UTC (12 s ago)``."""
    return NULL if value is None else f"{moment(value, zone)} ({ago(value, now)})"


def clock(value: datetime | None, now: datetime, zone: Zone, local: tzinfo) -> str:
    """A time for a table cell in the zone on screen: time of day today, with its date before."""
    if value is None:
        return DASH
    if zone is Zone.RELATIVE:
        return ago(value, now)
    shown = value.astimezone(UTC if zone is Zone.UTC else local)
    today = now.astimezone(shown.tzinfo).date()
    text = f"{shown:%H:%M:%S}.{shown.microsecond // 1000:03d}"
    return text if shown.date() == today else f"{shown:%Y-%m-%d} {text}"


def zone_name(value: datetime) -> str:
    """``UTC``, ``CET`` or ``+05:30``."""
    name = value.tzname() or ""
    return name if name.isalpha() else value.isoformat()[-6:]


def number(value: float, digits: int = 0) -> str:
    """``1,234,567``; at most ``digits`` decimals, none that are zero."""
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text


def rate(value: float | None, unit: str) -> str:
    """``412 tran/s``, ``3.5 cmd/s``; a dash where there is no rate."""
    if value is None:
        return DASH
    return f"{number(value, 0 if value >= 100 else 1)} {unit}"


def share(part: float) -> str:
    """``43%``; what is there is not called nothing: ``<1%``."""
    return "<1%" if 0 < part < 0.005 else f"{part:.0%}"


def size(count: int | None) -> str:
    """Bytes in the largest binary unit that keeps at least 1: ``16 MiB``."""
    if count is None:
        return DASH
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < 1024:
            return f"{number(amount, 0 if unit == 'B' or amount >= 100 else 1)} {unit}"
        amount /= 1024
    return f"{number(amount, 1)} TiB"


def plural(count: int, noun: str, many: str | None = None) -> str:
    """``1 table``, ``3 tables``."""
    return f"{number(count)} {noun if count == 1 else many or noun + 's'}"


def binary(value: bytes | bytearray | memoryview | None) -> str:
    """``0x`` and upper-case hex, as the command line prints it."""
    return NULL if value is None else "0x" + bytes(value).hex().upper()


def cell(value: object) -> str:
    """A column's value as text; NULL for None. Exact: numbers are not grouped, times not converted."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return binary(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, list):
        return f"[{', '.join(cell(element) for element in value)}]"
    return str(value)


def retention(minutes: int) -> str:
    """``30 min``, ``1,440 min (24 h 00 m)``, ``4,320 min (3 d)``."""
    text = f"{number(minutes)} min"
    if minutes < 60:
        return text
    return f"{text} ({duration(minutes * 60) if minutes < 2880 else f'{number(minutes / 1440, 1)} d'})"


_AGE = re.compile(r"now\s*(?:-\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d))?", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_moment(text: str, now: datetime, zone: tzinfo = UTC) -> datetime:
    """A typed time: ``2026-11-21 09:14:03.120``, ISO with an offset, ``now`` or ``now-15m``.

    Without an offset it is in ``zone``. Returns UTC. ValueError says which forms there are.
    """
    stripped = text.strip()
    if match := _AGE.fullmatch(stripped):
        amount, unit = match.groups()
        return now - timedelta(seconds=float(amount) * _UNITS[unit.lower()]) if amount else now
    try:
        value = datetime.fromisoformat(
            stripped.removesuffix(" UTC") + ("+00:00" if stripped.endswith(" UTC") else "")
        )
    except ValueError:
        raise ValueError(f"'{text}' is not a time: write 2026-11-21 09:14:03.120 or now-15m") from None
    return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)
