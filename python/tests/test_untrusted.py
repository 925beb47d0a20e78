"""Answers that no real service gives, and options that no client takes."""

import email.utils
import json
import os
import socket
import threading
import time
import unittest

from slotkeeper import OverloadedError, RefusedError, Share, SlotClient, UnavailableError, bucket_of_ip
from slotkeeper._answers import is_answer
from slotkeeper._transport import MOST_BYTES

GRANTED = {
    "result": "granted",
    "queryToken": "the token of a session",
    "slotToken": "a slot token of 22 characters",
    "limit": 4,
    "fence": 7,
    "leaseMs": 30_000,
}
PENDING = {"result": "pending", "queryToken": "the token of a session", "position": 1, "waiters": 1}


def answer(body, status="200 OK", headers=""):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n{headers}\r\n".encode() + content


class Scripted:
    """Answers calls with bytes, whatever they are. `script` gets the name and the number of the call, from 1."""

    def __init__(self, script):
        self.calls = []
        self._script = script
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self._socket.close()

    def named(self, name):
        return [call for call in self.calls if call[0] == name]

    def _serve(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with connection, connection.makefile("rb") as stream:
            name = stream.readline().decode().split(" ")[1].rsplit("/", 1)[1]
            headers = dict(line.decode().strip().lower().split(": ", 1) for line in iter(stream.readline, b"\r\n"))
            self.calls.append((name, json.loads(stream.read(int(headers["content-length"]))), headers))
            try:
                for part in self._script(name, len(self.named(name))):
                    connection.sendall(part)
            except OSError:
                pass


class Untrusted(unittest.TestCase):
    def serve(self, script):
        service = Scripted(script)
        self.addCleanup(service.close)
        return service

    def client(self, service, **options):
        return SlotClient(service.url, **{"max_wait": 1.0, "max_attempts": 2, "request_timeout": 5.0, **options})

    def test_an_answer_that_is_not_valid_is_no_slot(self):
        endless = iter(lambda: b"x" * 1_000, b"")
        cases = {
            "not HTTP": [b"SSH-2.0-OpenSSH\r\n\r\n"],
            "nothing": [b""],
            "half a header": [b"HTTP/1.1 200 OK\r\nContent-"],
            "half a body": [answer(GRANTED)[:-5]],
            "a length that is no number": [b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}"],
            "a chunk that is no chunk": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n0\r\n\r\n"],
            "HTML": [answer(b"<h1>hello</h1>")],
            "not UTF-8": [answer(b'{"result":"\xff"}')],
            "deep JSON": [answer(b"[" * 50_000)],
            "a long integer": [answer(json.dumps(GRANTED).replace("30000", "9" * 5_000).encode())],
            "a grant without a token": [answer({**GRANTED, "slotToken": None})],
            "a grant without a lease": [answer({**GRANTED, "leaseMs": 0})],
            "a list": [answer([GRANTED])],
            "more than 64 kB": [answer({**GRANTED, "more": "x" * MOST_BYTES})],
            "an endless header": [b"HTTP/1.1 200 OK\r\nX: ", *[next(endless) for _ in range(200)]],
            "an error of the server": [answer(GRANTED, "500 Oops")],
        }
        for name, parts in cases.items():
            with self.subTest(name):
                service = self.serve(lambda call, number, parts=parts: parts)
                with self.assertRaises(UnavailableError):
                    with self.client(service).slot("example.com"):
                        self.fail("the work must not run")

    def test_a_redirect_is_not_followed(self):
        other = self.serve(lambda name, number: [answer(GRANTED)])
        location = f"Location: {other.url}/api/v0/fairqueue/acquire\r\n"
        service = self.serve(lambda name, number: [answer(b"", "307 Moved", location)])
        with self.assertRaisesRegex(UnavailableError, "redirects, which is not followed"):
            with self.client(service, token="a-shared-key").slot("example.com"):
                self.fail("the work must not run")
        self.assertEqual(other.calls, [])
        self.assertEqual(service.calls[0][2]["x-fq-auth"], "a-shared-key")

    def test_a_refusal_is_not_repeated_and_its_text_is_bounded(self):
        problem = {"code": "BAD_FIELDS", "title": "no", "errors": [{"message": "one\x1b[31m"}, {"message": 2}, "x"]}
        service = self.serve(lambda name, number: [answer(problem, "400 Bad")])
        with self.assertRaises(RefusedError) as caught:
            with self.client(service).slot("example.com"):
                self.fail("the work must not run")
        self.assertEqual((caught.exception.status, caught.exception.problem), (400, "BAD_FIELDS"))
        self.assertEqual(caught.exception.reason, "one [31m")
        self.assertEqual(len(service.calls), 1)

    def test_a_retry_after_is_bounded(self):
        date = email.utils.formatdate(time.time() + 3_600, usegmt=True)
        for header, expected in {"-5": 1, "0": 1, "inf": 3, "99999999999": 3, "2": 2, date: 3}.items():
            with self.subTest(header):
                service = self.serve(lambda *_, h=header: [answer(b"", "503 Busy", f"Retry-After: {h}\r\n")])
                with self.assertRaises(OverloadedError) as caught:
                    with self.client(service, max_wait=3.0, max_attempts=1).slot("example.com", max_wait=0.2):
                        self.fail("the work must not run")
                self.assertEqual(caught.exception.retry_after, expected)

    def test_a_retry_after_that_is_no_time_counts_as_absent(self):
        for header in ("nan", "soon", "Mon, 99 Jan"):
            with self.subTest(header):
                service = self.serve(lambda *_, h=header: [answer(b"", "503 Busy", f"Retry-After: {h}\r\n")])
                with self.assertRaises(UnavailableError):
                    with self.client(service, max_attempts=1).slot("example.com"):
                        self.fail("the work must not run")

    def test_a_lease_counts_from_the_sending_of_the_call(self):
        def script(name, number):
            if name == "acquire" and number == 1:
                time.sleep(0.2)
                return [answer({**GRANTED, "leaseMs": 100})]
            return [answer(GRANTED if name == "acquire" else {"result": "ok"})]

        service = self.serve(script)
        with self.client(service, max_wait=20.0).slot("example.com") as slot:
            self.assertIsNone(slot.lost)
        first, second = service.named("acquire")
        self.assertIn("requestId", first[1])
        self.assertEqual(second[1], {"queryToken": GRANTED["queryToken"]})

    def test_a_long_wait_does_not_pause_between_held_polls(self):
        def script(name, number):
            if name == "acquire" and number < 3:
                time.sleep(0.6)
                return [answer(PENDING)]
            return [answer(GRANTED if name == "acquire" else {"result": "ok"})]

        service = self.serve(script)
        started_at = time.monotonic()
        with self.client(service, max_wait=86_400.0).slot("example.com"):
            self.assertEqual(len(service.named("acquire")), 3)
        self.assertLess(time.monotonic() - started_at, 60)

    def test_an_error_of_on_pending_does_not_end_the_wait(self):
        replies = [PENDING, GRANTED]
        service = self.serve(lambda name, _: [answer(replies.pop(0) if name == "acquire" else {"result": "ok"})])
        with self.client(service).slot("example.com", on_pending=lambda pending: 1 / 0) as slot:
            self.assertEqual(slot.fence, 7)

    @unittest.skipUnless("SLOTKEEPER_TEST_ANSWERS" in os.environ, "python.test.ts gives the answers")
    def test_the_rules_for_answers_are_those_of_the_javascript_client(self):
        with open(os.environ["SLOTKEEPER_TEST_ANSWERS"], encoding="utf-8") as file:
            cases = json.load(file)
        wrong = [case for case in cases if is_answer(case["name"], case["body"]) != case["isAnswer"]]
        self.assertEqual(wrong, [])
        self.assertGreater(len(cases), 500)


class Options(unittest.TestCase):
    def test_options_that_do_not_fit_are_refused_without_showing_secrets(self):
        cases = [
            (lambda: SlotClient("ftp://example.com"), "`url`"),
            (lambda: SlotClient("http://user:secret@example.com"), "`url`"),
            (lambda: SlotClient("http://example.com/?key=secret"), "`url`"),
            (lambda: SlotClient("http://example.com/a b"), "`url`"),
            (lambda: SlotClient("http://example.com", token="secret\r\nX: y"), "`token`"),
            (lambda: SlotClient("http://example.com", header="a: b"), "`header`"),
            (lambda: SlotClient("http://example.com", max_wait=0), "`max_wait`"),
            (lambda: SlotClient("http://example.com", request_timeout=float("nan")), "`request_timeout`"),
            (lambda: SlotClient("http://example.com", on_failure="ajar"), "`on_failure`"),
            (lambda: Share(1.5), "`share`"),
            (lambda: SlotClient("http://example.com").slot(""), "`hostname`"),
            (lambda: SlotClient("http://example.com").slot("a", max_wait=-1), "`max_wait`"),
            (lambda: SlotClient("http://example.com").semaphore("a", 0), "`slots`"),
            (lambda: SlotClient("http://example.com").semaphore("a", 2, width=0), "`width`"),
            (lambda: SlotClient("http://example.com").slot("a", width=1.5), "`width`"),
            (lambda: SlotClient("http://example.com").slot("a", cost={"tokens": -1}), "`cost`"),
            (lambda: SlotClient("http://example.com").slot("a", cost=["tokens"]), "`cost`"),
        ]
        for make, name in cases:
            with self.subTest(name):
                with self.assertRaisesRegex((TypeError, ValueError), f"^Expected {name} to be ") as caught:
                    make()
                self.assertNotIn("secret", str(caught.exception))

    def test_buckets_are_written_as_by_the_javascript_client(self):
        cases = {
            "203.0.113.4": "203.0.113.4/32",
            "::ffff:203.0.113.4": "203.0.113.4/32",
            "2001:db8:0:1234::1": "2001:db8:0:1230::/60",
            "fe80::1%eth0": "fe80::/60",
        }
        self.assertEqual({ip: bucket_of_ip(ip) for ip in cases}, cases)
        self.assertEqual(bucket_of_ip("203.0.113.4", v4=24), "203.0.113.0/24")
        self.assertRaises(ValueError, bucket_of_ip, "example.com")


if __name__ == "__main__":
    unittest.main()
