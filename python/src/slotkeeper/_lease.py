"""The slot that a user holds: a lease of the service, renewed while it is held. All methods run in the background.

CLEASE1  A slot ends once: released, or lost. After that it is not renewed.
CLEASE2  It is lost no later than the lease ends by the monotonic clock of this machine, or when the service reports
    that it ended. A lease counts from the sending of the call that was answered with it, so it never ends later than at the
    service.
CLEASE3  A renewal that fails is repeated until then.
"""

from __future__ import annotations

import asyncio
import time
from typing import Callable, Mapping, Optional

from ._background import spawn
from ._deliveries import deliver
from ._errors import CallFailure, RefusedError, SlotLostError
from ._timing import backoff, now
from ._transport import Answer, Transport
from ._wait import RENEW_AT, lease_of

#: Renewals are at least this far apart, however short the lease is.
LEAST_RENEWAL = 0.025
RELEASE_PATIENCE = 1.0


class Lease:
    """Without an answer, the work runs without a slot."""

    def __init__(
        self, transport: Transport, hostname: str, on_end: Callable[[], object], answer: Optional[Answer] = None
    ) -> None:
        self.hostname = hostname
        self.guarded = answer is not None
        self.token: str = answer.reply["slotToken"] if answer else ""
        self.fence: int = int(answer.reply["fence"]) if answer else 0
        self.charged: Mapping[str, float] = answer.reply.get("charged", {}) if answer else {}
        self.released = False
        self.lost: Optional[SlotLostError] = None
        #: Called in the background when the slot is lost.
        self.on_lost: Optional[Callable[[], object]] = None
        self._transport = transport
        self._on_end = on_end
        self._held_since = now()
        self._ends_at = 0.0
        self._renew_at = 0.0
        self._loss: Optional[asyncio.TimerHandle] = None
        self._renewals: Optional[asyncio.Task[None]] = None
        if answer:
            self._leased(answer)
            self._renewals = asyncio.get_running_loop().create_task(self._keep())

    async def release(self, report: Mapping[str, object]) -> bool:
        """``False`` if the slot had already ended. Returns after ``RELEASE_PATIENCE`` at the latest."""
        if self.released:
            return False
        self._end()
        if self.guarded:
            body = {"slotToken": self.token, "now": time.time_ns() // 1_000_000, **report}
            delivery = spawn(deliver(self._transport, "release", body, self._ends_at))
            await asyncio.wait({delivery}, timeout=RELEASE_PATIENCE)
        return True

    def _leased(self, answer: Answer) -> None:
        lease = lease_of(answer.reply)
        self._ends_at = answer.sent_at + lease
        self._renew_at = max(now() + LEAST_RENEWAL, answer.sent_at + lease * RENEW_AT)
        if self._loss:
            self._loss.cancel()
        loop = asyncio.get_running_loop()
        self._loss = loop.call_later(max(0.0, self._ends_at - now()), self._lose, "its lease ended")

    async def _keep(self) -> None:
        failures = 0
        while not self.released:
            await asyncio.sleep(backoff(failures) if failures else max(0.0, self._renew_at - now()))
            failures = 0 if await self._renew() else failures + 1

    async def _renew(self) -> bool:
        try:
            answer = await self._transport.call("renew", {"slotToken": self.token})
        except (CallFailure, RefusedError) as error:
            if isinstance(error, RefusedError) and error.status == 410:
                self._lose("it was taken back")
            return False
        if not self.released:
            self._leased(answer)
        return now() < self._ends_at

    def _lose(self, reason: str) -> None:
        if self.released:
            return
        self.lost = SlotLostError(self.hostname, now() - self._held_since, reason)
        self._end()
        if self.on_lost:
            self.on_lost()

    def _end(self) -> None:
        """CLEASE1."""
        self.released = True
        if self._loss:
            self._loss.cancel()
        if self._renewals:
            self._renewals.cancel()
        self._on_end()
