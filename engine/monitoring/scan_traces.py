"""Scan sessions as OpenTelemetry traces, sent to an OTLP/HTTP endpoint. Imported only where one is set.

A session becomes a trace when it has ended: a span for the session, one below it for each phase. Scans
themselves only note times. Neither SQL nor rows nor texts of errors, which may quote values, are in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from importlib.metadata import version
from itertools import pairwise

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context
from opentelemetry.util.types import AttributeValue

from engine.model.scan_report import PhaseStart, ScanReport

SEND_EVERY = 2.0
"""Seconds that spans are collected before they are sent."""
SECONDS_TO_SEND = 2.0
"""How long sending may take, and the agent's end may wait for it."""
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class ScanTraces:
    """Sends traces from a thread of its own. Where the endpoint is away they are dropped: capture goes on."""

    def __init__(self, endpoint: str) -> None:
        """``endpoint``: the whole URL, as ``http://localhost:4318/v1/traces``."""
        resource = Resource.create({"service.name": "highwater", "service.version": version("highwater")})
        self._provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(endpoint=endpoint, timeout=SECONDS_TO_SEND)
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, schedule_delay_millis=SEND_EVERY * 1000)
        )
        self._tracer = self._provider.get_tracer("highwater")

    def close(self) -> None:
        """Sends what is left."""
        self._provider.shutdown()

    def told(self, report: ScanReport) -> None:
        """A session has ended."""
        # A session ends at its publication, a moment before its last phase; and clocks are set back.
        end = max(report.session.end_time or _EPOCH, *(phase.at for phase in report.phases))
        attributes = _attributes(report)
        span = self._tracer.start_span(
            "cdc scan", start_time=_nanoseconds(report.phases[0].at), attributes=attributes
        )
        if report.error_number is not None:
            span.set_status(Status(StatusCode.ERROR))
        for phase, following in pairwise([*report.phases, PhaseStart(report.phases[-1].phase, end)]):
            self._phase(span, phase, max(phase.at, following.at), attributes)
        span.end(_nanoseconds(end))

    def _phase(
        self, session: Span, phase: PhaseStart, until: datetime, attributes: Mapping[str, AttributeValue]
    ) -> None:
        of_both = ("db.namespace", "highwater.session_id")
        span = self._tracer.start_span(
            f"cdc scan {phase.phase.name.lower().replace('_', ' ')}",
            context=set_span_in_context(session),
            start_time=_nanoseconds(phase.at),
            attributes={
                "highwater.phase_number": int(phase.phase),
                **{name: attributes[name] for name in of_both},
            },
        )
        span.end(_nanoseconds(until))


def _attributes(report: ScanReport) -> dict[str, AttributeValue]:
    session = report.session
    found: dict[str, AttributeValue] = {
        "db.namespace": report.database,
        "highwater.session_id": session.session_id,
        "highwater.start_lsn": session.start_lsn,
        "highwater.end_lsn": session.end_lsn or session.current_lsn,
        "highwater.last_commit_lsn": session.last_commit_lsn,
        "highwater.tran_count": session.tran_count,
        "highwater.command_count": session.command_count,
        "highwater.log_record_count": session.log_record_count,
        "highwater.schema_change_count": session.schema_change_count,
        "highwater.latency_seconds": session.latency,
        "highwater.phases_left_out": report.phases_left_out,
    }
    if report.error_number is not None:
        found["error.type"] = str(report.error_number)
    return found


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
