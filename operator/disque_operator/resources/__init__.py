"""The objects that a cluster is made of, as manifests, and whether what is there is what they say.

One module for each object. `desired` gives all of them, `differs` finds what was changed by hand, `claims` is what the
volume claims should be: these are made by the StatefulSet, and only changed.
"""

from __future__ import annotations

from disque_operator.observed import Observed, Passwords
from disque_operator.spec import Json, Spec


def desired(spec: Spec, observed: Observed, replicas: int, passwords: Passwords | None) -> list[Json]:
    """All objects there should be, in the order in which they are made, but for the volume claims.

    `replicas` is for the StatefulSet: a step of a shrink has more than the spec. `passwords` None: none are used.
    """
    raise NotImplementedError


def claims(spec: Spec, observed: Observed) -> list[Json]:
    """What the existing volume claims should be, to be applied where they differ: sizes that grew, and their owner.

    One that is smaller than asked for is expanded, one that is larger stays.
    """
    raise NotImplementedError


def surplus(wanted: list[Json], observed: Observed) -> list[Json]:
    """Children that are not wanted any more: live objects of ours of kinds that a spec can do without."""
    raise NotImplementedError


def differs(wanted: Json, live: Json | None) -> str:
    """The first field in which a live object is not what the manifest says, as `spec.replicas`; empty when it is.

    Fields that the manifest does not have are the API server's or other people's business.
    """
    raise NotImplementedError
