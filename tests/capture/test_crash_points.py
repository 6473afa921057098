import subprocess
import sys

import pytest

from engine.capture.crash_points import VARIABLE, CrashPoint, CrashPoints

PROGRAM = """
import os
from engine.capture.crash_points import CrashPoint, CrashPoints
points = CrashPoints.from_environment(os.environ)
for passage in range(1, 4):
    points.reach(CrashPoint.AFTER_READING)
    points.reach(CrashPoint.BEFORE_PUBLISHING)
    print(passage, flush=True)
"""


def run(asked):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env={VARIABLE: asked}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("asked", "code", "passages"),
    [("", 0, "1\n2\n3\n"), ("before_publishing", -9, ""), ("before_publishing:3", -9, "1\n2\n")],
)
def test_the_process_is_killed_at_the_passage_asked_for(asked, code, passages):
    done = run(asked)
    assert (done.returncode, done.stdout) == (code, passages), done.stderr


def test_a_name_that_is_no_crash_point_is_refused():
    with pytest.raises(ValueError, match="nowhere"):
        CrashPoints.from_environment({VARIABLE: "nowhere"})


def test_without_a_wish_nothing_happens():
    CrashPoints().reach(CrashPoint.AFTER_PUBLISHING)
