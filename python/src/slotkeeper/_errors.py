"""The expected outcomes that are not a slot. Misuse is a ``TypeError`` or ``ValueError``."""

from __future__ import annotations

from typing import Optional


class SlotClientError(Exception):
    """Base class of all errors of the client. ``code`` distinguishes them, as in the JavaScript client."""

    code = ""
    #: Whether the same call may succeed later without any change.
    retryable = True


class ThrottledError(SlotClientError):
    """The circuit breaker of the host is open.

    ``status`` is the HTTP status that opened it, or 0 if an operator opened it.
    """

    code = "THROTTLED"

    def __init__(self, hostname: str, status: int, retry_after: float, reason: str) -> None:
        after = f" after status {status}" if status else ""
        super().__init__(f'Requests to "{hostname}" are paused{after}; try again in {retry_after:g} s.')
        self.hostname = hostname
        self.status = status
        self.retry_after = retry_after
        self.reason = reason


class OverloadedError(SlotClientError):
    """The service accepts no more waiters."""

    code = "OVERLOADED"

    def __init__(self, hostname: str, retry_after: float) -> None:
        super().__init__(f"The service is full; try again in {retry_after:g} s.")
        self.hostname = hostname
        self.retry_after = retry_after


class AcquireTimeoutError(SlotClientError):
    """No slot became free in time. ``position`` is the last place in the queue that the service reported."""

    code = "ACQUIRE_TIMEOUT"

    def __init__(self, hostname: str, waited: float, position: Optional[int]) -> None:
        super().__init__(f'Waited {waited * 1000:.0f} ms for a slot of "{hostname}".')
        self.hostname = hostname
        self.waited = waited
        self.position = position


class UnavailableError(SlotClientError):
    """The service could not be reached, or its answer is not valid. The last failure is the ``__cause__``."""

    code = "UNAVAILABLE"

    def __init__(self, hostname: str, url: str, attempts: int, waited: float, reason: str) -> None:
        super().__init__(f"The service at {url} is unavailable: {reason}.")
        self.hostname = hostname
        self.url = url
        self.attempts = attempts
        self.waited = waited
        self.reason = reason


class RefusedError(SlotClientError):
    """The service refuses the call.

    The token or the address is wrong, a field is invalid, or the semaphore has another number of slots. ``status`` is
    the HTTP status, ``problem`` the code of the problem document, for example ``CAPACITY_MISMATCH``.
    """

    code = "REFUSED"
    retryable = False

    def __init__(self, url: str, status: int, problem: Optional[str], reason: Optional[str]) -> None:
        because = f": {reason}" if reason else ""
        super().__init__(f"The service at {url} refused the call with status {status}{because}.")
        self.url = url
        self.status = status
        self.problem = problem
        self.reason = reason


class SlotLostError(SlotClientError):
    """The lease of a held slot ended, or the service took the slot back."""

    code = "SLOT_LOST"
    retryable = False

    def __init__(self, hostname: str, held: float, reason: str) -> None:
        super().__init__(f'The slot of "{hostname}" was lost after {held * 1000:.0f} ms: {reason}.')
        self.hostname = hostname
        self.held = held
        self.reason = reason


class CallFailure(Exception):
    """A call that may succeed if it is repeated.

    With ``retry_after``, the service answered and asks for a later retry. Otherwise it counts as unreachable.
    """

    def __init__(self, reason: str, retry_after: Optional[float] = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
