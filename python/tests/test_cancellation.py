"""The end of a wait by its caller, and the end of its process: nothing is left at the service."""

import asyncio
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import unittest
from concurrent.futures import Future

from slotkeeper import _background
from world import WORLD, Running, WorldCase, control, eventually


class Cancellation(WorldCase):
    def test_a_cancelled_task_gives_up_its_place(self):
        async def wait():
            async with self.request():
                raise AssertionError("no slot is free")

        async def cancel():
            task = asyncio.create_task(wait())
            await asyncio.get_running_loop().run_in_executor(None, self.until, 1, 1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        with self.request():
            asyncio.run(cancel())
            self.until(1, 0)
            eventually(lambda: self.calls("cancel"), len)
        self.until(0, 0)

    def test_an_interrupted_thread_gives_up_its_place(self):
        def interrupt():
            self.until(1, 1)
            os.kill(os.getpid(), signal.SIGINT)

        with self.request():
            interrupting = Running(interrupt)
            with self.assertRaises(KeyboardInterrupt):
                with self.request():
                    raise AssertionError("no slot is free")
            self.assertIsNone(interrupting.end())
            self.until(1, 0)
            eventually(lambda: self.calls("cancel"), len)

    def test_a_task_cancelled_at_any_moment_keeps_no_slot(self):
        async def hold():
            async with self.request(client):
                await asyncio.sleep(0.002)

        async def cancel_after(seconds):
            task = asyncio.create_task(hold())
            await asyncio.sleep(seconds)
            task.cancel()
            await asyncio.wait({task})

        client = self.client()
        for step in range(60):
            asyncio.run(cancel_after(step * 0.0004))
        self.until(0, 0)
        eventually(lambda: client.stats().held, lambda held: held == 0)

    def test_a_timeout_of_asyncio_ends_the_wait(self):
        async def wait():
            async with self.request():
                pass

        with self.request():
            with self.assertRaises(asyncio.TimeoutError):
                asyncio.run(asyncio.wait_for(wait(), 0.3))
            self.until(1, 0)

    def test_a_cancellation_from_outside_stays_one_although_the_slot_is_released(self):
        async def cancel():
            started = asyncio.Event()

            async def hold():
                async with self.request():
                    started.set()
                    await asyncio.sleep(3_600)

            task = asyncio.create_task(hold())
            await started.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(cancel())
        self.until(0, 0)

    def test_one_client_serves_many_threads_and_loops(self):
        client = self.client()

        async def three():
            await asyncio.gather(*(hold_async() for _ in range(3)))

        async def hold_async():
            async with self.request(client):
                most.append(client.stats().held)

        def hold():
            with self.request(client):
                most.append(client.stats().held)

        most = []
        running = [Running(hold) for _ in range(3)] + [Running(lambda: asyncio.run(three()))]
        self.assertEqual([one.end() for one in running], [None] * 4)
        self.assertEqual(most, [1] * 6)
        self.assertEqual(sum(thread.name == "slotkeeper" for thread in threading.enumerate()), 1)

    def test_a_request_is_used_once(self):
        request = self.request()
        with request:
            with self.assertRaisesRegex(RuntimeError, "used once"):
                with request:
                    pass


class Handover(unittest.TestCase):
    """A slot may be granted in the background at the moment at which its caller gives up."""

    def test_a_result_that_arrives_after_the_caller_has_given_up_is_undone(self):
        begun, undone = threading.Event(), queue.Queue()

        async def work(is_abandoned):
            begun.set()
            while not is_abandoned():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    pass
            return "slot"

        future = _background.start(work, undone.put)
        self.assertTrue(begun.wait(30))
        self.assertTrue(future.cancel())
        self.assertEqual(undone.get(timeout=30), "slot")

    def test_a_result_that_arrives_together_with_the_cancellation_is_undone(self):
        async def cancel():
            future, undone = Future(), []
            future.set_running_or_notify_cancel()
            task = asyncio.create_task(_background.wait_async(future, undone.append))
            await asyncio.sleep(0)
            future.set_result("slot")
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return undone

        self.assertEqual(asyncio.run(cancel()), ["slot"])


class Processes(WorldCase):
    def start(self, program):
        before = f"""
from slotkeeper import SlotClient, _background
keeper = SlotClient({WORLD['proxy']!r})
host = {self.host!r}
"""
        child = subprocess.Popen(
            [sys.executable, "-c", before + textwrap.dedent(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.stdin.close)
        self.addCleanup(child.kill)
        return child

    def test_a_release_outlives_the_end_of_the_program(self):
        child = self.start(
            """
            _background.EXIT_PATIENCE = 60.0
            request = keeper.slot(host)
            request.__enter__()
            print("held", flush=True)
            input()
            request.__exit__()
            print("ends", flush=True)
            """
        )
        self.assertEqual(child.stdout.readline(), "held\n")
        control("refuse")
        print(file=child.stdin, flush=True)
        self.assertEqual(child.stdout.readline(), "ends\n")
        control("accept")
        self.assertEqual(child.wait(60), 0)
        self.until(0, 0)

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_forked_child_has_its_own_background_thread(self):
        child = self.start(
            """
            import os
            with keeper.slot(host):
                pid = os.fork()
                if pid == 0:
                    with keeper.slot("child." + host) as slot:
                        print(slot.guarded, flush=True)
                    os._exit(0)
                os.waitpid(pid, 0)
            """
        )
        self.assertEqual(child.stdout.readline(), "True\n")
        self.assertEqual(child.wait(60), 0)
        self.until(0, 0)


if __name__ == "__main__":
    unittest.main()
