"""What the client accepts as an answer: the fields that the schemas of the service require.

The rules are those of ``packages/client/src/answers.ts``; a test compares the two.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict

Rule = Callable[[object], bool]


def is_text(value: object) -> bool:
    return isinstance(value, str)


def _text_from(least: int) -> Rule:
    return lambda value: isinstance(value, str) and len(value) >= least


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def _integer(least: int, most: float = math.inf) -> Rule:
    def accepts(value: Any) -> bool:
        # JSON does not distinguish 1 from 1.0.
        return _is_number(value) and value == math.floor(value) and least <= value <= most

    return accepts


def _optional(rule: Rule) -> Rule:
    return lambda value: value is ABSENT or rule(value)


def _is_amount(value: object) -> bool:
    return _is_number(value) and value >= 0  # type: ignore[operator]


def _are_amounts(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_amount, value.values()))


ABSENT = object()

#: By call and ``result``. A later version of the service may add fields, and values of ``blockedBy``.
ANSWERS: Dict[str, Dict[str, Dict[str, Rule]]] = {
    "acquire": {
        "pending": {
            "queryToken": _text_from(1),
            "position": _integer(1),
            "waiters": _integer(0),
            "estimatedWaitMs": _optional(_is_amount),
            "blockedBy": _optional(is_text),
        },
        "granted": {
            "queryToken": _text_from(1),
            "slotToken": _text_from(22),
            "limit": _integer(1),
            "fence": _integer(1),
            "leaseMs": _integer(1),
            "charged": _optional(_are_amounts),
        },
        "throttled": {"throttleCode": _integer(0), "throttleRetryAfter": _integer(1), "reason": is_text},
        "timeout": {"reason": is_text},
        "overloaded": {"retryAfter": _integer(1, 30)},
    },
    "renew": {"ok": {"leaseMs": _integer(0)}},
    "release": {"ok": {}},
    "cancel": {"canceled": {}, "gone": {}, "noop": {}},
}


def is_answer(name: str, body: object) -> bool:
    """Whether the body of an answer is what the service may answer to this call."""
    result = body.get("result") if isinstance(body, dict) else None
    rules = ANSWERS[name].get(result) if isinstance(result, str) else None
    if rules is None or not isinstance(body, dict):
        return False
    return all(accepts(body.get(field, ABSENT)) for field, accepts in rules.items())
