"""The demo: a small company of our own data, and a workload that keeps it busy."""

from engine.demo.installation import has_company, install
from engine.demo.runner import Summary, run

__all__ = ["Summary", "has_company", "install", "run"]
