"""A thousand requests to start and stop from ten clients, each a connection pool of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from engine.control import ControlDatabase
from engine.model.job import CaptureParameters, CleanupParameters, JobType

CLIENTS, REQUESTS = 10, 100


def test_the_last_word_of_a_thousand_holds_and_nothing_else_has_changed(control):
    control.jobs.add("hr", CaptureParameters(), wanted=False)
    control.jobs.add("hr", CleanupParameters(), wanted=False)
    before = {job.job_type: (job.job_id, job.configured) for job in control.jobs.list("hr")}
    dsn = control._connections._dsn

    def ask(client: int) -> None:
        with closing(ControlDatabase.open(dsn)) as mine:
            for number in range(REQUESTS):
                kind = JobType.CAPTURE if number % 4 < 2 else JobType.CLEANUP
                if (number + client) % 2:
                    mine.jobs.want("hr", kind, True)
                elif kind is JobType.CLEANUP:
                    mine.jobs.stop("hr", kind)
                else:
                    mine.jobs.want("hr", kind, False)

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(ask, range(CLIENTS)))
    control.jobs.want("hr", JobType.CAPTURE, True)
    control.jobs.stop("hr", JobType.CLEANUP)
    capture, cleanup = control.jobs.list("hr")
    assert (capture.wanted, cleanup.wanted) == (True, False)
    assert before == {job.job_type: (job.job_id, job.configured) for job in (capture, cleanup)}
