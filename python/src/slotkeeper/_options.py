"""The options of a client and of its calls, checked once."""

from __future__ import annotations

import math
import re
import ssl
from dataclasses import dataclass
from typing import Dict, Mapping, Optional, Union
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Share:
    """While the service is unreachable, up to ``share`` × the last known limit of a host runs at a time.

    The rest fails. After ``seconds`` all of it fails.
    """

    share: float
    seconds: float = 60.0

    def __post_init__(self) -> None:
        positive("seconds", self.seconds)
        if not (is_number(self.share) and 0 <= self.share <= 1):
            raise ValueError(f"Expected `share` to be a number from 0 to 1, got {self.share!r}")


#: What happens while the service is unreachable. It does not apply while the service is only busy.
OnFailure = Union[str, Share]


@dataclass(frozen=True)
class Pending:
    """The place of a waiting call, as the service reports it."""

    #: The place in the queue; 1 is next.
    position: int
    #: The number of sessions that wait for this host.
    waiters: int
    #: The estimated wait in seconds, if the service knows it.
    estimated_wait: Optional[float]
    #: What the call waits for, for example ``host-limit``.
    blocked_by: Optional[str]


@dataclass(frozen=True)
class Options:
    """Checked options of a client, with the parts of its address."""

    url: str
    token: Optional[str]
    header: str
    max_wait: float
    request_timeout: float
    max_attempts: int
    on_failure: OnFailure
    hash_hostname: bool
    ssl_context: Optional[ssl.SSLContext]

    def __post_init__(self) -> None:
        check_address(self.url)
        for name in ("max_wait", "request_timeout", "max_attempts"):
            positive(name, getattr(self, name))
        if self.on_failure not in ("closed", "open") and not isinstance(self.on_failure, Share):
            raise ValueError(f'Expected `on_failure` to be "closed", "open" or a Share, got {self.on_failure!r}')
        # The message does not show the token, because it is a secret.
        if not re.fullmatch(r"[!#$%&'*+.^_`|~\w-]+", self.header, re.ASCII):
            raise ValueError(f"Expected `header` to be the name of a header, got {self.header!r}")
        if self.token is not None and not re.fullmatch(r"[!-~]+", self.token):
            raise ValueError("Expected `token` to be visible ASCII characters")


def check_address(url: str) -> None:
    parts = urlsplit(url)
    is_plain = re.fullmatch(r"[!-~]+", url) and not (parts.query or parts.fragment or parts.username)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        # An address may contain a password or a key.
        shown = re.sub(r".*@|\?.*", "…", url, flags=re.DOTALL)[:100]
        raise ValueError(f"Expected `url` to be an http(s) URL without user, query and fragment, got {shown}")


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def positive(name: str, value: float) -> float:
    if not (is_number(value) and value > 0):
        raise ValueError(f"Expected `{name}` to be a positive number, got {value!r}")
    return value


def whole(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"Expected `{name}` to be an integer above 0, got {value!r}")
    return value


def amounts(name: str, value: Mapping[str, float]) -> Dict[str, float]:
    """Amounts by the names of budgets."""
    is_mapping = isinstance(value, Mapping)
    if not is_mapping or not all(isinstance(key, str) and is_number(one) and one >= 0 for key, one in value.items()):
        raise ValueError(f"Expected `{name}` to be numbers of at least 0 by the names of budgets, got {value!r}")
    return dict(value)


def filled(name: str, value: str) -> str:
    if not (isinstance(value, str) and value):
        raise TypeError(f"Expected `{name}` to be a non-empty string, got {value!r}")
    return value
