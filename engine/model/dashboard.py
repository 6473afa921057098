"""What holds for every viewer of the dashboard."""

from __future__ import annotations

from dataclasses import dataclass

ZONES = ("UTC", "Local", "Relative")


@dataclass(frozen=True, slots=True)
class DashboardSettings:
    """``exports``: whether change data may be downloaded; ``zone``: of ZONES, until a viewer chooses one."""

    exports: bool = True
    zone: str = "UTC"
