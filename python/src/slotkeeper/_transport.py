"""One call to the service. Nothing that it answers is trusted.

CALL1  A call ends within its timeout, including its body.
CALL2  It ends in one of four ways: with the reply, cancelled, with a ``RefusedError`` (repeating it is pointless), or
    with a ``CallFailure`` (repeating it may help).
CALL3  A reply fits its schema. Any other answer that is not a refusal is a ``CallFailure``.
CALL4  Redirects are not followed, so that the shared key and the tokens go to no other address. At most ``MOST_BYTES``
    of an answer are read, headers included.

Each call has its own connection: a held call occupies one anyway, and no broken connection is used again.
"""

from __future__ import annotations

import asyncio
import email.utils
import http.client
import io
import json
import re
import ssl
import time
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional
from urllib.parse import urlsplit

from ._answers import is_answer
from ._errors import CallFailure, RefusedError
from ._options import Options
from ._timing import now

MOST_BYTES = 65_536
#: The service never asks for a shorter pause.
LEAST_RETRY = 1.0


@dataclass(frozen=True)
class Answer:
    reply: Dict[str, Any]
    retry_after: Optional[float]
    #: When the call was sent, by the monotonic clock. The service answered later, so leases count from here.
    sent_at: float


class Transport:
    def __init__(self, options: Options) -> None:
        self._options = options
        parts = urlsplit(options.url)
        self._host = parts.hostname or ""
        self._path = parts.path.rstrip("/") + "/api/v0/fairqueue/"
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._ssl: Optional[ssl.SSLContext] = None
        if parts.scheme == "https":
            self._ssl = options.ssl_context or ssl.create_default_context()
        key = f"{options.header}: {options.token}\r\n" if options.token else ""
        self._headers = f"Host: {parts.netloc}\r\nContent-Type: application/json\r\nConnection: close\r\n{key}"

    async def call(self, name: str, body: Mapping[str, object], timeout: Optional[float] = None) -> Answer:
        """``timeout`` is ``request_timeout`` of the client if it is absent."""
        timeout = timeout or self._options.request_timeout
        sent_at = now()
        try:
            data = await asyncio.wait_for(self._exchange(self._request(name, body)), timeout)
        except asyncio.TimeoutError as error:
            raise CallFailure(f"no answer within {timeout * 1000:.0f} ms") from error
        except CallFailure:
            raise
        except Exception as error:
            raise CallFailure(str(error) or type(error).__name__) from error
        return self._read(name, data, sent_at)

    def _request(self, name: str, body: Mapping[str, object]) -> bytes:
        content = json.dumps({key: value for key, value in body.items() if value is not None}).encode()
        head = f"POST {self._path}{name} HTTP/1.1\r\n{self._headers}Content-Length: {len(content)}\r\n\r\n"
        return head.encode("ascii") + content

    async def _exchange(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._ssl)
        try:
            writer.write(request)
            data = b""
            while not _is_complete(data):
                chunk = await reader.read(MOST_BYTES)
                if not chunk:
                    break
                data += chunk
                if len(data) > MOST_BYTES:
                    raise CallFailure("an answer of more than 64 kB")
            return data
        finally:
            writer.transport.abort()

    def _read(self, name: str, data: bytes, sent_at: float) -> Answer:
        try:
            response = http.client.HTTPResponse(_Received(data))  # type: ignore[arg-type]
            response.begin()
            text = response.read()
        except http.client.HTTPException as error:
            raise CallFailure(f"an invalid HTTP answer ({type(error).__name__})") from error
        body = _parsed(text)
        status = response.status
        retry_after = _retry_after(response.getheader("retry-after"), self._options.max_wait)
        if 200 <= status < 300 and is_answer(name, body):
            return Answer(body, retry_after, sent_at)
        if status < 400 or status >= 500 or status in (408, 429):
            is_redirect = 300 <= status < 400
            what = "answer that redirects, which is not followed," if is_redirect else "unexpected answer"
            raise CallFailure(f"an {what} with status {status}", retry_after)
        raise self._refusal(status, body)

    def _refusal(self, status: int, body: Any) -> RefusedError:
        problem = body if isinstance(body, dict) else {}
        errors = problem.get("errors")
        given = [error.get("message") for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
        reason = _sentence("; ".join(message for message in given if isinstance(message, str)))
        reason = reason or _sentence(problem.get("detail")) or _sentence(problem.get("title"))
        return RefusedError(self._options.url, status, _sentence(problem.get("code")), reason)


class _Received:
    """Received bytes in place of a socket, for the parser of the standard library."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: object) -> io.BytesIO:
        return io.BytesIO(self._data)


def _is_complete(data: bytes) -> bool:
    """Whether no more bytes are needed. Not every server closes the connection at once."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return False
    length = re.search(rb"(?i)\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*(?:\r|$)", head)
    return len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _sentence(text: object) -> Optional[str]:
    """Text of the service for an error message: bounded, and without control characters."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text[:500]) if isinstance(text, str) else None


def _retry_after(header: Optional[str], most: float) -> Optional[float]:
    """Seconds or a date; other text counts as absent."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return None if seconds != seconds else min(most, max(LEAST_RETRY, seconds))
