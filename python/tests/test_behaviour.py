"""What a user sees, the same with `with` and `async with`, against the real service."""

import threading
import time
import unittest

from slotkeeper import (
    AcquireTimeoutError,
    OverloadedError,
    RefusedError,
    Share,
    SlotLostError,
    ThrottledError,
    UnavailableError,
)
from world import SHORT, Async, Running, Sync, WorldCase, control, eventually, operate

FAULTS = {
    "reset": "reset",
    "black-holed": "black-hole",
    "answered too late": {"slowMs": 1_500},
    "lost on the way back": "lost-answer",
    "a gateway's 500": {"status": 500},
    "truncated JSON": "truncated",
}


class Outcomes:
    def test_a_slot_is_held_during_the_block_and_released_with_its_report(self):
        client = self.client()

        def work(slot):
            slot.report(503, hit_upstream_at=time.time())
            self.assertEqual((slot.guarded, slot.released, slot.lost), (True, False, None))
            self.assertEqual((slot.fence > 0, len(slot.token) >= 22, client.stats().held), (True, True, 1))
            return self.left()

        self.assertEqual(self.run_in(self.request(client), work), {"slots": 1, "waiting": 0})
        self.until(0, 0)
        self.assertEqual(client.stats().held, 0)
        [release] = self.calls("release")
        self.assertEqual(release["status"], 503)
        self.assertLess(abs(release["now"] - release["hitUpstreamAtMs"]), 60_000)

    def test_an_error_of_the_work_releases_the_slot(self):
        def work(slot):
            raise KeyError("of the work")

        with self.assertRaises(KeyError):
            self.run_in(self.request(), work)
        self.until(0, 0)

    def test_a_caller_waits_until_the_holder_releases_and_sees_its_place(self):
        places = []
        with self.request():
            waiting = Running(lambda: self.run_in(self.request(on_pending=places.append), lambda slot: slot.guarded))
            eventually(lambda: list(places), len)
            self.until(1, 1)
        self.assertIs(waiting.end(), True)
        self.assertEqual((places[0].position, places[0].waiters, places[0].blocked_by), (1, 1, "host-limit"))
        self.until(0, 0)

    def test_a_wait_that_times_out_leaves_no_session(self):
        with self.request():
            with self.assertRaises(AcquireTimeoutError) as caught:
                self.run_in(self.request(max_wait=0.5), lambda slot: None)
            self.until(1, 0)
            eventually(lambda: self.calls("cancel"), len)
        self.assertGreaterEqual(caught.exception.waited, 0.49)
        self.assertEqual((caught.exception.code, caught.exception.retryable), ("ACQUIRE_TIMEOUT", True))

    def test_an_open_breaker_is_a_throttled_error(self):
        with self.request():
            pass
        operate(f"hosts/{self.host}/breaker", {"state": "open"})
        with self.assertRaises(ThrottledError) as caught:
            self.run_in(self.request(), lambda slot: None)
        self.assertEqual(caught.exception.status, 0)
        self.assertGreaterEqual(caught.exception.retry_after, 1)

    def test_a_semaphore_has_its_number_of_slots_in_the_whole_fleet(self):
        client = self.client()
        self.host = f"sem:{self.host}"
        with client.semaphore(self.host[4:], 2):
            self.assertEqual(self.run_in(client.semaphore(self.host[4:], 2), lambda _: self.left()["slots"]), 2)
            with self.assertRaises(RefusedError) as caught:
                self.run_in(client.semaphore(self.host[4:], 3), lambda slot: None)
        self.assertEqual((caught.exception.status, caught.exception.problem), (409, "CAPACITY_MISMATCH"))

    def test_a_host_named_by_its_hash_is_the_same_host(self):
        with self.request():
            with self.assertRaises(AcquireTimeoutError):
                self.run_in(self.request(self.client(hash_hostname=True), max_wait=0.3), lambda slot: None)
        self.assertTrue(any("hostnameHash" in call and "hostname" not in call for call in self.calls("acquire")))


class Failures:
    def test_a_failed_call_is_repeated_and_granted_once(self):
        for name, fault in FAULTS.items():
            with self.subTest(name):
                control("clear")
                control("fault", fault=fault, name="acquire", times=2)
                client = self.client(request_timeout=1.0)
                self.assertEqual(self.run_in(self.request(client), lambda slot: self.left()["slots"]), 1)
                calls = self.calls("acquire")
                self.assertGreaterEqual(len(calls), 3)
                self.assertEqual(len({call["requestId"] for call in calls if "requestId" in call}), 1)
                self.until(0, 0)

    def test_a_failure_without_an_end_is_unavailable_with_its_cause(self):
        for name, fault in FAULTS.items():
            with self.subTest(name):
                control("clear")
                control("fault", fault=fault, name="acquire", times=1_000, ifBody="waitMs")
                client = self.client(request_timeout=0.2, max_wait=0.7)
                with self.assertRaises(UnavailableError) as caught:
                    self.run_in(self.request(client), lambda slot: None)
                self.assertRegex(str(caught.exception), r"^The service at http:\S+ is unavailable: .+\.$")
                self.assertIsNotNone(caught.exception.__cause__)
                self.until(0, 0)

    def test_the_retry_after_of_a_busy_service_is_respected_and_on_failure_does_not_apply(self):
        control("fault", fault={"status": 503, "headers": {"retry-after": "1"}}, name="acquire", times=1_000)
        with self.assertRaises(OverloadedError) as caught:
            self.run_in(self.request(self.client(max_wait=1.5, on_failure="open")), lambda slot: None)
        self.assertEqual(caught.exception.retry_after, 1)
        self.assertEqual(len([call for call in self.calls("acquire") if "waitMs" in call]), 2)

    def test_a_wait_survives_a_restart_of_the_service(self):
        with self.request():
            waiting = Running(lambda: self.run_in(self.request(max_wait=60), lambda slot: slot.guarded))
            self.until(1, 1)
            control("restart")
            self.assertIs(waiting.end(), True)

    def test_on_failure_open_lets_work_run_without_a_slot(self):
        client = self.client(on_failure="open")
        control("refuse")
        self.assertEqual(self.run_in(self.request(client), lambda slot: (slot.guarded, slot.token)), (False, ""))
        self.assertEqual((client.stats().held, client.stats().unguarded), (0, 1))

    def test_a_share_lets_a_part_of_the_last_known_limit_run_without_a_slot(self):
        client = self.client(on_failure=Share(1.0), max_wait=2.0)
        with self.request(client):
            pass
        control("refuse")

        def work(slot):
            with self.assertRaises(UnavailableError):
                self.run_in(self.request(client), lambda second: None)
            return slot.guarded

        self.assertIs(self.run_in(self.request(client), work), False)
        self.assertIs(self.run_in(self.request(client), lambda slot: slot.guarded), False)

    def test_a_release_is_repeated_after_the_block_has_ended(self):
        self.run_in(self.request(), lambda slot: control("refuse"))
        self.assertEqual(self.left(), {"slots": 1, "waiting": 0})
        control("accept")
        self.until(0, 0)


class Leases:
    end = SHORT

    def test_a_slot_is_renewed_while_it_is_held(self):
        def work(slot):
            eventually(lambda: self.calls("renew"), lambda calls: len(calls) >= 3)
            return slot.lost, slot.released, self.left()["slots"]

        self.assertEqual(self.run_in(self.request(), work), (None, False, 1))
        self.until(0, 0)

    def test_a_slot_that_an_operator_revokes_is_lost(self):
        def work(slot):
            operate(f"slots/{self.state()['slots'][0]['slot']}", method="DELETE")
            eventually(lambda: slot.lost, bool)
            self.assertRaisesRegex(SlotLostError, "it was taken back", slot.check)
            self.assertIs(slot.released, True)

        self.lose(work)
        self.assertEqual(self.calls("release"), [])

    def test_a_slot_is_lost_when_its_lease_ends_without_a_renewal(self):
        def work(slot):
            control("refuse")
            eventually(lambda: slot.lost, bool)
            self.assertGreater(slot.lost.held, 2.5)
            self.assertRaisesRegex(SlotLostError, "its lease ended", slot.check)

        self.lose(work)


class Budgets:
    def left_of_tokens(self):
        return next(int(budget["available"]) for budget in self.state()["budgets"] if budget["name"] == "tokens")

    def test_slots_and_units_are_taken_together_and_unused_units_are_given_back(self):
        def work(slot):
            slot.report(200)
            slot.report(used={"tokens": 100})
            return slot.charged, self.state()["inFlight"], self.left_of_tokens()

        request = self.request(width=2, cost={"tokens": 600})
        self.assertEqual(self.run_in(request, work), ({"requests": 1, "tokens": 600}, 2, 400))
        self.until(0, 0)
        self.assertEqual(self.left_of_tokens(), 900)
        [release] = self.calls("release")
        self.assertEqual((release["status"], release["used"]), (200, {"tokens": 100}))

    def test_a_caller_waits_for_the_budget_and_sees_which(self):
        places = []
        with self.request(cost={"tokens": 900}) as slot:
            slot.report(used={"tokens": 0})
            request = self.request(cost={"tokens": 200}, on_pending=places.append)
            waiting = Running(lambda: self.run_in(request, lambda second: second.charged["tokens"]))
            eventually(lambda: [place.blocked_by for place in places], lambda causes: "budget:tokens" in causes)
        self.assertEqual(waiting.end(), 200)

    def test_a_request_that_can_never_be_granted_is_refused(self):
        for demand in ({"width": 4}, {"cost": {"tokens": 1_001}}, {"cost": {"images": 1}}, {"class_": "chatt"}):
            with self.assertRaises(RefusedError) as caught:
                self.run_in(self.request(**demand), lambda slot: None)
            self.assertEqual((caught.exception.status, caught.exception.problem), (400, "IMPOSSIBLE"))

    def test_the_class_of_the_work_is_sent_and_none_if_it_is_empty(self):
        def classes(slot):
            return [one.get("class") for one in self.state()["slots"]]

        self.assertEqual(self.run_in(self.request(class_="chat"), classes), ["chat"])
        self.until(0, 0)
        self.assertEqual(self.run_in(self.request(class_=""), classes), [None])

    def test_a_semaphore_grants_several_slots_together(self):
        self.host = f"sem:{self.host}"
        request = self.client().semaphore(self.host[4:], 3, width=2)
        self.assertEqual(self.run_in(request, lambda slot: (self.state()["inFlight"], slot.charged)), (2, {}))


class SyncOutcomes(Sync, Outcomes, WorldCase):
    pass


class AsyncOutcomes(Async, Outcomes, WorldCase):
    pass


class SyncFailures(Sync, Failures, WorldCase):
    pass


class AsyncFailures(Async, Failures, WorldCase):
    pass


class SyncBudgets(Sync, Budgets, WorldCase):
    end = "budget.example"


class AsyncBudgets(Async, Budgets, WorldCase):
    end = "budget.example"


class SyncLeases(Sync, Leases, WorldCase):
    end = SHORT

    def lose(self, work):
        """A thread cannot be interrupted: `slot.lost` and `slot.check` report the loss."""
        self.run_in(self.request(), work)


class AsyncLeases(Async, Leases, WorldCase):
    end = SHORT

    def lose(self, work):
        """The task is interrupted where it waits, and the block raises."""
        checked = threading.Event()

        def work_then(slot):
            work(slot)
            checked.set()

        with self.assertRaises(SlotLostError):
            self.run_in(self.request(), work_then)
        self.assertTrue(checked.wait(30))


if __name__ == "__main__":
    unittest.main()
