"""Log sequence numbers as the original shows them: 10 bytes, compared bytewise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

_HEX = re.compile(r"0x([0-9a-f]{20})", re.IGNORECASE)
_GROUPS = re.compile(r"([0-9a-f]{1,8}):([0-9a-f]{1,8}):([0-9a-f]{1,4})", re.IGNORECASE)


@dataclass(frozen=True, order=True, slots=True)
class Lsn:
    """A log sequence number: 10 bytes, ordered bytewise; ``str()`` gives ``0x`` + 20 upper-case digits.

    The first 8 bytes are the position in the source's log (for PostgreSQL the WAL position),
    the last 2 a counter that tells changes of one log record apart.
    """

    raw: bytes

    ZERO: ClassVar[Lsn]
    MAX: ClassVar[Lsn]

    def __post_init__(self) -> None:
        if len(self.raw) != 10:
            raise ValueError(f"an LSN has 10 bytes, not {len(self.raw)}")

    @classmethod
    def at(cls, position: int, counter: int = 0) -> Lsn:
        """The LSN of a log position (0 … 2**64-1) and a counter (0 … 65535)."""
        return cls(position.to_bytes(8, "big") + counter.to_bytes(2, "big"))

    @classmethod
    def parse(cls, text: str) -> Lsn:
        """From ``0x`` + 20 hex digits or the text form ``8:8:4``. ValueError for anything else."""
        if match := _HEX.fullmatch(text.strip()):
            return cls(bytes.fromhex(match[1]))
        if match := _GROUPS.fullmatch(text.strip()):
            high, low, counter = (int(group, 16) for group in match.groups())
            return cls.at(high << 32 | low, counter)
        raise ValueError(f"'{text}' is not an LSN: write 0x and 20 hex digits, or 8:8:4 hex digits")

    @property
    def position(self) -> int:
        """The position in the source's log."""
        return int.from_bytes(self.raw[:8], "big")

    @property
    def counter(self) -> int:
        """The place among the changes of one log record."""
        return int.from_bytes(self.raw[8:], "big")

    @property
    def groups(self) -> str:
        """The text form of the monitoring views: ``8:8:4`` hex digits (nvarchar(23))."""
        digits = self.raw.hex()
        return f"{digits[:8]}:{digits[8:16]}:{digits[16:]}"

    def next(self) -> Lsn:
        """The smallest LSN above this one (sys.fn_cdc_increment_lsn). OverflowError at the top."""
        return Lsn((int.from_bytes(self.raw, "big") + 1).to_bytes(10, "big"))

    def previous(self) -> Lsn:
        """The largest LSN below this one (sys.fn_cdc_decrement_lsn). OverflowError at zero."""
        return Lsn((int.from_bytes(self.raw, "big") - 1).to_bytes(10, "big"))

    def __str__(self) -> str:
        return "0x" + self.raw.hex().upper()


Lsn.ZERO = Lsn(bytes(10))
Lsn.MAX = Lsn(b"\xff" * 10)
