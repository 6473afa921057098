"""Whether the agent has been away for long enough to be told of. Pure: it gets the looks with their times."""

from __future__ import annotations

PATIENCE_SECONDS = 60.0
"""An agent that died is started again within seconds: so long nobody is called."""
STEADY_SECONDS = 30.0
"""An agent that stayed for so long is back; one that dies again before is not."""


class AgentPresence:
    """Looks at the agent, one after the other; ``at`` is seconds of a clock that never goes back."""

    def __init__(self) -> None:
        self._away_since: float | None = None
        self._back_since: float | None = None

    def look(self, is_alive: bool, at: float) -> bool | None:
        """True: the agent is to be told of as not running. False: it runs. None: it is too early to say."""
        if not is_alive:
            self._back_since = None
            self._away_since = at if self._away_since is None else self._away_since
            return True if at - self._away_since >= PATIENCE_SECONDS else None
        self._back_since = at if self._back_since is None else self._back_since
        if at - self._back_since < STEADY_SECONDS:
            return None
        self._away_since = None
        return False
