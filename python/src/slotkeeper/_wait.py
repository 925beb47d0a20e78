"""One wait for a slot: a session of the service, from the first call to its end.

WAIT1  It ends within its time by the monotonic clock (plus ``ANSWER`` if the service never answers) and after
    ``max_attempts`` failures in a row: with a grant, a pass of the failure policy, or an error.
WAIT2  It leaves no session behind: if it ends without a grant, the service gets a ``cancel``, in the background.
WAIT3  Repeats are safe: all calls have the same ``requestId``, and later ones have the token of the session. If the
    service no longer knows the session, a new one begins, within the same time.
WAIT4  A call that was answered quickly is followed by a pause, whatever the answer is. A call that the service held is
    not, however long the wait may be.
WAIT5  A grant is used only before the time at which its lease would be renewed, counted from the sending of the call.
    After it, the client polls again: it is unknown whether the service held the call or the answer was late.
"""

from __future__ import annotations

import asyncio
import math
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Union

from ._background import spawn
from ._deliveries import deliver
from ._errors import AcquireTimeoutError, CallFailure, OverloadedError, RefusedError, ThrottledError, UnavailableError
from ._failure_policy import FailurePolicy, Pass
from ._options import Options, Pending
from ._timing import LONGEST_TIMER, backoff, now
from ._transport import Answer, Transport

#: The part of a lease after which it is renewed.
RENEW_AT = 0.6
#: The part of a call's timeout for which the service may hold the call. The rest is for the network.
HELD_PART = 0.75
#: A caller with ``on_pending`` gets its place after this time, not after a whole poll.
FIRST_PLACE = 0.2
#: Calls that are answered more quickly than this are spaced.
QUICK = 0.5
#: How much longer than the wait the first answer may take: without it, it is unknown whether the service is reachable.
ANSWER = 1.0
CANCEL_FOR = 5.0


@dataclass(frozen=True)
class Ask:
    #: For messages and for the failure policy.
    hostname: str
    #: The fields of the first call that are the same in every session of the wait.
    fields: Mapping[str, object]
    max_wait: float
    on_pending: Optional[Callable[[Pending], object]]
    #: Whether the caller has ended the wait. Before Python 3.12, ``wait_for`` may swallow a cancellation.
    is_abandoned: Callable[[], bool]


class Wait:
    def __init__(self, options: Options, transport: Transport, policy: FailurePolicy, ask: Ask) -> None:
        self._options = options
        self._transport = transport
        self._policy = policy
        self._ask = ask
        self._started_at = now()
        self._ends_at = self._started_at + ask.max_wait
        self._first = self._first_call()
        self._query_token: Optional[str] = None
        self._position: Optional[int] = None
        self._failure: Optional[CallFailure] = None
        self._attempts = 0
        self._failures = 0
        # Whether a call was sent and no answer has ended the session.
        self._is_open = False

    async def run(self) -> Union[Answer, Pass]:
        try:
            end: Union[Answer, Pass, None] = self._policy.take(self._ask.hostname, self._options.request_timeout)
            while end is None:
                if self._ask.is_abandoned():
                    raise asyncio.CancelledError
                if not self._left() or self._failures >= self._options.max_attempts:
                    raise self._gave_up() from self._failure
                try:
                    end = await self._step()
                except RefusedError:
                    self._is_open = False
                    self._answered()
                    raise
                except CallFailure as failure:
                    end = await self._failed(failure)
            return end
        finally:
            if self._is_open:
                spawn(self._cancel())

    async def _step(self) -> Optional[Answer]:
        is_poll = self._query_token is not None
        is_short = self._ask.on_pending is not None and not is_poll
        longest = FIRST_PLACE if is_short else self._options.request_timeout * HELD_PART
        held = min(self._left(), longest)
        timeout = min(self._left() + (0.001 if is_poll else ANSWER), self._options.request_timeout)
        body = {"queryToken": self._query_token} if is_poll else {**self._first, "waitMs": math.ceil(held * 1000)}
        self._is_open = True
        self._attempts += 1
        answer = await self._transport.call("acquire", body, timeout)
        self._answered()
        reply = answer.reply
        if reply["result"] == "granted" and now() - answer.sent_at < lease_of(reply) * RENEW_AT:
            self._is_open = False
            return answer
        self._end_session(reply)
        if reply["result"] == "pending":
            self._report(reply)
        # WAIT4.
        usual = self._options.max_wait / self._options.max_attempts
        space = min(QUICK, held * self._attempts if is_short else usual)
        await self._pause(max(0.0, answer.retry_after or 0.0, answer.sent_at + space - now()))
        return None

    def _end_session(self, reply: Dict[str, Any]) -> None:
        """Raise if the reply is the end of the wait. After any other end of the session, a new one begins."""
        hostname = self._ask.hostname
        result = reply["result"]
        self._is_open = result in ("pending", "granted")
        self._query_token = reply["queryToken"] if self._is_open else None
        if result == "overloaded":
            raise OverloadedError(hostname, float(reply["retryAfter"]))
        if result == "throttled":
            retry_after = float(min(reply["throttleRetryAfter"], LONGEST_TIMER))
            raise ThrottledError(hostname, int(reply["throttleCode"]), retry_after, reply["reason"])
        if result == "timeout":
            if reply["reason"] == "deadline":
                raise self._gave_up()
            # The service forgot the session after a restart, or because no poll came for a long time: ask again.
            self._first = self._first_call()

    def _report(self, reply: Dict[str, Any]) -> None:
        self._position = int(reply["position"])
        if self._ask.on_pending is None:
            return
        estimated = reply.get("estimatedWaitMs")
        wait = None if estimated is None else estimated / 1000
        try:
            # Not the token: it is a secret, and callers log what they get.
            self._ask.on_pending(Pending(self._position, int(reply["waiters"]), wait, reply.get("blockedBy")))
        except Exception:  # An error of a hook must not end the wait.
            pass

    async def _failed(self, failure: CallFailure) -> Optional[Pass]:
        # A poll that our own deadline ended is not a failure of the service if it has answered so far.
        if not self._left() and self._query_token and self._failure is None:
            return None
        self._failure = failure
        self._failures += 1
        if failure.retry_after:
            self._policy.answered()
        else:
            self._policy.failed(self._failures if self._left() else math.inf)
        granted = self._policy.take(self._ask.hostname)
        if granted is None:
            await self._pause(backoff(self._failures, failure.retry_after or 0.0))
        return granted

    async def _cancel(self) -> None:
        """WAIT2. If no answer contained the token, the same ``requestId`` finds it; without ``waitMs``, ungranted."""
        until_at = now() + CANCEL_FOR
        token = self._query_token
        if token is None:
            token = (await deliver(self._transport, "acquire", self._first, until_at) or {}).get("queryToken")
        if token:
            await deliver(self._transport, "cancel", {"queryToken": token}, until_at)

    async def _pause(self, seconds: float) -> None:
        left = self._left()
        if left < seconds:
            # A pause until the end of the wait ends it. Timers fire slightly early.
            self._ends_at = -math.inf
        await asyncio.sleep(min(left, seconds))

    def _gave_up(self) -> Exception:
        hostname = self._ask.hostname
        waited = now() - self._started_at
        if self._failure is None:
            return AcquireTimeoutError(hostname, waited, self._position)
        if self._failure.retry_after:
            return OverloadedError(hostname, self._failure.retry_after)
        return UnavailableError(hostname, self._options.url, self._attempts, waited, self._failure.reason)

    def _answered(self) -> None:
        self._failures = 0
        self._failure = None
        self._policy.answered()

    def _left(self) -> float:
        return max(0.0, self._ends_at - now())

    def _first_call(self) -> Dict[str, object]:
        return {**self._ask.fields, "requestId": str(uuid.uuid4())}


def lease_of(reply: Mapping[str, Any]) -> float:
    """The lease in seconds. One that is longer than a timer counts as shorter, and is renewed."""
    return float(min(reply["leaseMs"] / 1000, LONGEST_TIMER))
