"""Takes what waits in a dict in parts, one in each turn of the event loop.

The first key of a dict whose oldest entries were deleted is found only behind the places of all of those. So a loop
that takes the first key each time costs the square of the number of entries; a part is found once.
"""

from __future__ import annotations

from itertools import islice
from typing import TypeVar

from mypy_extensions import i64

V = TypeVar("V")


def first_keys(waiting: dict[bytes, V], most: i64) -> list[bytes]:
    """The oldest keys of a dict, at most so many."""
    return list(islice(waiting, most)) if waiting else []
