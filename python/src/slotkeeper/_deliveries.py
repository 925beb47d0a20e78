"""Calls that must reach the service although no caller waits for them any more: releases and cancellations.

DELIVER1  They are repeated until the service has them or until ``until_at``: a release until its lease would have
    ended, a cancellation for some seconds, after which the service ends the session by itself.
DELIVER2  Nothing here raises. ``None`` means that the call was not delivered.
"""

from __future__ import annotations

import asyncio
from typing import Any, Dict, Mapping, Optional

from ._errors import CallFailure, RefusedError
from ._timing import backoff, now
from ._transport import Transport


async def deliver(
    transport: Transport, name: str, body: Mapping[str, object], until_at: float
) -> Optional[Dict[str, Any]]:
    failures = 0
    while True:
        try:
            return (await transport.call(name, body)).reply
        except RefusedError:
            return None
        except CallFailure:
            failures += 1
            delay = backoff(failures)
            if now() + delay > until_at:
                return None
            await asyncio.sleep(delay)
