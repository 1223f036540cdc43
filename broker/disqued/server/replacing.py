"""Which connection gives way when a new one arrives and there are too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, TypeVar

COMPARED: Final = 64
"""How many of the oldest connections are compared to end one. A connection gets among them when older ones ended."""

_Connection = TypeVar("_Connection")


def oldest_of_busiest(origins: Mapping[_Connection, str], newest: str) -> _Connection:
    """The oldest connection of the origin that has most, including the one that comes from `newest`.

    `origins` has the origin of each connection, the oldest first. So one address cannot end the connections of others.
    """
    counts = Counter([*origins.values(), newest])
    return max(origins, key=lambda connection: counts[origins[connection]])  # of equals the first: the oldest
