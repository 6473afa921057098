"""What a source committed, learnt from a slot of its own and decoded byte by byte: no code of the engine."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg

Image = dict[str, str | None]


@dataclass(frozen=True)
class Change:
    """One change of one row, values as text; ``old`` is None for an insert, ``new`` for a delete."""

    table: str
    position: int
    old: Image | None
    new: Image | None


@dataclass
class Transaction:
    commit: int
    changes: list[Change] = field(default_factory=list)


class SourceReplay:
    """A second slot on the publication, made before the load and never moved on."""

    def __init__(self, dsn: str, publication: str = "highwater") -> None:
        self._dsn = dsn
        self._publication = publication
        with psycopg.connect(dsn, autocommit=True) as connection:
            self._slot = f"replay_{connection.info.dbname}"
            connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [self._slot])

    def transactions(self) -> list[Transaction]:
        """Everything since the slot was made, in commit order."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            rows = connection.execute(
                "SELECT lsn - '0/0', data FROM pg_logical_slot_peek_binary_changes("
                "%s, NULL, NULL, 'proto_version', '1', 'publication_names', %s)",
                [self._slot, self._publication],
            ).fetchall()
        return list(_transactions(rows))


def _transactions(rows: list[tuple[Any, ...]]) -> Iterator[Transaction]:
    relations: dict[int, tuple[str, list[str]]] = {}
    transaction = Transaction(0)
    for position, data in rows:
        kind = chr(data[0])
        if kind == "B":
            transaction = Transaction(struct.unpack_from(">Q", data, 1)[0])
        elif kind == "C":
            yield transaction
        elif kind == "R":
            oid, relation = _relation(data)
            relations[oid] = relation
        elif kind in "IUD":
            table, columns = relations[struct.unpack_from(">I", data, 1)[0]]
            images = dict(_images(data, columns))
            old, new = images.get("O") or images.get("K"), images.get("N")
            transaction.changes.append(Change(table, int(position), old, new))


def _relation(data: bytes) -> tuple[int, tuple[str, list[str]]]:
    oid = struct.unpack_from(">I", data, 1)[0]
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    count = struct.unpack_from(">H", data, at + 1)[0]
    at += 3
    columns = []
    for _ in range(count):
        name, at = _text(data, at + 1)
        columns.append(name)
        at += 8
    return oid, (f"{schema}.{table}", columns)


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


def _images(data: bytes, columns: list[str]) -> Iterator[tuple[str, Image]]:
    at = 5
    while at < len(data):
        mark, at = chr(data[at]), at + 3
        image: Image = {}
        for column in columns:
            kind, at = chr(data[at]), at + 1
            assert kind in "nt", f"value of kind {kind}: the table lacks REPLICA IDENTITY FULL"
            if kind == "n":
                image[column] = None
                continue
            length = struct.unpack_from(">I", data, at)[0]
            image[column] = data[at + 4 : at + 4 + length].decode()
            at += 4 + length
        yield mark, image
