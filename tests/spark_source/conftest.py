"""Questions over a real source: the workbench of the capture tests."""

from tests.capture.conftest import new_workbench, workbench

__all__ = ["new_workbench", "workbench"]
