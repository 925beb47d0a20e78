"""The real service and the fault proxy in front of it, which `packages/client/test/python.test.ts` starts."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
import unittest
import urllib.request
from typing import Any, Callable, Dict, List, Optional, TypeVar

from slotkeeper import SlotClient, SlotRequest

T = TypeVar("T")

WORLD = json.loads(os.environ["SLOTKEEPER_TEST_WORLD"])
#: Hosts with this end have a lease of three seconds instead of thirty.
SHORT = "short.example"


def control(do: str, **fields: object) -> Any:
    return _call(WORLD["control"], {"do": do, **fields})


def operate(path: str, body: Optional[object] = None, method: str = "POST") -> Any:
    return _call(f"{WORLD['service']}/api/v0/{path}", body, method)


def _call(url: str, body: Optional[object], method: str = "POST") -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read()
    return json.loads(text) if text else None


def eventually(read: Callable[[], T], is_right: Callable[[T], object], seconds: float = 20) -> T:
    """Read until the value is right; fail with the last value."""
    ends_at = time.monotonic() + seconds
    while True:
        value = read()
        if is_right(value):
            return value
        if time.monotonic() > ends_at:
            raise AssertionError(f"still {value!r} after {seconds} s")
        time.sleep(0.01)


class WorldCase(unittest.TestCase):
    """Each test has a host of its own, with one slot."""

    end = "example"

    def setUp(self) -> None:
        control("clear")
        self.addCleanup(control, "clear")
        self.host = f"{self._testMethodName}.{type(self).__name__}.{self.end}".replace("_", "-").lower()

    def client(self, **options: Any) -> SlotClient:
        return SlotClient(WORLD["proxy"], **options)

    def request(self, client: Optional[SlotClient] = None, **options: Any) -> SlotRequest:
        return (client or self.client()).slot(self.host, bucket="ann", **options)

    def calls(self, name: str) -> List[Dict[str, Any]]:
        return [call["body"] for call in control("calls", name=name)]

    def state(self) -> Dict[str, Any]:
        hosts = operate(f"state?host={self.host}", method="GET")["hosts"]
        return hosts[0] if hosts else {"slots": [], "waiting": 0}

    def left(self) -> Dict[str, int]:
        state = self.state()
        return {"slots": sum(not slot["isReleased"] for slot in state["slots"]), "waiting": state["waiting"]}

    def until(self, slots: int, waiting: int) -> None:
        eventually(self.left, lambda left: left == {"slots": slots, "waiting": waiting})


class Sync:
    """Runs the shared behaviour through `with`."""

    def run_in(self, request: SlotRequest, work: Callable[[Any], T]) -> T:
        with request as slot:
            return work(slot)


class Async:
    """Runs the shared behaviour through `async with`, in a loop that ends afterwards."""

    def run_in(self, request: SlotRequest, work: Callable[[Any], T]) -> T:
        async def run() -> T:
            async with request as slot:
                return await asyncio.get_running_loop().run_in_executor(None, work, slot)

        return asyncio.run(run())


class Running(threading.Thread):
    """A call in a thread, with its outcome."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self.outcome: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.outcome = self._work()
        except BaseException as error:
            self.outcome = error

    def end(self) -> Any:
        self.join(30)
        if self.is_alive():
            raise AssertionError("the call did not end within 30 s")
        return self.outcome
