"""How a member protects the bus, which its arguments tell: by that, members in different modes can connect or not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

SECRET_PATH: Final = "/etc/disque-bus"  # noqa: S105  a path
_ENCRYPTION: Final = ("no", "optional", "yes")
"""`tls-cluster`: each connects to itself and to its neighbours."""
_FILE: Final = re.compile(rf"{SECRET_PATH}/(\d+(?:-\d+)?)")


@dataclass(frozen=True)
class BusMode:
    """The arguments of a broker about the bus."""

    tls: str = "no"
    """`tls-cluster`."""
    secrets: tuple[int, ...] = ()
    """The cluster secrets that it knows, by the `clusterSecret.rotation` for which they were made: one or two."""
    required: bool = False
    """Whether it refuses members that know none of them."""

    @property
    def file(self) -> str:
        """Return the name of the file with the secrets. A file of this name always has the same content."""
        return "-".join(map(str, self.secrets))

    def arguments(self) -> dict[str, str]:
        """Return the directives."""
        found = {"tls-cluster": self.tls} if self.tls != "no" else {}
        if self.secrets:
            found["cluster-secret-file"] = f"{SECRET_PATH}/{self.file}"
            found["cluster-secret-required"] = "yes" if self.required else "no"
        return found

    def connects(self, other: BusMode) -> bool:
        """Return whether members with these modes can connect."""
        return self.encrypts_like(other) and self._trusts(other)

    def encrypts_like(self, other: BusMode) -> bool:
        """Return whether members with these modes can connect as far as TLS goes."""
        return abs(_ENCRYPTION.index(self.tls) - _ENCRYPTION.index(other.tls)) < 2

    def _trusts(self, other: BusMode) -> bool:
        if self.secrets and other.secrets:
            return bool({*self.secrets} & {*other.secrets})
        return not (self.required or other.required)


PLAIN: Final = BusMode()


def read_mode(arguments: Sequence[str]) -> BusMode:
    """Return the mode in the arguments of a broker."""
    given = dict(pairwise(arguments))
    tls = given.get("--tls-cluster", "no")
    file = _FILE.fullmatch(given.get("--cluster-secret-file", ""))
    secrets = tuple(map(int, file[1].split("-"))) if file else ()
    required = bool(secrets) and given.get("--cluster-secret-required") != "no"
    return BusMode(tls if tls in _ENCRYPTION else "no", secrets, required)
