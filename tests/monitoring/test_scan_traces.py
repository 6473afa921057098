"""Traces of scans, as a real OTLP/HTTP receiver gets them."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from engine.agent.__main__ import tracing
from engine.errors import CapturedColumnChanged
from engine.model.scan_report import PhaseStart, ScanReport, tell_nobody
from engine.model.scan_session import ScanPhase
from engine.settings import Settings
from tests.capture.conftest import new_workbench, workbench
from tests.monitoring.sessions import a_session

__all__ = ["new_workbench", "workbench"]

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECRET = "a captured value"


class Receiver:
    """Keeps the spans that were sent to it."""

    def __init__(self) -> None:
        self.spans = []
        self.services = set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()
                self.wfile.write(ExportTraceServiceResponse().SerializeToString())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    def take(self, request) -> None:
        for resource in request.resource_spans:
            for attribute in resource.resource.attributes:
                if attribute.key == "service.name":
                    self.services.add(attribute.value.string_value)
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)

    def trace(self):
        """The session's span, and those of its phases."""
        [session] = [span for span in self.spans if not span.parent_span_id]
        phases = [span for span in self.spans if span.parent_span_id]
        assert {span.parent_span_id for span in phases} == {session.span_id}
        return session, sorted(phases, key=lambda span: span.start_time_unix_nano)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    thread = Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def settings(receiver, tmp_path):
    return Settings(home=tmp_path, traces_endpoint=receiver.endpoint)


def attributes(span):
    return {
        each.key: each.value.int_value if each.value.HasField("int_value") else each.value.string_value
        for each in span.attributes
    }


def at(seconds):
    return NOON + timedelta(seconds=seconds)


PHASES = (
    PhaseStart(ScanPhase.READING_CONFIGURATION, at(0)),
    PhaseStart(ScanPhase.FIRST_SCAN, at(1)),
    PhaseStart(ScanPhase.WRITING_ROWS, at(3)),
    PhaseStart(ScanPhase.DONE, at(6)),
)


def test_a_session_is_a_trace_with_a_span_for_each_phase(receiver, settings):
    session = a_session(7, start_time=at(0), end_time=at(6), tran_count=3, command_count=30)
    with tracing(settings) as told:
        told(ScanReport("hr", session, PHASES))
    span, phases = receiver.trace()
    assert receiver.services == {"highwater"}
    assert (span.name, span.end_time_unix_nano - span.start_time_unix_nano) == ("cdc scan", 6 * 10**9)
    assert span.start_time_unix_nano == int(NOON.timestamp()) * 10**9
    assert (
        attributes(span).items()
        >= {
            "db.namespace": "hr",
            "highwater.session_id": 7,
            "highwater.tran_count": 3,
            "highwater.command_count": 30,
            "highwater.start_lsn": session.start_lsn,
            "highwater.end_lsn": session.end_lsn,
        }.items()
    )
    assert [each.name for each in phases] == [
        "cdc scan reading configuration",
        "cdc scan first scan",
        "cdc scan writing rows",
        "cdc scan done",
    ]
    lengths = [(each.end_time_unix_nano - each.start_time_unix_nano) // 10**9 for each in phases]
    assert lengths == [1, 2, 3, 0]
    assert {each.trace_id for each in phases} == {span.trace_id}


@pytest.mark.parametrize("starts", [(0, 1, 3, 6), (0, 1, 3, 3), (9, 1, 8, 2)])
def test_no_span_ends_before_it_begins(receiver, settings, starts):
    """Sessions end at their publication, before the phase DONE begins; and clocks are set back."""
    phases = tuple(replace(phase, at=at(start)) for phase, start in zip(PHASES, starts, strict=True))
    session = a_session(7, start_time=at(starts[0]), end_time=at(2))
    with tracing(settings) as told:
        told(ScanReport("hr", session, phases))
    span, parts = receiver.trace()
    assert span.end_time_unix_nano == int(at(max(starts)).timestamp()) * 10**9
    assert all(part.start_time_unix_nano <= part.end_time_unix_nano for part in (span, *parts))
    assert all(part.end_time_unix_nano <= span.end_time_unix_nano for part in parts)


def test_a_failed_session_has_its_error_number(receiver, settings):
    session = a_session(7, end_lsn=None)
    with tracing(settings) as told:
        told(ScanReport("hr", session, PHASES, error_number=22976))
    span, _ = receiver.trace()
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert attributes(span)["error.type"] == "22976"


def test_an_endpoint_that_is_away_holds_up_nobody(tmp_path, receiver):
    receiver.server.server_close()
    with tracing(Settings(home=tmp_path, traces_endpoint=receiver.endpoint)) as told:
        told(ScanReport("hr", a_session(1), PHASES))


def test_it_is_off_unless_asked_for(tmp_path):
    with tracing(Settings(home=tmp_path)) as told:
        assert told is tell_nobody


def test_without_the_settings_nothing_of_it_is_loaded():
    code = (
        "import engine.agent.__main__, sys;"
        "print([m for m in sys.modules if m.split('.')[0] in ('opentelemetry', 'prometheus_client')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("endpoint", ["localhost:4318", "ftp://host/v1/traces", "http://host"])
def test_an_endpoint_is_a_whole_url(tmp_path, endpoint):
    with pytest.raises(ValueError, match="traces_endpoint"):
        Settings(home=tmp_path, traces_endpoint=endpoint)


def test_real_scans_are_traced_without_sql_or_values(workbench, receiver, settings):
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    workbench.enable("t")
    scan = workbench.scan()
    workbench.drain(scan)
    with tracing(settings) as told:
        scan._told_of = told
        workbench.sql(f"INSERT INTO t VALUES (1, '{SECRET}'), (2, 'x')")
        session = workbench.drain(scan)
        workbench.drain(scan)
    span, phases = receiver.trace()
    found = attributes(span)
    assert (found["highwater.command_count"], found["highwater.session_id"]) == (2, session.session_id)
    assert found["highwater.last_commit_lsn"] == session.last_commit_lsn
    names = [each.name.removeprefix("cdc scan ") for each in phases]
    assert names[0] == "reading configuration"
    assert {"first scan", "second scan", "building rows", "writing rows", "last scan"} <= set(names)
    assert names[-1] == "done"
    receiver.spans.clear()
    with tracing(settings) as told:
        scan._told_of = told
        workbench.sql("ALTER TABLE t ALTER name TYPE int USING length(name)")
        with pytest.raises(CapturedColumnChanged, match=SECRET):
            workbench.drain(scan)
    span, _ = receiver.trace()
    assert attributes(span)["error.type"] == "22976"
    assert SECRET not in str(receiver.spans)
    assert "INSERT" not in str(receiver.spans)
