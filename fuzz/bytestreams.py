"""Sends random bytes to everything that takes bytes from the outside: mutations of valid input."""

from __future__ import annotations

import gc
import random
from typing import Final

from fuzz.mutator import Mutator
from fuzz.ports import TARGETS
from fuzz.victim import MAX_GROWTH_BYTES, Violation, resident_bytes

INPUTS_PER_NODE: Final = 5000
"""Then a new target takes its place, so that an input that fails is found again after few others."""
_SHOWN_BYTES: Final = 2000


def run(name: str, inputs: int, seed: int) -> str:
    """Send this many inputs to the target of a name. Returns what was done, as a line for people.

    Raises:
        Violation: with the input, and the seed and number of the target, which repeat it.
    """
    before = resident_bytes()
    for number in range(-(-inputs // INPUTS_PER_NODE)):
        target = TARGETS[name](seed + number)
        mutator = Mutator(target.samples, random.Random(f"{name}/{seed}/{number}"))
        for _ in range(min(INPUTS_PER_NODE, inputs - number * INPUTS_PER_NODE)):
            data = mutator.next()
            try:
                target.take(data)
            except Exception as error:
                shown = f"{data[:_SHOWN_BYTES]!r} ({len(data)} bytes)"
                raise Violation(f"{name}, target {seed}/{number}: {error!r} after the input {shown}") from error
        del target, mutator
        gc.collect()
        grown = resident_bytes() - before
        if grown > MAX_GROWTH_BYTES:
            raise Violation(f"{name}, target {seed}/{number}: the process grew by {grown >> 20} MiB")
    return f"{inputs} inputs"
