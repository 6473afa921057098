"""What is known of the tour's table: what its lessons check themselves by. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.model.capture_instance import CaptureInstance
from engine.model.change import OPERATION, START_LSN
from engine.model.job import AnyJob, Job, JobState, is_capture
from engine.model.lsn import Lsn

SCHEMA, TABLE = "dbo", "LearnAccount"
FIRST, SECOND = "dbo_LearnAccount", "dbo_LearnAccount_v2"
DELETE, INSERT, AFTER = 1, 2, 4

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the tour's table. ``rows``: change rows by instance, as published."""

    instances: Mapping[str, CaptureInstance]
    high: Lsn | None
    job: Job | None
    rows: Mapping[str, Sequence[Row]]

    @property
    def first(self) -> Sequence[Row]:
        """Change rows of the first instance."""
        return self.rows.get(FIRST, ())

    def is_established(self, name: str) -> bool:
        """Whether the instance has a validity interval."""
        instance = self.instances.get(name)
        start = None if instance is None else instance.start_lsn
        return start is not None and self.high is not None and start <= self.high

    def has(self, operation: int, account: int) -> bool:
        """Whether the first instance has such a row."""
        return any(row[OPERATION] == operation and row["AccountID"] == account for row in self.first)

    def runs_with(self, parameters: Mapping[str, int]) -> bool:
        """Whether capture runs, and with these."""
        job = self.job
        if job is None or job.state is not JobState.RUNNING or job.running is None:
            return False
        return all(getattr(job.running, name) == value for name, value in parameters.items())

    @property
    def has_transfer(self) -> bool:
        """Whether one commit updated several rows."""
        commits = Counter(row[START_LSN] for row in self.first if row[OPERATION] == AFTER)
        return any(count > 1 for count in commits.values())

    @property
    def is_cleaned_up(self) -> bool:
        """Whether the first rows are gone, and newer ones are kept."""
        return self.has(INSERT, 8) and not self.has(INSERT, 1)

    @property
    def has_city(self) -> bool:
        """Whether the second instance has a value in the column that the first lacks."""
        return any(row[OPERATION] == AFTER and row.get("City") for row in self.rows.get(SECOND, ()))

    @property
    def is_stopped(self) -> bool:
        """Whether the capture job has stopped."""
        return self.job is not None and self.job.state is JobState.STOPPED


def facts(
    instances: Sequence[CaptureInstance],
    high: Lsn | None,
    jobs: Sequence[AnyJob],
    rows: Mapping[str, Sequence[Row]],
) -> Facts:
    """Of a database. instances and jobs: all it has."""
    mine = {each.capture_instance: each for each in instances if is_ours(each)}
    return Facts(mine, high, next((job for job in jobs if is_capture(job)), None), rows)


def is_ours(instance: CaptureInstance) -> bool:
    """Whether an instance captures the tour's table."""
    return (instance.source_schema, instance.source_table) == (SCHEMA, TABLE)
