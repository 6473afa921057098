"""Update masks: one bit for each captured column, ordinal 1 the lowest bit of the last byte."""

from __future__ import annotations

from collections.abc import Iterable


def mask_width(columns: int) -> int:
    """Bytes that a mask over ``columns`` captured columns has."""
    return (columns + 7) // 8


def full_mask(columns: int) -> bytes:
    """All defined bits set: the mask of a delete or an insert (reference/functions.md, 1.1)."""
    return ((1 << columns) - 1).to_bytes(mask_width(columns), "big")


def mask_of(ordinals: Iterable[int], columns: int) -> bytes:
    """The mask with the bits of these 1-based ordinals set. ValueError outside 1 … ``columns``."""
    bits = 0
    for ordinal in ordinals:
        if not 1 <= ordinal <= columns:
            raise ValueError(f"ordinal {ordinal} is not within 1 … {columns}")
        bits |= 1 << (ordinal - 1)
    return bits.to_bytes(mask_width(columns), "big")


def is_bit_set(position: int, mask: bytes | None) -> bool:
    """Whether that ordinal's bit is set (sys.fn_cdc_is_bit_set); False for NULL or beyond the mask.

    NULL and out-of-range positions are not documented; False is what a filter on the bit expects.
    """
    if mask is None or not 1 <= position <= len(mask) * 8:
        return False
    return bool(int.from_bytes(mask, "big") >> (position - 1) & 1)


def ordinals_of(mask: bytes | None) -> tuple[int, ...]:
    """The 1-based ordinals whose bits are set, ascending; none for NULL."""
    if mask is None:
        return ()
    bits = int.from_bytes(mask, "big")
    return tuple(n + 1 for n in range(bits.bit_length()) if bits >> n & 1)
