"""Amounts as Kubernetes writes them: `1500m`, `1Gi`, `2e3`. The API server rewrites them, so texts do not compare."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

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


def amount(quantity: object) -> Decimal | None:
    """The number that a quantity stands for, None when it is none."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        return None
    digits, unit, exponent = match.groups()
    return Decimal(digits) * _UNITS.get(unit, Decimal(1)) * Decimal(10) ** int(exponent or 0)
