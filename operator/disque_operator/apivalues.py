"""Values as the Kubernetes API writes them: objects, conditions, quantities, timestamps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]
"""An object, or a part of one."""

_QUANTITY: Final = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?"
)
_UNITS: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}


def condition_of(status: Json, kind: str) -> Json:
    """Return the condition of a type in the status of an object; empty if there is none."""
    conditions: list[Json] = status.get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == kind), {})


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector selects an object with these labels. An empty selector selects all, None none."""
    if selector is None:
        return False
    equal: Mapping[str, str] = selector.get("matchLabels") or {}
    return all(labels.get(name) == value for name, value in equal.items()) and all(
        _OPERATORS[one["operator"]](labels.get(one["key"]), one.get("values") or ())
        for one in selector.get("matchExpressions") or ()
    )


_OPERATORS: Final[Mapping[str, Callable[[str | None, Sequence[str]], bool]]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
}


def amount(quantity: object) -> Decimal | None:
    """Parse a quantity such as `1500m`, `1Gi` or `2e3`; return None if it is not one.

    Compare amounts, not texts: the API server rewrites quantities.
    """
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        return None
    digits, unit, exponent = match.groups()
    return Decimal(digits) * _UNITS.get(unit, Decimal(1)) * Decimal(10) ** int(exponent or 0)


def is_less(one: object, other: object) -> bool:
    """Return whether a quantity is less than another one; False if one of them is not a quantity."""
    left, right = amount(one), amount(other)
    return left is not None and right is not None and left < right


def timestamp(now_s: float) -> str:
    """Format a time in seconds since 1970, for example as `2026-01-31T12:00:00Z`."""
    return datetime.fromtimestamp(int(now_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    """Parse a time that `timestamp` formatted; raises ValueError for any other format."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z").timestamp()
