"""How a member protects the bus, which its arguments tell: by that, members in different modes can connect or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

_ENCRYPTION: Final = ("no", "optional", "yes")
"""`tls-cluster`: each connects to itself and to its neighbours."""


@dataclass(frozen=True)
class BusMode:
    """The arguments of a broker about the bus."""

    tls: str = "no"
    """`tls-cluster`."""

    def arguments(self) -> dict[str, str]:
        """Return the directives."""
        return {"tls-cluster": self.tls} if self.tls != "no" else {}

    def connects(self, other: BusMode) -> bool:
        """Return whether members with these modes can connect."""
        return abs(_ENCRYPTION.index(self.tls) - _ENCRYPTION.index(other.tls)) < 2


PLAIN: Final = BusMode()


def read_mode(arguments: Sequence[str]) -> BusMode:
    """Return the mode in the arguments of a broker."""
    given = dict(pairwise(arguments))
    tls = given.get("--tls-cluster", "no")
    return BusMode(tls if tls in _ENCRYPTION else "no")
