"""The objects that a cluster is made of, as manifests, and whether what is there is what they say.

One module for each object. Volume claims are not among them: the StatefulSet makes them.
"""

from __future__ import annotations

from collections.abc import Mapping

from disque_operator.spec import Json, Spec
from disque_operator.wanted import Wanted


def desired(spec: Spec, wanted: Wanted) -> tuple[Json, ...]:
    """All objects there should be, in the order in which they are made."""
    raise NotImplementedError


def surplus(manifests: tuple[Json, ...], children: Mapping[tuple[str, str], Json]) -> tuple[Json, ...]:
    """Live objects of ours that are not wanted any more, of the kinds that a cluster can do without."""
    raise NotImplementedError


def differs(manifest: Json, live: Json | None) -> str:
    """The first field in which a live object is not what the manifest says, as `spec.replicas`; empty when it is.

    Fields that the manifest does not have are the API server's or other people's business.
    """
    raise NotImplementedError


def settings(spec: Spec) -> Mapping[str, str]:
    """All directives that CONFIG SET changes, with the values that the spec asks for, defaults for those it lacks.

    Those that are the operator's alone, as addresses and passwords, are not among them.
    """
    raise NotImplementedError


def same(directive: str, one: str, other: str) -> bool:
    """Whether two texts are the same value of a directive, as `64mb` and `67108864`."""
    raise NotImplementedError
