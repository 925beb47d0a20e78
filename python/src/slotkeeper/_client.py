"""The client, and the two kinds of slots that it gives: to a thread by ``with``, to a task by ``async with``."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from concurrent.futures import Future
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Callable, Dict, Mapping, Optional, Type

from . import _background
from ._errors import SlotLostError
from ._failure_policy import FailurePolicy
from ._lease import Lease
from ._options import OnFailure, Options, Pending, amounts, filled, positive, whole
from ._transport import Answer, Transport
from ._wait import Ask, Wait

#: The longest wait that the service accepts for a named semaphore.
LONGEST_WAIT = 86_400.0


@dataclass(frozen=True)
class Stats:
    #: The number of slots that the client holds now. Work that runs without a slot is not counted.
    held: int
    #: How often ``on_failure`` has let work run without a slot since the start.
    unguarded: int


class _HeldSlot:
    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._report: Dict[str, object] = {}

    @property
    def token(self) -> str:
        """Identifies the slot at the service; a secret of its holder. Empty for a slot that is not ``guarded``."""
        return self._lease.token

    @property
    def fence(self) -> int:
        """Grows with every grant of the host, so a resource can refuse the holder of a lost lease."""
        return self._lease.fence

    @property
    def guarded(self) -> bool:
        """False when ``on_failure`` let the work through without a slot."""
        return self._lease.guarded

    @property
    def charged(self) -> Mapping[str, float]:
        """What was charged to the budgets of the host, by name. Empty if the host has none."""
        return self._lease.charged

    @property
    def released(self) -> bool:
        """Whether the slot is no longer held: released or lost."""
        return self._lease.released

    @property
    def lost(self) -> Optional[SlotLostError]:
        """Why the slot was lost, or ``None`` if it was not."""
        return self._lease.lost

    def check(self) -> None:
        """Raise ``SlotLostError`` if the slot was lost. Call it between the steps of work that runs in a thread."""
        if self._lease.lost:
            raise self._lease.lost

    def report(
        self,
        status: Optional[int] = None,
        hit_upstream_at: Optional[float] = None,
        *,
        used: Optional[Mapping[str, float]] = None,
    ) -> None:
        """Set what the release reports. What is not given stays as it is.

        ``status`` is the HTTP status of the upstream, ``hit_upstream_at`` when it was called (``time.time()``), and
        ``used`` what the work really cost of the host's budgets, by name.
        """
        if status is not None:
            self._report["status"] = status
        if hit_upstream_at is not None:
            self._report["hitUpstreamAtMs"] = round(hit_upstream_at * 1000)
        if used is not None:
            self._report["used"] = amounts("used", used)

    def _release(self) -> Future[bool]:
        return _background.start(lambda _: self._lease.release(self._report))


class Slot(_HeldSlot):
    """A slot that a thread holds."""

    def release(self) -> bool:
        """Release the slot before the end of the block. ``True`` the first time.

        Returns when the service has the release, or after one second; the delivery then continues in the background.
        """
        return _background.wait(self._release())


class AsyncSlot(_HeldSlot):
    """A slot that a task holds."""

    async def release(self) -> bool:
        """Release the slot before the end of the block. ``True`` the first time.

        Returns when the service has the release, or after one second; the delivery then continues in the background.
        """
        return await _background.wait_async(self._release())


class SlotRequest:
    """The result of ``SlotClient.slot``: acquires a slot in ``with`` or ``async with``, once."""

    def __init__(self, client: SlotClient, ask: Ask) -> None:
        self._client = client
        self._ask = ask
        self._slot: Optional[Slot] = None
        self._scope: Optional[_AsyncScope] = None

    def __enter__(self) -> Slot:
        self._slot = Slot(_background.wait(self._start(self._ask), _abandon))
        return self._slot

    def __exit__(self, *_: object) -> None:
        if self._slot:
            self._slot.release()

    async def __aenter__(self) -> AsyncSlot:
        loop, on_pending, ask = asyncio.get_running_loop(), self._ask.on_pending, self._ask
        if on_pending:
            # In the loop of the caller, not in the background.
            ask = replace(ask, on_pending=lambda pending: loop.call_soon_threadsafe(on_pending, pending))
        lease = await _background.wait_async(self._start(ask), _abandon)
        self._scope = _AsyncScope(lease)
        return self._scope.slot

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._scope:
            await self._scope.exit(error)

    def _start(self, ask: Ask) -> Future[Lease]:
        if self._slot or self._scope:
            raise RuntimeError("Expected a slot request to be used once; call `slot` again")
        acquire = self._client._acquire
        return _background.start(lambda is_abandoned: acquire(replace(ask, is_abandoned=is_abandoned)), _abandon)


class _AsyncScope:
    """Cancels the task of an ``async with`` when its slot is lost, as ``asyncio.timeout`` does after its time."""

    def __init__(self, lease: Lease) -> None:
        self.slot = AsyncSlot(lease)
        self._lease = lease
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        # Before 3.11, tasks do not count their cancellations.
        self._cancelling: int = self._task.cancelling() if hasattr(self._task, "cancelling") else 0  # type: ignore
        self._is_interrupted = False
        self._has_ended = False
        lease.on_lost = self._lost
        if lease.lost:
            self._lost()

    async def exit(self, error: Optional[BaseException]) -> None:
        self._has_ended = True
        try:
            await self.slot.release()
        except asyncio.CancelledError as cancelled:
            # The interruption arrives here if the work did not wait for anything after it.
            if not self._is_interrupted:
                raise
            error = cancelled
        if self._is_interrupted and self._lease.lost and isinstance(error, asyncio.CancelledError):
            if self._uncancel() <= self._cancelling:
                raise self._lease.lost from error

    def _uncancel(self) -> int:
        return self._task.uncancel() if hasattr(self._task, "uncancel") else 0  # type: ignore

    def _lost(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._interrupt)
        except RuntimeError:  # The loop is closed, and its tasks have ended.
            pass

    def _interrupt(self) -> None:
        if self._task and not (self._has_ended or self._is_interrupted):
            self._is_interrupted = True
            self._task.cancel()


class SlotClient:
    """Takes slots of a Slotkeeper service. Create one client and use it for all calls, from any thread or loop.

    - ``url``: address of the service. A path in it is put before ``/api/v0``.
    - ``token``: the shared key (``auth.token`` of the service), sent in ``header``.
    - ``max_wait``: longest wait for a slot, in seconds.
    - ``request_timeout``: timeout of one HTTP call, in seconds.
    - ``max_attempts``: a wait gives up after this number of failed calls in a row.
    - ``on_failure``: what happens while the service is unreachable: ``"closed"`` (every acquire fails), ``"open"`` (all
      work runs without a slot) or ``Share``.
    - ``hash_hostname``: send the SHA-256 of the host name instead of the name.
    - ``ssl_context``: for ``https``. Default: the certificates of the system.
    """

    def __init__(
        self,
        url: str,
        *,
        token: Optional[str] = None,
        header: str = "X-FQ-Auth",
        max_wait: float = 20.0,
        request_timeout: float = 8.0,
        max_attempts: int = 35,
        on_failure: OnFailure = "closed",
        hash_hostname: bool = False,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self._options = Options(
            url, token, header, max_wait, request_timeout, max_attempts, on_failure, hash_hostname, ssl_context
        )
        self._transport = Transport(self._options)
        self._policy = FailurePolicy(on_failure)
        self._held = 0

    def slot(
        self,
        hostname: str,
        *,
        bucket: str = "",
        width: int = 1,
        cost: Optional[Mapping[str, float]] = None,
        class_: str = "",
        max_wait: Optional[float] = None,
        on_pending: Optional[Callable[[Pending], Any]] = None,
    ) -> SlotRequest:
        """Wait for a slot of a host in ``with`` or ``async with``, at most ``max_wait``, and release it at the end.

        ``width`` slots are granted together. ``cost`` is what the work costs of the host's budgets, by name; a budget that
        is not named costs what the service has configured. ``class_`` is the class of the work, one of the host's classes;
        requests that name none are of the class ``default``.

        Raises ``ThrottledError``, ``OverloadedError``, ``AcquireTimeoutError``, ``UnavailableError`` or
        ``RefusedError``. ``on_pending`` is called after each answer without a slot: in the loop of an ``async with``,
        otherwise in the background thread of the client, which it must not block.
        """
        filled("hostname", hostname)
        named = {"hostnameHash": _hash(hostname)} if self._options.hash_hostname else {"hostname": hostname}
        demand = {"width": whole("width", width), "cost": None if cost is None else amounts("cost", cost)}
        fields = {**named, "ipBucket": bucket or None, **demand, "class": class_ or None}
        return self._request(hostname, fields, self._options.max_wait if max_wait is None else max_wait, on_pending)

    def semaphore(
        self,
        name: str,
        slots: int,
        *,
        width: int = 1,
        max_wait: float = LONGEST_WAIT,
        on_pending: Optional[Callable[[Pending], Any]] = None,
    ) -> SlotRequest:
        """Wait for ``width`` of ``slots`` slots that all processes share which use this name. As ``slot`` otherwise."""
        hostname = f"sem:{filled('name', name)}"
        longest = min(positive("max_wait", max_wait), LONGEST_WAIT)
        limits = {"limit": whole("slots", slots), "maxWaitMs": max(1, round(longest * 1000))}
        fields = {"hostname": hostname, "width": whole("width", width), **limits}
        return self._request(hostname, fields, longest, on_pending)

    def stats(self) -> Stats:
        return Stats(self._held, self._policy.unguarded)

    def _request(
        self,
        hostname: str,
        fields: Dict[str, object],
        max_wait: float,
        on_pending: Optional[Callable[[Pending], Any]],
    ) -> SlotRequest:
        return SlotRequest(self, Ask(hostname, fields, positive("max_wait", max_wait), on_pending, lambda: False))

    async def _acquire(self, ask: Ask) -> Lease:
        result = await Wait(self._options, self._transport, self._policy, ask).run()
        if not isinstance(result, Answer):
            return Lease(self._transport, ask.hostname, result)
        self._policy.learn(ask.hostname, int(result.reply["limit"]))
        self._held += 1
        return Lease(self._transport, ask.hostname, self._ended, result)

    def _ended(self) -> None:
        self._held -= 1


def _abandon(lease: Lease) -> None:
    """Release a slot that no caller waits for any more."""
    _background.start(lambda _: lease.release({}))


def _hash(hostname: str) -> str:
    """The key of a host at the service."""
    name = hostname.lower()
    return hashlib.sha256((name[:-1] if name.endswith(".") else name).encode()).hexdigest()
