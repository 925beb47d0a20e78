"""Slots of a Slotkeeper service, for threads and for asyncio. Standard library only.

    from slotkeeper import SlotClient

    keeper = SlotClient("http://127.0.0.1:8080")
    with keeper.slot("api.example.com", bucket="ann") as slot:
        ...

All durations are in seconds.
"""

from ._bucket import bucket_of_ip
from ._client import AsyncSlot, Slot, SlotClient, SlotRequest, Stats
from ._errors import (
    AcquireTimeoutError,
    OverloadedError,
    RefusedError,
    SlotClientError,
    SlotLostError,
    ThrottledError,
    UnavailableError,
)
from ._options import Pending, Share

__all__ = [
    "AcquireTimeoutError",
    "AsyncSlot",
    "OverloadedError",
    "Pending",
    "RefusedError",
    "Share",
    "Slot",
    "SlotClient",
    "SlotClientError",
    "SlotLostError",
    "SlotRequest",
    "Stats",
    "ThrottledError",
    "UnavailableError",
    "bucket_of_ip",
]
