"""Decides whether work may run without a slot while the service is unreachable.

FALLBACK1  Work passes only if the service fails to answer. A busy service is reachable.
FALLBACK2  With a share, at most ``floor(share × last known limit)`` pass at a time per host, for ``seconds`` after the
    first failure.
FALLBACK3  Every pass is counted, and given back once.

State      enters when                                    acquires
reachable  any acquire is answered                        call the service
away       an acquire failed ``FAILURES_TO_LEAVE`` times  pass at once; one per ``PROBE_EVERY`` calls the service
"""

from __future__ import annotations

import math
from typing import Callable, Dict, Optional

from ._options import OnFailure, Share
from ._timing import now

FAILURES_TO_LEAVE = 3
PROBE_EVERY = 1.0
#: The number of hosts whose limit is kept. Beyond it, all limits are dropped and learned again.
MOST_HOSTS = 1_000

#: Gives a pass back.
Pass = Callable[[], None]


class FailurePolicy:
    def __init__(self, policy: OnFailure) -> None:
        self.unguarded = 0
        self._policy = policy
        self._limits: Dict[str, int] = {}
        self._passed: Dict[str, int] = {}
        self._failing_since: Optional[float] = None
        self._is_away = False
        self._probe_at = 0.0

    def learn(self, hostname: str, limit: int) -> None:
        """Store the limit of the host, as the service reports it."""
        if len(self._limits) > MOST_HOSTS:
            self._limits.clear()
        self._limits[hostname] = limit

    def answered(self) -> None:
        self._failing_since = None
        self._is_away = False

    def failed(self, failures: float) -> None:
        """``failures`` is the number of failures of this acquire in a row."""
        if self._failing_since is None:
            self._failing_since = now()
        self._is_away = self._is_away or failures >= FAILURES_TO_LEAVE
        self._probe_at = now() + PROBE_EVERY

    def take(self, hostname: str, probe: float = 0.0) -> Optional[Pass]:
        """Return a pass if one is available.

        With ``probe``, before the first call, one caller at a time calls the service for this time.
        """
        if not self._is_away or self._passed.get(hostname, 0) >= self._allowed(hostname):
            return None
        if probe and now() >= self._probe_at:
            self._probe_at = now() + probe
            return None
        self._passed[hostname] = self._passed.get(hostname, 0) + 1
        self.unguarded += 1
        return lambda: self._give_back(hostname)

    def _give_back(self, hostname: str) -> None:
        self._passed[hostname] -= 1
        if not self._passed[hostname]:
            del self._passed[hostname]

    def _allowed(self, hostname: str) -> float:
        if self._policy == "open":
            return math.inf
        since = self._failing_since
        if not isinstance(self._policy, Share) or since is None or now() - since >= self._policy.seconds:
            return 0
        # 0.29 × 100 is slightly below 29 in binary.
        return math.floor(self._policy.share * self._limits.get(hostname, 0) + 1e-9)
