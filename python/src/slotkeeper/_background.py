"""One daemon thread with an event loop, for all clients of the process.

BACKGROUND1  Waits, renewals and deliveries run here, so ``with`` and ``async with`` share them. A lease is renewed
    while the work blocks its own thread or loop, and a release is repeated after the caller's loop has ended.
BACKGROUND2  A result that the caller no longer wants is undone: no slot is lost between the two threads.
BACKGROUND3  At the end of the process, deliveries have ``EXIT_PATIENCE`` to finish.
BACKGROUND4  A child made by ``fork`` starts its own thread. It cannot release the slots of its parent.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from concurrent.futures import Future, TimeoutError as FutureTimeout
from typing import Any, Callable, Coroutine, Optional, Set, TypeVar

T = TypeVar("T")

EXIT_PATIENCE = 5.0

_lock = threading.Lock()
_loop: Optional[asyncio.AbstractEventLoop] = None
# The loop keeps only weak references to its tasks.
_deliveries: Set[asyncio.Task[Any]] = set()
_running: Set[asyncio.Task[Any]] = set()


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="slotkeeper", daemon=True).start()
        return _loop


def _task(work: Coroutine[Any, Any, T], tasks: Set[asyncio.Task[Any]]) -> asyncio.Task[T]:
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


def spawn(delivery: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a delivery. Only for coroutines that run in the background already."""
    return _task(delivery, _deliveries)


def start(
    work: Callable[[Callable[[], bool]], Coroutine[Any, Any, T]], undo: Optional[Callable[[T], object]] = None
) -> Future[T]:
    """Run a coroutine in the background. With ``undo`` the future can be cancelled, and the coroutine with it.

    ``work`` gets a function that says whether that has happened.
    """
    future: Future[T] = Future()
    # A future that runs cannot be cancelled.
    is_wanted = future.set_running_or_notify_cancel if undo else lambda: True
    if undo is None:
        future.set_running_or_notify_cancel()

    async def run() -> None:
        try:
            result = await work(future.cancelled)
        except BaseException as error:
            if is_wanted():
                future.set_exception(error)
            return
        if is_wanted():
            future.set_result(result)
        elif undo:
            undo(result)

    def begin() -> None:
        task = _task(run(), _running)
        future.add_done_callback(lambda it: it.cancelled() and loop.call_soon_threadsafe(task.cancel))

    loop = _running_loop()
    loop.call_soon_threadsafe(begin)
    return future


def wait(future: Future[T], undo: Optional[Callable[[T], object]] = None) -> T:
    """Wait in a thread. Ctrl-C, or an exception of a signal handler, ends the wait."""
    try:
        return future.result()
    except BaseException:
        _abandon(future, undo)
        raise


async def wait_async(future: Future[T], undo: Optional[Callable[[T], object]] = None) -> T:
    """Wait in a loop of the caller. The cancellation of its task ends the wait."""
    try:
        return await asyncio.wrap_future(future)
    except BaseException:
        _abandon(future, undo)
        raise


def _abandon(future: Future[T], undo: Optional[Callable[[T], object]]) -> None:
    """BACKGROUND2. Without ``undo``, the work continues."""
    if undo and not future.cancel() and future.exception() is None:
        undo(future.result())


def _forget() -> None:
    """BACKGROUND4."""
    global _lock, _loop
    _lock, _loop = threading.Lock(), None
    _deliveries.clear()
    _running.clear()


def _finish() -> None:
    """BACKGROUND3."""

    async def delivered(_: object) -> None:
        while _deliveries:
            await asyncio.wait(set(_deliveries))

    if _loop is not None:
        try:
            start(delivered).result(EXIT_PATIENCE)
        except FutureTimeout:
            pass


atexit.register(_finish)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
