"""The clock and the delays of retries. Waits and leases use the monotonic clock, because the wall clock can be set."""

import random
import time

FIRST_DELAY = 0.1
LONGEST_DELAY = 5.0
#: Leases and pauses count as at most 24 days, so that no timer overflows.
LONGEST_TIMER = 24 * 86_400.0

now = time.monotonic


def backoff(failures: int, retry_after: float = 0.0) -> float:
    """The delay after the n-th failure in a row (from 1): exponential, half of it random.

    Callers that failed together do not retry together. It is never shorter than a ``Retry-After`` of the service.
    """
    delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(failures - 1, 16))
    return retry_after + delay * random.uniform(0.5, 1.0)
